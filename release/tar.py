"""Archives whose bytes depend on what is in them alone: names in order, one time, owner root."""

import gzip
import io
import tarfile


def _entry(name, epoch, mode, owner=0):
    entry = tarfile.TarInfo(name)
    entry.mtime = epoch
    entry.mode = mode
    entry.uid = entry.gid = owner
    return entry


def _add_path(archive, path, name, epoch, owner):
    status = path.lstat()
    entry = _entry(name, epoch, status.st_mode & 0o7777, owner)
    if path.is_symlink():
        entry.type = tarfile.SYMTYPE
        entry.linkname = str(path.readlink())
        entry.mode = 0o777
        archive.addfile(entry)
    elif path.is_dir():
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    else:
        entry.size = status.st_size
        with path.open("rb") as content:
            archive.addfile(entry, content)


def tar_of(folder, epoch, prefix="", owners=None):
    """The bytes of a tar of everything below a folder. `owners`: by path, if not root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*"), key=lambda one: one.relative_to(folder).parts):
            name = str(path.relative_to(folder))
            _add_path(archive, path, prefix + name, epoch, (owners or {}).get(name, 0))
    return buffer.getvalue()


def gzipped(data):
    return gzip.compress(data, compresslevel=9, mtime=0)
