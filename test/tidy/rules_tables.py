"""The tables of rooms in READMEs equal `RANKS`, and what they promise of includes holds.

Every rule takes all files (path -> File) and yields (path, line, what was found and expected).
"""

import posixpath
import re

_ROW = re.compile(r"^\|\s*`([\w/]+)/?`\s*\|(.*)\|\s*$")
FEWEST_ROOMS = 3  # a folder of fewer rooms may name them in a sentence


def _rows(file):
    """(line, room, its last cell) of the table that is headed "room"."""
    inside = False
    for number, line in enumerate(file.lines, 1):
        if re.match(r"^\|\s*room\s*\|", line):
            inside = True
        elif not line.startswith("|"):
            inside = False
        row = _ROW.match(line) if inside else None
        if row:
            room = posixpath.join(file.folder, row.group(1).rstrip("/"))
            yield number, room, row.group(2).split("|")[-1].strip()


def _has_may_include(file):
    return re.search(r"^\|\s*room\s*\|.*\|\s*may include\s*\|\s*$", file.text, re.MULTILINE)


def _below(room, ranks):
    """The rooms that a word of the table means: itself and the rooms inside it."""
    return {other for rooms in ranks for other in rooms
            if other == room or other.startswith(room + "/")}


def tables_rule(ranks, room_of):
    rank_of = {room: rank for rank, rooms in enumerate(ranks) for room in rooms}

    def children(parent):
        found = {}
        for room, rank in rank_of.items():
            if room.startswith(parent + "/"):
                child = posixpath.join(parent, room[len(parent) + 1:].split("/")[0])
                found[child] = max(rank, found.get(child, 0))
        return found

    def allowed(room, rows, seen=()):
        """What a row promises: the rooms it names and all they may include."""
        result = set()
        for word in rows.get(room, []):
            named = posixpath.join("scheduler", word)
            named = named if _below(named, ranks) else word
            result |= _below(named, ranks)
            if named in rows and named not in seen:
                result |= allowed(named, rows, (*seen, named))
            elif named not in rows:  # below scheduler: all that is left of it
                lowest = max((rank_of[r] for r in _below(named, ranks)), default=0)
                result |= {r for r, rank in rank_of.items() if rank < lowest}
        return result

    def check_order(file, parent):
        expected = children(parent)
        found = [(line, room) for line, room, _ in _rows(file)]
        for room in sorted(set(expected) - {room for _, room in found}):
            yield file.path, 1, f"expected a row for {room} in the table of rooms"
        before = -1
        for line, room in found:
            if room not in expected:
                yield file.path, line, f"expected a room of RANKS, found {room}"
            elif expected[room] < before:
                yield file.path, line, f"expected {room} in the order of RANKS"
            else:
                before = expected[room]

    def check_promises(file, files):
        rows = {room: [w.strip(" `/") for w in cell.split(",")] for _, room, cell in _rows(file)}
        lines = {room: line for line, room, _ in _rows(file)}
        for room, words in rows.items():
            own = min((rank_of[r] for r in _below(room, ranks)), default=-1)
            for word in words:
                named = _below(posixpath.join("scheduler", word), ranks) or _below(word, ranks)
                if not named or any(rank_of[r] >= own for r in named):
                    yield file.path, lines[room], f"expected a room of a lower rank, found {word}"
        for other in files.values():
            room = next((r for r in rows if other.is_cpp and other.path.startswith(r + "/")), None)
            for line, quote, name in other.includes if room else []:
                target = room_of(name) if quote == '"' else None
                if target and not target.startswith(room) and target not in allowed(room, rows):
                    yield other.path, line, (
                        f"expected {target} among what {file.path} lets {room} include")

    def check(files):
        parents = {posixpath.dirname(room) for room in rank_of} - {""}
        for parent in sorted(parents):
            file = files.get(f"{parent}/README.md")
            if file is not None and len(children(parent)) >= FEWEST_ROOMS:
                yield from check_order(file, parent)
                if _has_may_include(file):
                    yield from check_promises(file, files)
    return check
