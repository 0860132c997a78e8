"""The rules of the tree, as tables, and the functions that apply them.

Every rule takes all files (path -> File) and yields (path, line, what was found and expected).
"""

import re

import rules_shape
import rules_tables
import rules_text

# Which room may include which: a file includes rooms of a lower rank and its own. Rooms of one rank
# never include each other.
RANKS = [
    ["topology/base"],
    ["topology"],
    ["topology/machine"],
    ["policy"],
    ["quota/tree"],
    ["quota/budget"],
    ["quota/preemption"],
    ["quota"],
    ["scheduler/facts"],
    ["scheduler/turns"],
    ["scheduler/index"],
    ["scheduler/dra"],
    ["scheduler/scoring"],
    ["scheduler/advice", "scheduler/gangs"],
    ["scheduler/engine/placeholders"],
    ["scheduler/engine/state"],
    ["scheduler/engine/teams", "scheduler/engine/views"],
    ["scheduler/engine/selection"],
    ["scheduler/engine/requeue"],
    ["scheduler/engine/gangs", "scheduler/engine/claims"],
    ["scheduler/engine/preemption"],
    ["scheduler/engine/gates"],
    ["scheduler/engine"],
    ["scheduler/foresight"],
    ["scheduler/ports"],
    ["scheduler/wire/json"],
    ["scheduler/wire/records", "scheduler/wire/nodes", "scheduler/wire/workloads"],
    ["scheduler/wire/agents"],
    ["scheduler/wire/claims"],
    ["scheduler/wire/pods"],
    ["scheduler/wire/protocol"],
    ["scheduler/kube/transport"],
    ["scheduler/kube/watch", "scheduler/kube/leadership", "scheduler/kube/reviews"],
    ["scheduler/kube/writes"],
    ["scheduler/ledger/bill", "scheduler/ledger/sqlite"],
    ["scheduler/ledger/past"],
    ["scheduler/http", "scheduler/kube", "scheduler/embedded", "scheduler/ledger",
     "scheduler/metrics", "scheduler/ui", "scheduler/probe"],
    ["scheduler/host", "scheduler/agent"],
    ["scheduler/controllers"],
    ["scheduler/controllers/scaling"],
    ["scheduler/api/lists"],
    ["scheduler/api"],
    ["scheduler/api/foresight", "scheduler/api/sight", "scheduler/api/costs"],
    ["scheduler/server/viewers"],
    ["scheduler/server"],
    ["scheduler/cli/output"],
    ["scheduler/cli/screen", "scheduler/cli/mcp", "scheduler/cli/kueue", "scheduler/cli/replay",
     "scheduler/cli/ledger"],
    ["scheduler/cli"],
    ["bench", "test"],
]
RANK_OF = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
# The core decides: it sees no clock, thread, file, environment or floating point number.
LAST_CORE_RANK = RANK_OF["scheduler/foresight"]
FREE_RANK = RANK_OF["test"]

# Foreign libraries by the start of the include, and the rooms they stay in. "*" is everywhere; an
# entry that ends in .cc limits the library to such files of the room. The first match counts.
_KUBE_ROOMS = ["scheduler/kube", "scheduler/kube/transport", "scheduler/kube/watch",
               "scheduler/kube/writes", "scheduler/kube/leadership", "scheduler/kube/reviews"]
_JSON_ROOMS = ["scheduler/wire/json", "scheduler/wire/records", "scheduler/wire/nodes",
               "scheduler/wire/workloads",
               "scheduler/wire/agents", "scheduler/wire/claims", "scheduler/wire/pods",
               "scheduler/wire/protocol", *_KUBE_ROOMS, "scheduler/embedded",
               "scheduler/controllers", "scheduler/api/lists", "scheduler/api",
               "scheduler/api/foresight", "scheduler/api/sight", "scheduler/api/costs",
               "scheduler/server",
               "scheduler/cli", "scheduler/cli/output", "scheduler/cli/mcp",
               "scheduler/cli/replay", "scheduler/cli/kueue", "scheduler/cli/ledger",
               "policy/*.cc"]
# Where threads share state; test/tidy/threads.sh has clang check the locks.
_SHARED_ROOMS = ["scheduler/http", *_KUBE_ROOMS, "scheduler/embedded", "scheduler/ledger",
                 "scheduler/metrics", "scheduler/host", "scheduler/controllers",
                 "scheduler/controllers/scaling", "scheduler/api/lists", "scheduler/api",
                 "scheduler/api/sight", "scheduler/server", "scheduler/server/viewers",
                 "scheduler/agent"]
LIBRARIES = [
    ("absl/status/", ["*"]),
    ("absl/time/", ["policy/*.cc", "scheduler/host/*.cc"]),
    ("absl/synchronization/", _SHARED_ROOMS),
    ("absl/base/thread_annotations.h", _SHARED_ROOMS),
    ("absl/strings/", ["scheduler/wire/protocol"]),
    ("absl/", []),
    ("fmt/", ["*"]),
    ("boost/", ["scheduler/http", *_KUBE_ROOMS, "scheduler/api", "scheduler/api/foresight",
                "scheduler/server", "scheduler/cli"]),
    ("openssl/", ["scheduler/http", "scheduler/kube/transport", "scheduler/ledger",
                  "scheduler/server/viewers", "scheduler/server", "scheduler/cli/ledger"]),
    ("sqlite3.h", ["scheduler/ledger", "scheduler/ledger/sqlite"]),
    ("nghttp2/", ["scheduler/probe/*.cc"]),
    ("zlib.h", ["scheduler/http/*.cc", "test"]),
    ("grpcpp/", ["scheduler/agent"]),
    ("prometheus/", ["scheduler/metrics"]),
    ("simdjson.h", _JSON_ROOMS),
    ("nlohmann/", _JSON_ROOMS + ["scheduler/probe"]),
    ("yaml-cpp/", ["scheduler/wire/json", "scheduler/kube/transport", "scheduler/embedded",
                  "scheduler/controllers", "scheduler/server", "scheduler/agent/*.cc",
                  "scheduler/cli/output/*.cc"]),
    ("spdlog/", [*_KUBE_ROOMS, "scheduler/host", "scheduler/controllers",
                "scheduler/controllers/scaling", "scheduler/api", "scheduler/api/foresight",
                "scheduler/server/viewers", "scheduler/server", "scheduler/cli",
                "scheduler/agent"]),
    ("CLI/", ["scheduler/cli"]),
]
SYSTEM_HEADER = re.compile(r"^(sys/|netinet/|arpa/|linux/)?[a-z0-9_]+\.h$")
STANDARD_HEADER = re.compile(r"^[a-z0-9_]+$")

# What the core must not use, and what to use instead.
CORE_HEADERS = {
    "thread": "one writer owns the engine",
    "mutex": "one writer owns the engine",
    "shared_mutex": "one writer owns the engine",
    "condition_variable": "one writer owns the engine",
    "future": "one writer owns the engine",
    "iostream": "return an absl::Status",
    "fstream": "files are read in the shell",
    "filesystem": "files are read in the shell",
    "random": "decisions are deterministic",
}
CORE_TOKENS = [
    (r"::now\s*\(", "take the time as a parameter"),
    (r"\b(secure_)?getenv\b", "configuration comes as values"),
    (r"\b(std::|::)?s?rand\s*\(", "decisions are deterministic"),
    (r"\brandom_device\b", "decisions are deterministic"),
    (r"\b(float|double)\b", "integers only in decisions"),
]

# Reads the environment in builds that are made to be wrong, and in no other.
PLANTS = "topology/base/plant.h"

MOST_COLUMNS = 100
MOST_LINES = 500
MEASURED = re.compile(r"(\.(cc|h|cmake|py|sh)|CMakeLists\.txt)$")
PROSE_OR_CODE = re.compile(r"(\.(cc|h|cmake|py|sh|go|md|txt|json|ya?ml|html|css|js)|/run)$")
# Spelled apart so that this file does not break its own rules.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(ho" r"me|ro" r"ot|Us" r"ers|wo" r"rk)/\w")


def room_of(path):
    """The longest room that holds a path; None for files outside all rooms."""
    parts = path.split("/")[:-1]
    while parts:
        if "/".join(parts) in RANK_OF:
            return "/".join(parts)
        parts.pop()
    return None


def _cpp(files):
    for file in files.values():
        room = room_of(file.path)
        if file.is_cpp and room:
            yield file, room, RANK_OF[room]


def check_layers(files):
    for file, room, rank in _cpp(files):
        for line, quote, name in file.includes:
            target = room_of(name) if quote == '"' else None
            if target is None or target == room or rank == FREE_RANK:
                continue
            if RANK_OF[target] >= rank:
                yield file.path, line, f"{room} must not include {target} ({name})"


def _library(name):
    for prefix, rooms in LIBRARIES:
        if name.startswith(prefix):
            return prefix, rooms
    return None, None


def _allowed(path, room, rooms):
    if "*" in rooms or room in rooms:
        return True
    return f"{room}/*.cc" in rooms and path.endswith(".cc")


def check_libraries(files):
    for file, room, rank in _cpp(files):
        if rank == FREE_RANK:
            continue
        for line, quote, name in file.includes:
            if room_of(name) is not None or (quote == "<" and STANDARD_HEADER.match(name)):
                continue
            prefix, rooms = _library(name)
            if prefix is None:
                if quote == "<" and SYSTEM_HEADER.match(name) and rank > LAST_CORE_RANK:
                    continue
                yield file.path, line, f"expected a header with a room in LIBRARIES, found {name}"
            elif not _allowed(file.path, room, rooms):
                where = ", ".join(rooms) or "nowhere"
                yield file.path, line, f"expected {prefix} in {where}, found it in {room}"


def check_core(files):
    for file, room, rank in _cpp(files):
        if rank > LAST_CORE_RANK or file.path == PLANTS:
            continue
        for line, quote, name in file.includes:
            if quote == "<" and name in CORE_HEADERS:
                yield file.path, line, f"expected no <{name}> in {room}: {CORE_HEADERS[name]}"
        for pattern, instead in CORE_TOKENS:
            for match in re.finditer(pattern, file.code):
                yield file.path, file.line_of(match.start()), (
                    f"expected no {match.group().strip()} in {room}: {instead}")


_UNORDERED = re.compile(
    r"\bunordered_(?:map|set|multimap|multiset)\s*<[^;{}()]*>\s*&?\s*(\w+)\s*[;={,)]")


def check_unordered(files):
    """Iterating an unordered container lets the hash decide. Sees names declared in the file and in
    the header of the same name."""
    for file, room, rank in _cpp(files):
        if rank > LAST_CORE_RANK:
            continue
        header = files.get(re.sub(r"\.cc$", ".h", file.path))
        declared = file.code + (header.code if header else "")
        for name in sorted(set(_UNORDERED.findall(declared))):
            walk = re.compile(
                rf"for\s*\([^;{{}}]*:\s*(?:this->)?{name}\s*\)|\b{name}\s*\.\s*c?begin\s*\(")
            for match in walk.finditer(file.code):
                yield file.path, file.line_of(match.start()), (
                    f"expected an ordered walk in {room}, found one over {name}")


def check_size(files):
    for file in files.values():
        if not MEASURED.search(file.path):
            continue
        for number, line in enumerate(file.lines, 1):
            if len(line) > MOST_COLUMNS:
                yield file.path, number, f"expected <= {MOST_COLUMNS} columns, found {len(line)}"
        if len(file.lines) > MOST_LINES:
            yield file.path, MOST_LINES, f"expected <= {MOST_LINES} lines, found {len(file.lines)}"


def check_headers(files):
    for file in files.values():
        if not file.path.endswith(".h"):
            continue
        if not file.text.startswith("// "):
            yield file.path, 1, "expected a first comment that says what the header represents"
        if not re.search(r"^#pragma once$", file.text, re.MULTILINE):
            yield file.path, 1, "expected #pragma once, found none"


def check_first_include(files):
    """A source includes its header first, which shows that the header brings what it needs."""
    for file, _, rank in _cpp(files):
        header = re.sub(r"\.cc$", ".h", file.path)
        if rank == FREE_RANK or header == file.path or header not in files:
            continue
        line, _, name = file.includes[0] if file.includes else (1, "", "nothing")
        if name != header:
            yield file.path, line, f"expected {header} as the first include, found {name}"


def check_readmes(files):
    """Top-level folders and rooms say what they are for and what they may not do."""
    folders = set()
    for path in files:
        top = path.split("/")[0]
        if "/" in path and not top.startswith("."):
            folders.add(top)
        if room_of(path):
            folders.add(room_of(path))
    for folder in sorted(folders):
        readme = files.get(f"{folder}/README.md")
        if readme is None:
            yield f"{folder}/README.md", 1, "expected a file, found none"
        elif not readme.text.startswith("# "):
            yield readme.path, 1, "expected a title, found none"


def check_scripts(files):
    for file in files.values():
        if not file.is_script:
            continue
        if not file.executable:
            yield file.path, 1, "expected an executable file"
        if not file.text.startswith("#!"):
            yield file.path, 1, "expected a #! line first"
        if not re.search(r"^set -euo pipefail$", file.text, re.MULTILINE):
            yield file.path, 1, "expected the line set -euo pipefail, found none"


def _check_text(files, pattern, expected):
    for file in files.values():
        if not PROSE_OR_CODE.search(file.path):
            continue
        for match in pattern.finditer(file.text):
            line = file.line_of(match.start())
            yield file.path, line, f"expected {expected}, found {match.group()}"


def check_finished(files):
    yield from _check_text(files, UNFINISHED, "finished work")


def check_paths(files):
    yield from _check_text(files, MACHINE_PATH, "no path of one machine")


RULES = {
    "layers": check_layers,
    "libraries": check_libraries,
    "core": check_core,
    "unordered": check_unordered,
    "size": check_size,
    "headers": check_headers,
    "first_include": check_first_include,
    "readmes": check_readmes,
    "scripts": check_scripts,
    "finished": check_finished,
    "paths": check_paths,
    "units": rules_shape.check_units,
    "functions": rules_shape.check_functions,
    "booleans": rules_shape.check_booleans,
    "loops": rules_shape.check_loops,
    "engine": rules_shape.engine_rule(RANKS),
    "methods": rules_shape.check_methods,
    "tables": rules_tables.tables_rule(RANKS, room_of),
    "api": rules_text.check_api,
    "torn": rules_text.check_torn,
    "comments": rules_text.check_comments,
    "decisions": rules_text.check_decisions,
    "documents": rules_text.check_documents,
    "named_files": rules_text.check_named_files,
}
