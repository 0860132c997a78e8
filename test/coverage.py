#!/usr/bin/env python3
"""Prints what gcovr measured, by room, and judges it: see coverage.sh."""

import argparse
import json
import re
import sys
from collections import defaultdict


def decisions_of(line):
    """Ways a line's decision can go, and how many of them were taken."""
    decision = line.get("gcovr/decision") or {}
    kind = decision.get("type")
    if kind == "conditional":
        return 2, (decision["count_true"] > 0) + (decision["count_false"] > 0)
    if kind == "switch":
        return 1, int(decision["count"] > 0)
    return 0, 0


def share(part, whole):
    return f"{100 * part / whole:6.1f} %" if whole else "       -"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured")
    parser.add_argument("--must", required=True, help="files whose every decision is to be taken")
    parser.add_argument("--least-lines", type=float, required=True,
                        help="per cent, of all rooms together and of each of those files' rooms")
    given = parser.parse_args()
    with open(given.measured, encoding="utf-8") as file:
        files = json.load(file)["files"]
    rooms = defaultdict(lambda: [0, 0, 0, 0])
    missed = []
    for file in files:
        name = file["file"]
        row = rooms[name.rsplit("/", 1)[0]]
        for line in file["lines"]:
            if line.get("gcovr/noncode"):
                continue
            ways, taken = decisions_of(line)
            row[0] += 1
            row[1] += line["count"] > 0
            row[2] += ways
            row[3] += taken
            if taken < ways and re.match(given.must, name):
                missed.append(f"{name}:{line['line_number']}: {taken} of {ways} ways")
    total = [sum(row[i] for row in rooms.values()) for i in range(4)]
    width = max(map(len, rooms))
    print(f"{'room':<{width}}  {'lines':>8} {'reached':>8}  {'ways':>7} {'taken':>8}")
    for room, row in sorted(rooms.items()) + [("all", total)]:
        print(f"{room:<{width}}  {row[0]:>8} {share(row[1], row[0])}  {row[2]:>7} "
              f"{share(row[3], row[2])}")
    if missed:
        print(f"\nDecisions that were not taken every way, of those that must be ({len(missed)}):")
        print("\n".join(missed))
    judged = [(room, row) for room, row in sorted(rooms.items())
              if re.match(given.must, room + "/")] + [("all rooms", total)]
    short = [(room, row) for room, row in judged
             if row[0] == 0 or 100 * row[1] / row[0] < given.least_lines]
    for room, row in short:
        print(f"\n{room}: expected {given.least_lines:g} % of lines reached, found "
              f"{share(row[1], row[0]).strip()}")
    # A pattern that no room has would pass whatever the tests reach.
    lost = [room for room in given.must.split("|") if not any(re.match(room, one + "/")
                                                              for one in rooms)]
    for room in lost:
        print(f"\n{room}: expected lines in that room, found none")
    sys.exit(1 if short or missed or lost else 0)


if __name__ == "__main__":
    main()
