#!/usr/bin/env python3
"""Checks the rules of the tree that no compiler checks; see README.md.

check.py               checks the tree
check.py --self-test   shows every rule a bad example that it must report

Exit codes: 0 all is well, 1 something was reported, 2 usage.
"""

import argparse
import pathlib
import sys

import examples
import rules
import source

ROOT = pathlib.Path(__file__).resolve().parents[2]


def self_test():
    """Returns what is wrong with the rules themselves."""
    wrong = []
    for row, (rule, bad, texts) in enumerate(examples.EXAMPLES):
        files = {path: source.File(path, text.removeprefix("+x "), text.startswith("+x "))
                 for path, text in texts.items()}
        found = list(rules.RULES[rule](files))
        if bool(found) != bad:
            wrong.append(f"example {row} of {rule}: expected {'a' if bad else 'no'} report, "
                         f"found {found} in {texts}")
    for rule in rules.RULES:
        if not any(bad for name, bad, _ in examples.EXAMPLES if name == rule):
            wrong.append(f"{rule}: expected a bad example, found none")
    return wrong


def check_tree():
    files = source.read_tree(ROOT)
    reports = [f"{path}:{line}: {text} [{name}]"
               for name, rule in rules.RULES.items() for path, line, text in rule(files)]
    return sorted(reports), len(files)


def main():
    parser = argparse.ArgumentParser(description="checks the rules of the tree")
    parser.add_argument("--self-test", action="store_true", help="check the rules themselves")
    if parser.parse_args().self_test:
        reports, checked = self_test(), f"{len(examples.EXAMPLES)} examples"
    else:
        reports, count = check_tree()
        checked = f"{count} files"
    for report in reports:
        print(report)
    print(f"tidy: {len(rules.RULES)} rules, {checked}, {len(reports)} reports")
    return 1 if reports else 0


if __name__ == "__main__":
    sys.exit(main())
