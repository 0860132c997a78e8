#!/usr/bin/env python3
"""Marks on rare branches that no test reached (topology/base/mark.h).

check.py --reached FILE   compares the marks of the sources with the names in FILE, which the test
                          binaries wrote, and removes FILE: the next run begins anew; exit 1 when
                          one was missed
check.py --list           prints the marks of the sources
check.py --self-test      shows the check its own faults
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ["topology", "policy", "quota", "scheduler"]
MARK = re.compile(r"\bTRANCHE_MARK\((\w*)\)")

# Marks that no unit, scenario or property test reaches, and why that is right. One that is reached
# after all must leave this list.
EXCEPTIONS = {}


def marks_in(root):
    """Name -> places of all marks below the rooms."""
    found = {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".cc", ".h") or path.name == "mark.h":
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                for name in MARK.findall(line):
                    found.setdefault(name, []).append(f"{path.relative_to(root)}:{number}")
    return found


def faults(marks, reached, exceptions):
    """What is wrong, a sentence each."""
    for name, places in sorted(marks.items()):
        if len(places) > 1:
            yield f"{places[1]}: expected one mark {name}, found another in {places[0]}"
        if name not in reached and name not in exceptions:
            yield f"{places[0]}: expected a test that reaches {name}, found none"
    for name in sorted(exceptions):
        if name not in marks:
            yield f"EXCEPTIONS: expected a mark {name}, found none"
        elif name in reached:
            yield f"EXCEPTIONS: expected no test that reaches {name}, found one"
    if not reached:
        yield "expected marks that tests reached, found none: nothing was measured"


def self_test():
    marks = {"one": ["a.cc:1"], "two": ["a.cc:2"], "three": ["b.cc:1", "b.cc:9"]}
    rows = [
        ({"one", "two", "three"}, {}, ["found another in b.cc:1"]),
        ({"one", "three"}, {}, ["b.cc:1", "a.cc:2: expected a test that reaches two"]),
        ({"one", "three"}, {"two": "why"}, ["b.cc:1"]),
        ({"one", "two", "three"}, {"two": "why"}, ["b.cc:1", "no test that reaches two"]),
        ({"one", "two", "three"}, {"four": "why"}, ["b.cc:1", "expected a mark four"]),
        (set(), {"one": "", "two": "", "three": ""}, ["b.cc:1", "nothing was measured"]),
    ]
    for reached, exceptions, expected in rows:
        told = list(faults(marks, reached, exceptions))
        if len(told) != len(expected) or not all(
                any(part in fault for fault in told) for part in expected):
            sys.exit(f"expected {expected}, found {told}")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "quota" / "x.cc"
        source.parent.mkdir()
        source.write_text("void F() {\n  TRANCHE_MARK(seldom);\n}\n", encoding="utf-8")
        if marks_in(pathlib.Path(folder)) != {"seldom": ["quota/x.cc:2"]}:
            sys.exit("expected the mark of x.cc, found another answer")
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    marks = marks_in(ROOT)
    if sys.argv[1:] == ["--list"]:
        return print("\n".join(f"{name} {places[0]}" for name, places in sorted(marks.items())))
    if len(sys.argv) != 3 or sys.argv[1] != "--reached":
        sys.exit(__doc__)
    file = pathlib.Path(sys.argv[2])
    reached = set(file.read_text(encoding="utf-8").split()) if file.exists() else set()
    found = list(faults(marks, reached, EXCEPTIONS))
    print("\n".join(found))
    print(f"{len(marks)} marks, {len(marks.keys() & reached)} reached, {len(EXCEPTIONS)} excepted")
    file.unlink(missing_ok=True)
    return sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
