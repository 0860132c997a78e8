#!/usr/bin/env python3
"""Plants the faults of the sources one at a time and says what finds each.

    test/plants/run.py BUILD [--seeds A..B] [--lives N] [--only NAME ...] [--journal FILE]
                       [--readme] [--by tests]

BUILD is a folder configured with `cmake --preset plants`. Each seed is run once by the simulator
without any fault; that run says which faults' places it comes by. Where it passes, it is run again
with each of those faults that was not found yet: a run that does not come by the place would be
the same run. All faults get a few seeds before any gets many.

Each run is a line of the journal as it is done, with the digest of the simulator: what is there
already is not run again. A run that does not end says nothing. --readme writes the table into the
README beside this file. --by tests: unit and property tests instead, until the first failure.
Exit 1 where a fault was not found.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = Path(__file__).resolve().parent / "README.md"
ROOMS = ("topology", "policy", "quota", "scheduler")
PLANTED = re.compile(r"TRANCHE_PLANTED\((\w+)\)")
FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.MULTILINE)
ROUNDS = (10, 40, 150, 500)  # so many seeds for every fault, before any gets more
MOST_SECONDS = 60  # of processor time of one run


def plants():
    """Names of the faults, with the file each is in."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.cc")):
            for name in PLANTED.findall(path.read_text()):
                found.setdefault(name, str(path.relative_to(ROOT)))
    return found


def run(command, plant, limit):
    """Output and exit status; None: it did not end within so many seconds of processor time."""
    environment = dict(os.environ, TRANCHE_PLANT=plant)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)))
    ended = done.returncode not in (-signal.SIGXCPU, -signal.SIGKILL)
    return done.stdout + done.stderr, done.returncode if ended else None


def by_tests(build, plant):
    """The first unit or property test that fails; None: none does."""
    for name in ("unit_tests", "property_tests"):
        binary = build / "bin" / name
        output, status = run([str(binary), "--gtest_fail_fast", "--gtest_brief=1",
                              "--gtest_filter=-*Drivers*"], plant, 600)
        if status == 0:
            continue
        failed = FAILED.search(output)
        ends = "does not end" if status is None else f"ends with {status}"
        return f"{name}: {failed.group(1) if failed else ends}"
    return None


class Runs:
    """Runs of single seeds, kept in a journal. A run is what the simulator says of it:
    "checker" (empty: passed; None: it did not end), "digest", and "plants" it came by."""

    def __init__(self, build, lives, journal):
        self.binary = build / "bin" / "tranche-sim"
        self.lives = lives
        self.journal = journal
        self.of = f"{hashlib.sha256(self.binary.read_bytes()).hexdigest()[:16]} {lives}"
        self.known = {}
        if journal and journal.exists():
            for line in journal.read_text().splitlines():
                entry = json.loads(line)
                if entry["of"] == self.of:
                    self.known[entry["plant"], entry["seed"]] = entry

    def run(self, plant, seed):
        if (plant, seed) not in self.known:
            entry = {"of": self.of, "plant": plant, "seed": seed, **self.simulate(plant, seed)}
            self.known[plant, seed] = entry
            if self.journal:
                with self.journal.open("a") as out:
                    out.write(json.dumps(entry) + "\n")
        return self.known[plant, seed]

    def simulate(self, plant, seed):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [str(self.binary), "--seeds", str(seed), "--lives", str(self.lives),
                       "--faults", "all,trial", "--out", out.name]
            output, status = run(command, plant, MOST_SECONDS)
            if status is None:
                return {"checker": None, "digest": "", "plants": []}
            if status not in (0, 1):  # it crashed; what it came by is not known
                return {"checker": f"ends with {status}", "text": output[-300:], "digest": "",
                        "plants": []}
            said = json.load(out)
        failed = said["failed"][0] if said["failed"] else {"checker": "", "text": ""}
        return {"checker": failed["checker"], "text": failed["text"],
                "digest": said["digests"][str(seed)],
                "plants": said.get("plants", {}).get(str(seed), [])}


def by_simulator(runs, names, first, last):
    """Of each fault that was found: its checker and after how many seeds."""
    found = {}
    for last_of_round in sorted({min(first + most - 1, last) for most in (*ROUNDS, last)}):
        for seed in range(first, last_of_round + 1):
            if len(found) == len(names):
                return found
            plain = runs.run("", seed)
            if plain["checker"] != "":
                continue  # one that fails without a fault says nothing about it
            for name in names:
                if name in found or name not in plain["plants"]:
                    continue
                with_fault = runs.run(name, seed)
                if with_fault["checker"]:
                    found[name] = (with_fault["checker"], seed - first + 1)
                    print(f"{name}: {found[name][0]} after {found[name][1]} seeds", flush=True)
        left = [name for name in names if name not in found]
        print(f"seeds {first}..{last_of_round}: {len(left)} of {len(names)} not found", flush=True)
    return found


def tell_missed(runs, name):
    """How near it was to being found."""
    came_by = [seed for (plant, seed), entry in runs.known.items()
               if plant == "" and name in entry["plants"]]
    differ = [seed for (plant, seed), entry in runs.known.items()
              if plant == name and entry["digest"] != runs.known["", seed]["digest"]]
    print(f"{name}: NOT FOUND; {len(came_by)} seeds came by it, {len(differ)} went another way "
          f"({', '.join(map(str, sorted(differ)[:5])) or 'none'})")


def table(known, found):
    """Markdown, a row a fault."""
    rows = ["| fault | file | checker | seeds |", "|---|---|---|---|"]
    for name, where in sorted(known.items()):
        checker, seeds = found.get(name, ("-", "not found"))
        rows.append(f"| {name} | {where} | {checker} | {seeds} |")
    return "\n".join(rows)


def write_readme(text, given):
    head = README.read_text().split("\nFound by the simulator")[0]
    found = (f"Found by the simulator among seeds {given.seeds} of {given.lives} pods, by which "
             "checker and after how many:")
    README.write_text(f"{head}\n{found}\n\n{text}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--by", choices=("tests", "simulator"), default="simulator")
    parser.add_argument("--seeds", default="1..2000")
    parser.add_argument("--lives", type=int, default=100, help="pods of each seed")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--readme", action="store_true")
    given = parser.parse_args()
    known = plants()
    unknown = set(given.only) - set(known)
    if unknown:
        sys.exit(f"expected names of planted faults, found {', '.join(sorted(unknown))}")
    names = [name for name in sorted(known) if not given.only or name in given.only]
    missed = []
    if given.by == "tests":
        for name in names:
            test = by_tests(given.build, name)
            missed += [] if test else [name]
            print(f"{name}: {test or 'NOT FOUND'}", flush=True)
    else:
        first, last = (int(part) for part in given.seeds.split(".."))
        runs = Runs(given.build, given.lives, given.journal)
        found = by_simulator(runs, names, first, last)
        missed = [name for name in names if name not in found]
        for name in missed:
            tell_missed(runs, name)
        text = table({name: known[name] for name in names}, found)
        print(text)
        if given.readme:
            write_readme(text, given)
    print(f"{len(names) - len(missed)} faults found, {len(missed)} not found")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
