"""Rules about prose: comments, torn lines, documents that name files, and the table of layers.

Every rule takes all files (path -> File) and yields (path, line, what was found and expected).
"""

import fnmatch
import posixpath
import re

import known

_COMMENT = re.compile(r"^\s*//+ ?(.*)$")
_OPENING = re.compile(r"^(Who|Whom|Whoever|Whose|Of what|What of|Of whom|To whom)\b")


def _comments(file):
    """(line, text, is it the first of its comment) of every // comment of a C++ file."""
    before = False
    for number, line in enumerate(file.lines, 1):
        whole = _COMMENT.match(line)
        if whole:
            yield number, whole.group(1), not before
        else:
            for match in re.finditer(r"\s//+ (.*)$", line):
                if file.code.splitlines()[number - 1][match.start():].strip() == "":
                    yield number, match.group(1), True
        before = whole is not None


def check_comments(files):
    """A comment is a sentence or names a thing; it is no question."""
    def found():
        for file in files.values():
            if file.is_cpp and re.search(r"// (Who|Of w|What of|To w)", file.text):
                for line, text, first in _comments(file):
                    match = _OPENING.match(text) if first else None
                    if match:
                        yield file.path, line, (
                            f"expected a plain sentence, found one that begins {match.group()}")
    yield from known.beyond(files, "comments", found())


_LITERAL = re.compile(r"^\s*(?:(?:true|false|nullptr|-?\d[\w.']*)\s*[;,}]|[\w:.-]+;\s+//)")
_TYPE_ALONE = re.compile(r"^\s*(?:std::|absl::)?[\w:]+(?:<.*>)?$")
_NAME_AND_COMMENT = re.compile(r"^\s+\w+(?: = [\w:.-]+)?;\s+//")
_FEW_WORDS = re.compile(r"^\s*//\s+((?:[\w'`-]+\s?){1,4}[;,]?)$")
_LONG_LINE = 80


def check_torn(files):
    """clang-format tears a line whose comment behind it is too long."""
    for file in files.values():
        if not file.is_cpp:
            continue
        before = ""
        for number, (line, after) in enumerate(zip(file.lines, file.lines[1:] + [""]), 1):
            if line.endswith(" =") and _LITERAL.match(after):
                yield file.path, number, "expected the value on the line of its name"
            if _TYPE_ALONE.match(line) and _NAME_AND_COMMENT.match(after):
                yield file.path, number, "expected the name on the line of its type"
            words = _FEW_WORDS.match(line)
            if (words and _COMMENT.match(before) and len(before) >= _LONG_LINE
                    and re.match(r"^\s*//\s+\S", after)):
                yield file.path, number, f"expected a filled line, found {words.group(1)} alone"
            before = line


_WORD = re.compile(r"`([^`\s]+)`|\]\(([^()\s]+)\)")
# The start of a path in this tree, from its root, from scheduler/, or from the folder of the text.
_SOURCE = re.compile(r"\.(?:cc|h|py|sh|md|cmake|css|js)$")
_FOREIGN = {"sqlite3.h", "openssl/evp.h", "testssl.sh"}
_PATTERN = re.compile(r"[{}<>]|\.\.\.|^[/~-]|://|^[A-Z_]+/|^[\d.]\w*$|^\d")


def _places(files):
    """Every file and folder, and every file without its suffix."""
    places = set()
    for path in files:
        places.add(path)
        places.add(re.sub(r"\.\w+$", "", path))
        folder = posixpath.dirname(path)
        while folder:
            places.add(folder)
            folder = posixpath.dirname(folder)
    return places


def _exists(path, places):
    """A path may stand for several: with a star, or with NAME for a name."""
    if "*" not in path and "NAME" not in path:
        return path in places
    return bool(fnmatch.filter(places, path.replace("NAME", "*")))


def _is_path(word, bases, places):
    first = word.split("/")[0]
    if "/" in word and any(posixpath.join(base, first) in places for base in bases):
        return True
    return _SOURCE.search(word) is not None and first.islower()


_HEADER_NAME = re.compile(r"(?<![\w/.*<\"])((?:[\w-]+/)*[\w-]+\.(?:h|cc))\b")


def _named_in_comments(file):
    """(line, name) of every header or source that a comment names."""
    for line, text, _ in _comments(file):
        for match in _HEADER_NAME.finditer(text):
            yield line, match.group(1)


def check_named_files(files):
    """A comment names headers and sources that exist, as check_documents demands of documents."""
    places = _places(files)
    names = {posixpath.basename(path) for path in files}
    for file in files.values():
        if not file.is_cpp or not file.path.startswith(("topology/", "policy/", "quota/",
                                                        "scheduler/")):
            continue
        bases = [file.folder]
        while bases[-1]:
            bases.append(posixpath.dirname(bases[-1]))
        for line, word in _named_in_comments(file):
            paths = [posixpath.join(base, word) for base in [*bases, "scheduler"]]
            if "/" not in word and _exists(word, names):
                continue
            if not any(_exists(posixpath.normpath(path), places) for path in paths):
                yield file.path, line, f"expected a file of the tree, found {word}"


def check_documents(files):
    """A document names files that exist. A word counts as one if it ends like a source or begins
    with a folder of the tree, seen from the root, from scheduler/ or from the document; links
    count always."""
    places = _places(files)
    names = {posixpath.basename(path) for path in files}
    for file in files.values():
        if not file.path.endswith(".md") or file.path == "CHANGELOG.md":
            continue
        above = [file.folder]
        while above[-1] not in ("", "."):
            above.append(posixpath.dirname(above[-1]))
        bases = ["" if folder == "." else folder for folder in above] + ["scheduler"]
        for match in _WORD.finditer(file.text):
            word = re.sub(r"#.*$|:\d+.*$", "", match.group(1) or match.group(2)).rstrip("/")
            link = match.group(2) is not None
            if not word or word in _FOREIGN or _PATTERN.search(word):
                continue
            if not link and not _is_path(word, bases, places):
                continue
            here = ["" if file.folder == "." else file.folder] if link else bases
            paths = [posixpath.normpath(posixpath.join(base, word)) for base in here]
            if any(_exists(path, places) for path in paths):
                continue
            if not link and "/" not in word and _exists(word, names):
                continue
            yield file.path, file.line_of(match.start()), (
                f"expected a path of the tree, found {word}")


_API = "scheduler/api/openapi.yaml"
_ROUTE = re.compile(r'"(/(?:api|embedded)/[^"]*)"')
_API_PATH = re.compile(r"^  (/(?:api|embedded)/[^:]*):$", re.MULTILINE)


def check_api(files):
    """Every path of the JSON API is described, and every path that is described is answered. A path
    that ends in / takes what is below it."""
    if _API not in files:
        return
    described = files[_API]
    wanted = {re.sub(r"\{.*", "", match.group(1)): match.start()
              for match in _API_PATH.finditer(described.text)}
    found = {}
    for file in files.values():
        ours = file.path.startswith("scheduler/api/") or file.path == "scheduler/server/runtime.cc"
        if ours and file.path.endswith(".cc"):
            for match in _ROUTE.finditer(file.text):
                found[match.group(1)] = (file, match.start())
    for path, (file, start) in sorted(found.items()):
        if path not in wanted:
            yield file.path, file.line_of(start), f"expected {path} in {_API}, found it missing"
    for path, start in sorted(wanted.items()):
        if path not in found:
            yield _API, described.line_of(start), f"expected a route {path}, found none"


_DECISION = re.compile(r"^scheduler/docs/adr/(\d{4})-[a-z0-9-]+\.md$")
_CHAPTERS = ["Context", "Decision", "Consequences"]


def check_decisions(files):
    """Decisions have one form, so that one can look for the part one needs."""
    for file in files.values():
        match = _DECISION.match(file.path)
        if not match:
            if file.folder == "scheduler/docs/adr":
                yield file.path, 1, "expected a name like 0001-what-was-decided.md"
            continue
        if not file.text.startswith(f"# {match.group(1)}: "):
            yield file.path, 1, f"expected a title that begins {match.group(1)}:"
        if not re.search(r"^Status: \w", file.text, re.MULTILINE):
            yield file.path, 1, "expected a line Status:"
        chapters = re.findall(r"^## (.*)$", file.text, re.MULTILINE)
        if chapters != _CHAPTERS:
            yield file.path, 1, f"expected the chapters {', '.join(_CHAPTERS)}, found {chapters}"
