#!/usr/bin/env python3
"""Plants the faults of the sources one at a time and says which test finds each.

    test/plants/run.py BUILD [--by tests|simulator] [--seeds A..B] [--only NAME ...]
                       [--out FILE.json]

BUILD is a folder configured with `cmake --preset plants`. For every TRANCHE_PLANTED(name) in the
sources the unit and property tests and the simulator (or one of both, --by) are run with that
fault, each until the first failure. Exit 1 where a fault was found by none of them. One line a
fault, as it is done.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("topology", "policy", "quota", "scheduler")
PLANTED = re.compile(r"TRANCHE_PLANTED\((\w+)\)")
FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.MULTILINE)
FAILED_SEED = re.compile(r"seed (\d+) FAILED: (\w+)")


def plants():
    """Names of the faults, with the file each is in."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.cc")):
            for name in PLANTED.findall(path.read_text()):
                found.setdefault(name, str(path.relative_to(ROOT)))
    return found


def run(command, plant, limit):
    """Output and exit status; a run that does not end counts as failed."""
    environment = dict(os.environ, TRANCHE_PLANT=plant)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=limit, check=False)
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace"), "does not end"
    return done.stdout + done.stderr, done.returncode


def by_tests(build, plant):
    """The first test of that binary's kind that fails; None: none does."""
    for name in ("unit_tests", "property_tests"):
        binary = build / "bin" / name
        output, status = run([str(binary), "--gtest_fail_fast", "--gtest_brief=1",
                              "--gtest_filter=-*Drivers*"], plant, 300)
        if status == 0:
            continue
        failed = FAILED.search(output)
        return f"{name}: {failed.group(1) if failed else status}"
    return None


def by_simulator(build, plant, seeds):
    """Checker and number of seeds until it failed; None: all passed."""
    first, last = (int(part) for part in seeds.split(".."))
    binary = build / "bin" / "tranche-sim"
    command = [str(binary), "--out", os.devnull, "--seeds"]
    seed = first
    while seed <= last:
        until = min(seed + 9, last)
        output, status = run(command + [f"{seed}..{until}"], plant, 600)
        found = FAILED_SEED.search(output)
        if status != 0 and not found:
            return f"ends with {status} within {until - first + 1} seeds"
        if found:
            until = int(found.group(1))
            # One that fails without the fault too says nothing about it.
            if run(command + [f"{until}..{until}"], "", 600)[1] == 0:
                return f"{found.group(2)} after {until - first + 1} seeds"
        seed = until + 1
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--by", choices=("tests", "simulator"))
    parser.add_argument("--seeds", default="1..2000", help="of the simulator")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    known = plants()
    unknown = set(given.only) - set(known)
    if unknown:
        sys.exit(f"expected names of planted faults, found {', '.join(sorted(unknown))}")
    rows = []
    width = max(map(len, known))
    for name, where in sorted(known.items()):
        if given.only and name not in given.only:
            continue
        began = time.monotonic()
        tests = None if given.by == "simulator" else by_tests(given.build, name)
        simulator = (None if given.by == "tests"
                     else by_simulator(given.build, name, given.seeds))
        rows.append({"fault": name, "file": where, "tests": tests, "simulator": simulator})
        print(f"{name:<{width}}  {tests or '-':<60}  {simulator or '-'}"
              f"  ({time.monotonic() - began:.0f} s)", flush=True)
    missed = [row["fault"] for row in rows if not row["tests"] and not row["simulator"]]
    if given.out:
        given.out.write_text(json.dumps({"plants": rows}, indent=1) + "\n")
    print(f"{len(rows) - len(missed)} faults found, {len(missed)} not found: {', '.join(missed)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
