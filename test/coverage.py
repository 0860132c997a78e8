#!/usr/bin/env python3
"""Coverage by room.

coverage.py SUMMARY.json   what gcovr --json-summary wrote; exit 1 where a promise is not kept
coverage.py --self-test    shows the table and the judgement their own faults
"""

import collections
import json
import posixpath
import sys

LEAST_LINES = 90  # percent, of all
# Every branch of these is to be taken by some test.
WHOLE = ("scheduler/index/", "quota/tree/", "scheduler/ledger/", "scheduler/kube/lease.",
         "scheduler/kube/grant.")


def rooms(summary):
    """Room -> lines, lines covered, branches, branches taken."""
    table = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in summary["files"]:
        row = table[posixpath.dirname(file["filename"])]
        for place, key in enumerate(
                ("line_total", "line_covered", "branch_total", "branch_covered")):
            row[place] += file[key]
    return dict(sorted(table.items()))


def percent(part, whole):
    return 100.0 if whole == 0 else 100.0 * part / whole


def faults(summary):
    """What is promised and not so, a sentence each."""
    table = rooms(summary).values()
    lines, covered = sum(row[0] for row in table), sum(row[1] for row in table)
    if percent(covered, lines) < LEAST_LINES:
        yield f"expected {LEAST_LINES} % of lines, found {percent(covered, lines):.1f} %"
    for file in summary["files"]:
        if file["filename"].startswith(WHOLE) and file["branch_covered"] < file["branch_total"]:
            yield (f"{file['filename']}: expected all {file['branch_total']} branches, "
                   f"found {file['branch_covered']}")


def show(summary):
    print(f"{'room':32} {'lines':>8} {'covered':>8} {'branches':>9} {'taken':>8}")
    for room, (lines, covered, branches, taken) in rooms(summary).items():
        print(f"{room:32} {lines:8} {percent(covered, lines):7.1f}% {branches:9} "
              f"{percent(taken, branches):7.1f}%")


def self_test():
    def summary(lines, branches):
        return {"files": [
            {"filename": "quota/tree/a.cc", "line_total": 10, "line_covered": lines,
             "branch_total": 4, "branch_covered": branches},
            {"filename": "scheduler/api/b.cc", "line_total": 10, "line_covered": 10,
             "branch_total": 4, "branch_covered": 1}]}
    rows = [(10, 4, []), (10, 3, ["quota/tree/a.cc"]), (5, 4, ["90 %"]),
            (5, 3, ["90 %", "quota/tree/a.cc"])]
    for lines, branches, expected in rows:
        told = list(faults(summary(lines, branches)))
        if len(told) != len(expected) or not all(
                part in fault for part, fault in zip(expected, told)):
            sys.exit(f"expected {expected}, found {told}")
    if rooms(summary(7, 2))["quota/tree"] != [10, 7, 4, 2]:
        sys.exit("expected a row for quota/tree, found another")
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        summary = json.load(file)
    show(summary)
    found = list(faults(summary))
    print("\n".join(found))
    print(f"{len(found)} promises not kept")
    return sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
