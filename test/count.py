#!/usr/bin/env python3
"""Reads test reports.

count.py FILE ...         prints "PASSED FAILED SKIPPED", the test cases of all files together
count.py --text FILE.json prints what the tests of a go run wrote
count.py --longest FILE.xml ...
                          prints the five test cases that took longest, a line each
count.py --failed FILE ...
                          prints the first ten cases that failed, with the end of what each said

FILE.xml: JUnit as ctest and GoogleTest write it; FILE.json: the events of go test -json; FILE.tap:
TAP as node --test writes it, several reports one after another.

A go test with subtests is not counted itself, its subtests are. A package that failed without a
failed test (it did not build, or ended early) counts as one failure.
"""

import json
import re
import sys
import xml.etree.ElementTree


def count_junit(path):
    passed = failed = skipped = 0
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.get("status") == "fail":
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def go_events(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("{"):  # what the go command itself says is no event
                yield json.loads(line)


def count_go(path):
    outcomes, packages_failed = {}, 0
    for event in go_events(path):
        if event.get("Action") not in ("pass", "fail", "skip"):
            continue
        if "Test" in event:
            outcomes[event.get("Package", ""), event["Test"]] = event["Action"]
        elif event["Action"] == "fail":
            packages_failed += 1
    parents = {(package, test[:cut]) for package, test in outcomes
               for cut in range(len(test)) if test[cut] == "/"}
    # A parent can fail by itself, after its subtests passed.
    leaves = [outcome for key, outcome in outcomes.items()
              if key not in parents or (outcome == "fail" and not any(
                  other[0] == key[0] and other[1].startswith(key[1] + "/") and result == "fail"
                  for other, result in outcomes.items()))]
    failed = leaves.count("fail")
    if packages_failed and not failed:
        failed = packages_failed
    return leaves.count("pass"), failed, leaves.count("skip")


def count_tap(path):
    """Sums of the lines "# pass 3"; what was cancelled or is to be done has failed."""
    sums = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if len(words) == 3 and words[0] == "#" and words[2].isdigit():
                sums[words[1]] = sums.get(words[1], 0) + int(words[2])
    failed = sums.get("fail", 0) + sums.get("cancelled", 0) + sums.get("todo", 0)
    return sums.get("pass", 0), failed, sums.get("skipped", 0)


def failed_junit(path):
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        failure = case.find("failure")
        if failure is not None or case.get("status") == "fail":
            said = "" if failure is None else (failure.text or "") or failure.get("message", "")
            yield case.get("name"), said or case.findtext("system-out") or ""


def failed_go(path):
    said, failed = {}, []
    for event in go_events(path):
        if event.get("Action") == "output":
            said.setdefault(event.get("Test"), []).append(event.get("Output", ""))
        elif event.get("Action") == "fail" and "Test" in event:
            failed.append(event["Test"])
    for name in failed:
        yield name, "".join(said.get(name, []))


def failed_tap(path):
    name, said = None, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if re.match(r"\s*(not )?ok \d+ - ", line) or line.startswith("#"):
                if name:
                    yield name, "".join(said)
                found = re.match(r"\s*not ok \d+ - (.*)", line)
                name, said = found and found.group(1), []
            elif name and not re.match(r"\s*(---|\.\.\.|duration_ms|type|location|stack)", line):
                said.append(line)
    if name:
        yield name, "".join(said)


def print_failed(paths):
    shown = 0
    for path in paths:
        for name, said in FAILED.get(path.rpartition(".")[2], failed_junit)(path):
            lines = [line.rstrip()[:300] for line in said.splitlines() if line.strip()]
            print(f"  {name}")
            for line in lines[-12:]:
                print(f"    {line}")
            shown += 1
            if shown == 10:
                return


def print_longest(paths):
    timed = [(float(case.get("time") or 0), case.get("name"))
             for path in paths
             for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase")]
    for seconds, name in sorted(timed, reverse=True)[:5]:
        print(f"  {seconds:7.1f} s  {name}")


COUNTERS = {"json": count_go, "tap": count_tap}
FAILED = {"json": failed_go, "tap": failed_tap}


def main():
    if sys.argv[1] == "--text":
        for event in go_events(sys.argv[2]):
            sys.stdout.write(event.get("Output", ""))
        return
    if sys.argv[1] == "--longest":
        print_longest(sys.argv[2:])
        return
    if sys.argv[1] == "--failed":
        print_failed(sys.argv[2:])
        return
    totals = [0, 0, 0]
    for path in sys.argv[1:]:
        counts = COUNTERS.get(path.rpartition(".")[2], count_junit)(path)
        totals = [total + count for total, count in zip(totals, counts)]
    print(*totals)


if __name__ == "__main__":
    main()
