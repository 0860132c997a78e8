"""Rules about the shape of C++: folders, functions, arguments, and the parts of the engine.

Every rule takes all files (path -> File) and yields (path, line, what was found and expected).
"""

import collections
import re

import known

PRODUCT = ("topology/", "policy/", "quota/", "scheduler/")

MOST_UNITS = 20
MOST_FUNCTION_LINES = 70

# Calls whose bare boolean is the value itself and no switch: atomics, containers, values of a
# language, options of Asio, checks, and setters with nothing but the value.
VALUE_CALLS = {"store", "exchange", "value_or", "push_back", "assign", "pair", "CelBool", "IsBool",
               "reuse_address", "no_delay", "TRANCHE_CHECK", "if", "while", "return"}
_LONE_SETTER = re.compile(r"\b[sS]et_?\w*$")


def _product(files):
    return [file for file in files.values() if file.is_cpp and file.path.startswith(PRODUCT)]


def check_units(files):
    """A unit is a .h and a .cc of one stem, or either of them alone."""
    units = collections.defaultdict(set)
    for file in _product(files):
        units[file.folder].add(re.sub(r"\.(cc|h)$", "", file.path))
    for folder, stems in sorted(units.items()):
        if len(stems) > MOST_UNITS:
            yield f"{folder}/README.md", 1, f"expected <= {MOST_UNITS} units, found {len(stems)}"


_NO_FUNCTION = re.compile(r"^(?:template\s*<[^{}]*>\s*)?(?:inline\s+)?"
                          r"(?:namespace|class|struct|union|enum|extern)\b")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_NAME = re.compile(r"([~\w:]+|operator\s*[^\s\w(]+)\s*\(")
_EQUALS = re.compile(r"(?<![=!<>+\-*/%&|^~\w])=(?!=)")
_INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")


def _close(code, at):
    """The offset of the brace that closes the one at `at`, or the end."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(code)


def functions_of(file):
    """(name, first line, last line) of every function with a body. Reads braces: what stands at the
    level of a namespace or class, has parentheses and is no initialiser, is a function."""
    code = _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), file.code)
    start = 0  # of the declaration that is being read
    at = 0
    while at < len(code):
        char = code[at]
        if char == "(":
            depth = 0  # skips the parameters, whose defaults may hold braces
            while at < len(code):
                depth += (code[at] == "(") - (code[at] == ")")
                if depth == 0:
                    break
                at += 1
        elif char in ";}":
            start = at + 1
        elif char == "{":
            head = code[start:at].strip()
            head = re.sub(r"^(?:public|private|protected)\s*:\s*", "", head)
            lambda_value = re.search(r"=\s*\[[^\]]*\]\s*(?:\(|$)", head)
            if "(" not in head or _NO_FUNCTION.match(head):
                if "=" in head or not re.match(r".*\b(namespace|class|struct|union|enum|extern)\b",
                                               head, re.DOTALL):
                    at = _close(code, at)  # an initialiser: part of the declaration
                else:
                    start = at + 1
            elif _EQUALS.search(_NAME.split(head)[0]) and not lambda_value:
                at = _close(code, at)
            elif _INITIALISERS.search(head) and re.search(r"[\w>]$", head):
                at = _close(code, at)  # a member that is initialised by braces
            else:
                end = _close(code, at)
                first = start + len(code[start:at]) - len(code[start:at].lstrip())
                name = _NAME.search(head)
                yield (name.group(1) if name else head[:30], file.line_of(first), file.line_of(end))
                at = end
                start = end + 1
        at += 1


def check_functions(files):
    def found():
        for file in _product(files):
            for name, first, last in functions_of(file):
                if last - first + 1 > MOST_FUNCTION_LINES:
                    yield file.path, first, (f"expected <= {MOST_FUNCTION_LINES} lines in {name}, "
                                             f"found {last - first + 1}")
    yield from known.beyond(files, "functions", found())


_BARE = re.compile(r"(?<=[(,])\s*(?:true|false)\s*(?=[,)])")


def _called(code, at):
    """The name before the parenthesis open at `at`; None where another bracket is nearer."""
    depth = 0
    for offset in range(at - 1, -1, -1):
        char = code[offset]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth == 0:
                name = re.search(r"([A-Za-z_]\w*)\s*(?:<[^<>()]*(?:<[^<>]*>)?[^<>()]*>)?\s*$",
                                 code[:offset][-200:])
                return name.group(1) if char == "(" and name else None
            depth -= 1
        elif char == ";" and depth == 0:
            return None
    return None


def _holds_booleans(code, at):
    """A vector of booleans that is made with its first value."""
    return re.search(r"vector<bool>\s+\w+\([^;]*$", code[max(0, at - 200):at]) is not None


def check_booleans(files):
    """A bare true or false at a call does not say what it switches: an enum or a named field
    does. For a function of a library a comment may: `/*allow_exceptions=*/false`."""
    def found():
        for file in _product(files):
            for match in _BARE.finditer(file.code):
                if "=*/" in file.text[match.start():match.end()]:
                    continue
                before, after = file.code[match.start() - 1], file.code[match.end()]
                name = _called(file.code, match.start())
                if name is None or name in VALUE_CALLS:
                    continue
                if _holds_booleans(file.code, match.start()):
                    continue
                if not (before == "(" and after == ")" and _LONE_SETTER.match(name)):
                    found = match.group().strip()
                    yield file.path, file.line_of(match.end()), (
                        f"expected a named value, found a bare {found} for {name}")
    yield from known.beyond(files, "booleans", found())


MOST_METHODS = 20
_CLASS = re.compile(r"^(class|struct)\s+(\w+)[^;{]*\{", re.MULTILINE)
_METHOD = re.compile(r"^  (?!using|friend|return|explicit)[\w:<>,&*\s\[\]]*?\b(\w+)\([^;{]*[;{]",
                     re.MULTILINE)


def check_methods(files):
    """What one may do with a part of the engine fits on a page: its public methods, constructors
    aside. `Engine` itself is the whole surface."""
    for file in files.values():
        if not file.path.endswith(".h") or not file.folder.startswith("scheduler/engine/"):
            continue
        for match in _CLASS.finditer(file.code):
            body = file.code[match.end():_close(file.code, match.end() - 1)]
            body = re.split(r"^ (?:private|protected):", body, flags=re.MULTILINE)[0]
            # Bodies of inline methods and of nested types are no declarations of their own.
            for _ in range(4):
                body = re.sub(r"\{[^{}]*\}", ";", body)
            found = {name for name in _METHOD.findall(body) if name != match.group(2)}
            if len(found) > MOST_METHODS:
                yield file.path, file.line_of(match.start()), (
                    f"expected <= {MOST_METHODS} public methods in {match.group(2)}, "
                    f"found {len(found)}")


_DEFINED = re.compile(r"^(?:class|struct|enum class|enum)\s+(\w+)[^;{]*\{", re.MULTILINE)
_HOOK = re.compile(r"\bstd::function\s*<[^;]*>\s+\w+_?\s*(?:=[^;]*|\{[^;]*)?;")


def engine_rule(ranks):
    """The rule that parts of the engine know nothing of the parts above them."""
    order = {room: rank for rank, rooms in enumerate(ranks) for room in rooms
             if room.startswith("scheduler/engine")}

    def found(files):
        defined = {}
        for file in files.values():
            if file.folder in order and file.path.endswith(".h"):
                for name in _DEFINED.findall(file.code):
                    rank = order[file.folder]
                    defined[name] = min(rank, defined.get(name, rank))
        for file in files.values():
            rank = order.get(file.folder)
            if rank is None or file.folder == "scheduler/engine" or not file.path.endswith(".h"):
                continue
            for match in re.finditer(r"\b[A-Z]\w+\b", file.code):
                if defined.get(match.group(), rank) > rank:
                    yield file.path, file.line_of(match.start()), (
                        f"expected no type of a higher part, found {match.group()}")
            for match in _HOOK.finditer(file.code):
                yield file.path, file.line_of(match.start()), (
                    "expected facts in a list that the facade drains, found a hook to call up")

    def check(files):
        yield from known.beyond(files, "engine", found(files))
    return check


# A call, then a part of what it returned, as in for (x : Get("a")["b"]). A variable's at() is fine.
_PART_OF_RESULT = re.compile(
    r"\bfor \([^;()]*? : (?:\w+(?:\(\))?(?:::|\.|->))*(?!at\b)\w+"
    r"\((?:[^();]|\((?:[^();]|\([^();]*\))*\))*\)(?:\[|\.at\()")


def check_loops(files):
    """C++20 destroys what the call returned before the loop's first turn."""
    for file in files.values():
        if not file.is_cpp:
            continue
        for match in _PART_OF_RESULT.finditer(file.code):
            line = file.code.count("\n", 0, match.start()) + 1
            yield file.path, line, "expected a name for what the call returned, found a part of it"
