"""Reads the tree into plain values: files with their text, and C++ without comments and strings."""

import dataclasses
import functools
import os
import pathlib
import re

# Folders that are no source: version control, build output, caches.
SKIPPED_FOLDERS = {".git", ".cache", "__pycache__", "build", "node_modules"}
CPP_SUFFIXES = (".cc", ".h")

_CPP_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"|"""
    r"""(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL,
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class File:
    path: str  # from the root of the tree, with /
    text: str
    executable: bool = False

    @property
    def is_cpp(self):
        return self.path.endswith(CPP_SUFFIXES)

    @property
    def is_script(self):
        first = self.text.split("\n", 1)[0]
        return self.path.endswith(".sh") or (first.startswith("#!") and first.endswith("bash"))

    @property
    def folder(self):
        return str(pathlib.PurePosixPath(self.path).parent)

    @functools.cached_property
    def lines(self):
        return self.text.splitlines()

    @functools.cached_property
    def code(self):
        """The text with comments and literals blanked; line numbers stay."""
        return _CPP_TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), self.text)

    @functools.cached_property
    def includes(self):
        """(line, opening bracket or quote, name) of every include."""
        return [(self.line_of(m.start(1)), m.group(1), m.group(2))
                for m in _INCLUDE.finditer(self.text)]

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1


def read_tree(root):
    """Returns path -> File of every text file below root."""
    files = {}
    for folder, names, leaves in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED_FOLDERS)
        for leaf in sorted(leaves):
            full = pathlib.Path(folder, leaf)
            if full.is_symlink():
                continue
            try:
                text = full.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # no text, no rules
            path = full.relative_to(root).as_posix()
            files[path] = File(path, text, os.access(full, os.X_OK))
    return files
