#!/usr/bin/env python3
"""Writes the Grafana dashboards of the chart, or with --check says whether they are current.

The panels are in teams.py and operators.py, Grafana's model in panels.py. Standard library only.
"""

import json
import pathlib
import sys

import operators
import teams

TARGET = pathlib.Path(__file__).resolve().parents[1] / "tranche" / "dashboards"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(f"make.py: expected nothing or --check, found {' '.join(sys.argv[1:])}")
    check = bool(sys.argv[1:])
    stale = []
    for name, module in (("teams.json", teams), ("operators.json", operators)):
        text = json.dumps(module.dashboard(), indent=1) + "\n"
        file = TARGET / name
        if check and (not file.exists() or file.read_text() != text):
            stale.append(name)
        elif not check:
            file.write_text(text)
    if stale:
        sys.exit(f"make.py: expected the output of charts/dashboards/make.py, found another "
                 f"{' and '.join(stale)} in charts/tranche/dashboards")


if __name__ == "__main__":
    main()
