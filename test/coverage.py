#!/usr/bin/env python3
"""Prints which lines and decisions of the product the tests reached, by room, and judges it.

See coverage.sh. A decision is every operand of if, while, for, ?:, && and || and every case of a
switch in our sources, as the compiler counted it, with two ways to go each; what calls do when they
throw, code that the compiler adds for ends of scopes, values that an enum does not have, and checks
that end the process (TRANCHE_CHECK) are none.

A comment "Unreachable: REASON" above a statement takes what of it is not reached out of the count,
and is reported where all of it is reached.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

DECIDES = re.compile(r"\b(if|while|for|switch|case|default)\b|&&|\|\||\?|TRANCHE_(RETURN|ASSIGN)_")
CHECKS = re.compile(r"\s*TRANCHE_CHECK|.*= default;")
UNREACHABLE = re.compile(r"\s*// Unreachable: \S")


class Source:
    """The text of a file, and what of it decides or is marked."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            # Comments and text in quotes decide nothing.
            self.raw = file.read().split("\n")
        self.code = [re.sub(r"//.*", "", re.sub(r'"(\\.|[^"\\])*"', '""', line))
                     for line in self.raw]
        self.first, self.last = self.statements()
        self.marked = self.marks()

    def statements(self):
        """The first and the last line of the statement that each line belongs to."""
        first, last, begin = [], [], 0
        for at, line in enumerate(self.code):
            first.append(begin)
            text = line.strip()
            if not text or text[-1] in ";{}:" or text[0] == "#":
                last += [at] * (at + 1 - begin)
                begin = at + 1
        return first, last + [len(self.code) - 1] * (len(self.code) - begin)

    def marks(self):
        """Line of a mark: the lines of the statement below it."""
        found = {}
        for at, line in enumerate(self.raw):
            if not UNREACHABLE.match(line):
                continue
            begin = at + 1
            while not self.code[begin].strip():
                begin += 1
            found[at] = self.body(begin)
        return found

    def body(self, at):
        """The lines from a statement on, to the end of the block it opens."""
        end = self.last[at]
        if self.code[end].rstrip().endswith("{"):
            indent = re.match(" *", self.code[at]).group() + "}"
            while not self.code[end].startswith(indent):
                end += 1
        return range(at, end + 1)

    def cases(self, at):
        """Of a switch that names no default, the line of each case; else none."""
        if not re.match(r" *switch \(", self.code[at]):
            return []
        body = self.body(at)
        if any(re.match(r" *default:", self.code[one]) for one in body):
            return []
        return [one for one in body if re.match(r" *case [^:]", self.code[one])]

    def is_code(self, at):
        return re.search(r"[^\s{}();,]", self.code[at]) is not None

    def decides(self, at):
        line = self.code[at]
        if not self.is_code(at) or CHECKS.match(line) or re.fullmatch(r"\s*\} else \{", line):
            return False
        return any(DECIDES.search(self.code[one])
                   for one in range(self.first[at], self.last[at] + 1))


def ways_of(branches):
    """How often each way of a line's decisions was taken."""
    ways, i = [], 0
    while i < len(branches):
        if i + 1 < len(branches) and branches[i]["throw"] != branches[i + 1]["throw"]:
            i += 2  # a call that returns or throws
            continue
        if not branches[i]["throw"]:
            ways.append(branches[i]["count"])
        i += 1
    return ways


def counts_of(notes, root):
    """What gcov tells of an object: (file, line, function's place): (count, ways)."""
    told = subprocess.run(["gcov", "-b", "-j", "-t", "-r", "-s", root, notes], check=True,
                          capture_output=True, text=True, cwd=os.path.dirname(notes)).stdout
    counts = []
    for file in (file for line in told.splitlines() for file in json.loads(line)["files"]):
        path = os.path.relpath(os.path.join(root, file["file"]), root)
        if not re.match(r"(topology|policy|quota|scheduler)/", path) or not os.path.exists(path):
            continue
        # Instances of a template and the variants of a constructor stand at one place.
        places = {one["name"]: (one["start_line"], one["start_column"])
                  for one in file["functions"]}
        counts += [((path, line["line_number"] - 1, places.get(line.get("function_name"))),
                    line["count"], ways_of(line["branches"])) for line in file["lines"]]
    return counts


def measure(build, root):
    """Of each file's lines: the count, and how often each way was taken."""
    objects = [os.path.join(folder, name) for folder, _, names in os.walk(build)
               for name in names if name.endswith(".gcno")]
    reached, taken = defaultdict(lambda: defaultdict(int)), {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for counts in pool.map(lambda notes: counts_of(notes, root), sorted(objects)):
            for (path, at, place), count, ways in counts:
                reached[path][at] += count
                sums = taken.setdefault((path, at, place, len(ways)), [0] * len(ways))
                sums[:] = map(sum, zip(sums, ways))
    all_ways = defaultdict(list)
    for (path, at, _, _), ways in taken.items():
        all_ways[path, at] += ways
    return reached, all_ways


def decisions_of(source, at, lines, ways):
    """The ways of a line, without those that are no decision of ours."""
    if not source.decides(at) or lines[at] == 0:
        return ways if source.decides(at) else []
    cases = source.cases(at)
    if cases:
        # All values of an enum are named, which the compiler demands; it adds a way for others.
        begun = [next((lines[one] for one in source.body(at) if one >= case and one in lines), 0)
                 for case in cases]
        if 0 in ways and all(begun):
            ways = ways[:ways.index(0)] + ways[ways.index(0) + 1:]
        return ways
    # Where the line was reached, a test that was never made asks what to destroy after a throw,
    # or lies behind another of the line that went one way only and is told.
    pairs = [ways[i:i + 2] for i in range(0, len(ways), 2)]
    return [way for pair in pairs if any(pair) for way in pair]


def judge_file(path, lines, all_ways, told):
    """Lines, reached ones, ways, taken ones; adds what was missed, and marks that are wrong."""
    source = Source(path)
    missed_lines, missed_ways = {}, {}
    row = [0, 0, 0, 0]
    excused = {at for marked in source.marked.values() for at in marked}
    for at, count in sorted(lines.items()):
        if not source.is_code(at):
            continue
        ways = decisions_of(source, at, lines, all_ways[path, at])
        taken = sum(way > 0 for way in ways)
        if count == 0:
            missed_lines[at] = source.raw[at].strip()
        if taken < len(ways):
            times = " ".join(map(str, ways))
            missed_ways[at] = f"{taken} of {len(ways)} ways ({times}): {source.raw[at].strip()}"
        missed = count == 0, len(ways) - taken
        if at in excused:
            row = [row[0] + (not missed[0]), row[1] + (count > 0), row[2] + taken, row[3] + taken]
        else:
            row = [row[0] + 1, row[1] + (count > 0), row[2] + len(ways), row[3] + taken]
    for at, marked in source.marked.items():
        if not any(one in missed_lines or one in missed_ways for one in marked):
            told["marks"].append(f"{path}:{at + 1}")
    for at, text in missed_lines.items():
        if at not in excused:
            told["lines"].append(f"{path}:{at + 1}: {text}")
    for at, text in missed_ways.items():
        if at not in excused:
            told["ways"].append(f"{path}:{at + 1}: {text}")
    return row


EXAMPLE = """#include <string>
#define TRANCHE_CHECK(condition) if (!(condition)) __builtin_trap()
int Positive(int x) { return x > 0 ? x + 1 : 7; }
bool Both(bool a, bool b) {
  return a &&
         b;
}
template <typename T>
T Half(T x) {
  if (x < 0) return 0;
  return x / 2;
}
int Named(int x) {
  switch (x) {
    case 1: return 10;
    case 2: return 20;
  }
  return 0;
}
enum class Kind { kOne, kTwo };
bool Is(Kind kind) {
  switch (kind) {
    case Kind::kOne:
      return true;
    case Kind::kTwo:
      return false;
  }
  return false;
}
bool Same(const std::string& text) { return !text.empty() && text + "x" == "textx"; }
void Ended(const std::string& text) {
  TRANCHE_CHECK(text != "a ? b : c");
  const std::string copy = text + "if";
  // Unreachable: main() says nothing that is empty.
  if (copy.empty()) {
    Positive(1);
  }
  // Unreachable: a lie.
  Positive(2);
}
int main() {
  Positive(1);
  Both(true, true);
  Both(true, false);
  Half(-2);
  Half(3.0);
  Named(1);
  Named(3);
  Is(Kind::kOne);
  Is(Kind::kTwo);
  Same("text");
  Same("other");
  Same("");
  Ended("text");
}
"""
EXAMPLE_WAYS = ["3: 1 of 2", "5: 3 of 4", "14: 2 of 3"]


def self_test():
    """Shows the count its own faults, with the compiler that will be used."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("quota")
        with open("quota/x.cc", "w", encoding="utf-8") as file:
            file.write(EXAMPLE)
        subprocess.run(["c++", "--coverage", "-O0", "-o", "x", folder + "/quota/x.cc"], check=True)
        subprocess.run(["./x"], check=True)
        reached, all_ways = measure(folder, folder)
        told = defaultdict(list)
        row = judge_file("quota/x.cc", reached["quota/x.cc"], all_ways, told)
        ways = [re.match(r"quota/x.cc:(.*) ways", one).group(1) for one in told["ways"]]
        if ways != EXAMPLE_WAYS or told["marks"] != ["quota/x.cc:38"] or row != [39, 37, 20, 17]:
            sys.exit(f"expected {EXAMPLE_WAYS}, found {ways}, {told}, {row}")
    print("ok")


def share(part, whole):
    return f"{100 * part / whole:6.1f} %" if whole else "       -"


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="folder of a build with counters")
    parser.add_argument("--must", required=True, help="files whose every decision is to be taken")
    parser.add_argument("--least-lines", type=float, required=True,
                        help="per cent, of all rooms together and of each of those files' rooms")
    parser.add_argument("--lines", metavar="FILES", help="list lines of these that none reached")
    given = parser.parse_args()
    root = os.getcwd()
    reached, all_ways = measure(os.path.abspath(given.build), root)
    rooms, told = defaultdict(lambda: [0, 0, 0, 0]), defaultdict(list)
    for path, lines in sorted(reached.items()):
        row = judge_file(path, lines, all_ways, told)
        room = rooms[os.path.dirname(path)]
        room[:] = map(sum, zip(room, row))
    total = [sum(column) for column in zip(*rooms.values())] or [0, 0, 0, 0]
    width = max(map(len, rooms), default=4)
    print(f"{'room':<{width}}  {'lines':>8} {'reached':>8}  {'ways':>7} {'taken':>8}")
    for room, row in sorted(rooms.items()) + [("all", total)]:
        print(f"{room:<{width}}  {row[0]:>8} {share(row[1], row[0])}  {row[2]:>7} "
              f"{share(row[3], row[2])}")
    if given.lines:
        print("\n".join(one for one in told["lines"] if re.match(given.lines, one)))
    missed = [one for one in told["ways"] if re.match(given.must, one)]
    if missed:
        print(f"\nDecisions that were not taken every way, of those that must be ({len(missed)}):")
        print("\n".join(missed))
    for mark in told["marks"]:
        print(f"\n{mark}: expected what is marked unreachable not to be reached, found it reached")
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
    return sys.exit(1 if short or missed or lost or told["marks"] else 0)


if __name__ == "__main__":
    main()
