"""The archives of a release: programs, source, chart, Debian package."""

import os
import pathlib
import re
import shutil
import subprocess

import tar

# Runs on any Linux of the architecture: the loader and all libraries come along.
LAUNCHER = """#!/bin/sh
# Runs the program with the libraries beside it.
here=$(dirname "$(readlink -f "$0")")/..
exec "$here/lib/LOADER" --argv0 "$0" --library-path "$here/lib" "$here/libexec/PROGRAM" "$@"
"""


def libraries_of(program):
    """The loader and the libraries a program names, by the path it finds them at."""
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"/[^ ]+", text)))


def packages_of(libraries):
    """The Debian packages that libraries come from, with their versions."""
    packages = {}
    for library in libraries:
        # What /lib is a link to is known by its path in /usr.
        for path in (str(pathlib.Path(library).resolve()), library):
            found = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True)
            if found.returncode == 0:
                break
            found = subprocess.run(["dpkg", "-S", path.removeprefix("/usr")], capture_output=True,
                                   text=True)
            if found.returncode == 0:
                break
        else:
            raise SystemExit(f"make: expected a Debian package that has {library}, found none")
        name = found.stdout.split(": ")[0].split(",")[0]
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], check=True,
                                 capture_output=True, text=True).stdout
        packages[name.split(":")[0]] = version
    return packages


def _write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _settle(folder):
    """Rights that do not depend on who builds."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            continue
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def _program(release, name, stage):
    root = release.assembled(name)
    (stage / "libexec").mkdir(parents=True)
    (stage / "lib").mkdir()
    shutil.copy(root / name, stage / "libexec" / name)
    loader = None
    for library in libraries_of(release.programs[name]):
        shutil.copy(root / library.lstrip("/"), stage / "lib")
        if "/ld-linux" in library:
            loader = pathlib.Path(library).name
    _write(stage / "bin" / name, LAUNCHER.replace("LOADER", loader).replace("PROGRAM", name), 0o755)
    shutil.copy(release.root / "LICENSE", stage)


def _completions(release, stage):
    for shell, target in (("bash", "bash-completion/completions/tranche"),
                          ("zsh", "zsh/site-functions/_tranche"),
                          ("fish", "fish/vendor_completions.d/tranche.fish")):
        text = subprocess.run([release.programs["tranche"], "completion", shell], check=True,
                              capture_output=True, text=True).stdout
        _write(stage / "share" / target, text)
    manual = subprocess.run([release.programs["tranche"], "man"], check=True, capture_output=True,
                            text=True).stdout
    _write(stage / "share/man/man1/tranche.1", manual)


def programs(release):
    for name in release.programs:
        base = f"{name}-{release.version}-linux-{release.debian}"
        stage = release.scratch / base
        _program(release, name, stage)
        if name == "tranche":
            (stage / "bin/kubectl-tranche").symlink_to("tranche")
            _completions(release, stage)
        _settle(stage)
        made = release.out / f"{base}.tar.gz"
        made.write_bytes(tar.gzipped(tar.tar_of(stage, release.epoch, base + "/")))
        yield made


def source(release):
    """The tree of the commit, with the page bundled: no npm registry is asked for it."""
    base = f"tranche-{release.version}"
    stage = release.scratch / "source"
    stage.mkdir()
    archive = subprocess.run(["git", "archive", release.commit], cwd=release.root, check=True,
                             capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", stage], input=archive, check=True)
    subprocess.run([release.root / "scheduler/ui/bundle.sh", stage / "scheduler/ui/bundled"],
                   check=True)
    _settle(stage)
    made = release.out / f"{base}-source.tar.gz"
    made.write_bytes(tar.gzipped(tar.tar_of(stage, release.epoch, base + "/")))
    yield made


def chart(release):
    folder = release.root / "charts/tranche"
    version = re.search(r"^version: (\S+)$", (folder / "Chart.yaml").read_text(), re.MULTILINE)
    if version.group(1) != release.version:
        raise SystemExit(f"make: expected version {release.version} in charts/tranche/Chart.yaml, "
                         f"found {version.group(1)}")
    stage = release.scratch / "chart"
    shutil.copytree(folder, stage)
    _settle(stage)
    made = release.out / f"tranche-chart-{release.version}.tgz"
    made.write_bytes(tar.gzipped(tar.tar_of(stage, release.epoch, "tranche/")))
    yield made


def debian(release):
    """The command line and the server as a package of Debian 12, with the libraries it has."""
    stage = release.scratch / "debian"
    program = stage / "usr/bin/tranche"
    program.parent.mkdir(parents=True)
    shutil.copy(release.assembled("tranche") / "tranche", program)
    (stage / "usr/bin/kubectl-tranche").symlink_to("tranche")
    _completions(release, stage / "usr")
    subprocess.run(["gzip", "-9n", stage / "usr/share/man/man1/tranche.1"], check=True)
    shutil.move(stage / "usr/share/zsh/site-functions", stage / "usr/share/zsh/vendor-completions")
    _write(stage / "usr/share/doc/tranche/copyright", (release.root / "LICENSE").read_text())
    packages = packages_of(libraries_of(release.programs["tranche"]))
    depends = ", ".join(f"{name} (>= {version})" for name, version in sorted(packages.items()))
    size = sum(path.lstat().st_size for path in stage.rglob("*")) // 1024
    _write(stage / "DEBIAN/control", f"""Package: tranche
Version: {release.version}
Architecture: {release.debian}
Maintainer: Tranche <tranche@localhost>
Installed-Size: {size}
Depends: {depends}
Recommends: ca-certificates, tzdata
Section: admin
Priority: optional
Description: GPU scheduler extender for Kubernetes
 The server, the command line and kubectl's plugin: packing, quota, budgets,
 preemption and topology for whole GPUs, fractions and MIG slices.
""")
    _settle(stage)
    made = release.out / f"tranche_{release.version}_{release.debian}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", stage, made], check=True,
                   capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch)})
    yield made
