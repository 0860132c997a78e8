"""Runs every command of tranche-bench on tiny inputs and compares what it answers, not how long it
took.

    run.py TRANCHE_BENCH TRANCHE        compares with expected/NAME.json
    run.py --write TRANCHE_BENCH TRANCHE writes those files anew

Expected answers were first written by the build before the folders of the scheduler were moved, so
that a change of any placement shows; those of decide and preempt came later. Keys that hold times,
rates and memory are left out on both sides.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE / "fixtures"
# Keys of figures that differ from run to run.
MEASURED = re.compile(r"(Us|[Mm]icros|Seconds|PerSecond|PerRun|PerPlan|Micros|MiB|HoldCaller|"
                      r"rssRatio|bytesPerPod)$")
# Seconds that a simulation counts are answers.
SIMULATED = re.compile(r"^(queue|jct|median|mean|position|waitMean|boot|idle|checkpoint)")
PLACES = 9  # decimals in which sums over seeds are compared

COMMANDS = {
    "fill": ["fill", "--nodes", "nodes.csv", "--pods", "pods.csv", "--seeds", "1..2", "--jobs", "1",
             "--protocol"],
    "churn": ["fill", "--nodes", "nodes.csv", "--pods", "pods.csv", "--seeds", "1..2", "--jobs",
              "1", "--churn", "--load", "0.9", "--policy", "bestfit,fgd,tranche"],
    "fill-prices": ["fill", "--nodes", "nodes.csv", "--pods", "pods.csv", "--seeds", "1..2",
                    "--jobs", "1", "--policy", "tranche", "--prices", "prices.csv", "--money",
                    "9"],
    "cost": ["cost", "--synthetic-tasks", "60", "--seeds", "1..2", "--offers", "offers.csv",
             "--money", "5000"],
    "cost-traces": ["cost", "--openb", "openb.csv", "--jobs", "jobs.csv", "--tenants",
                    "tenants.csv", "--seeds", "1", "--offers", "offers.csv", "--spot-hours", "2",
                    "--money", "5000"],
    "mig": ["mig", "--gpus", "2", "--mix", "small", "--load", "1.0", "--seeds", "1000", "--policy",
            "first-fit,best-fit,blocked,fgd-mig,tranche+5"],
    "tenants": ["tenants", "--jobs", "jobs.csv", "--tenants", "tenants.csv"],
    "ring": ["ring", "--matrix", "quads.csv", "--seeds", "1..2", "--jobs", "40"],
    "forecast": ["forecast", "--synthetic-jobs", "300", "--every-hours", "12", "--fleet",
                 "20"],
    "gang": ["gang", "--zones", "2", "--blocks", "2", "--racks", "2", "--nodes", "2", "--gangs",
             "40", "--seeds", "1..2", "--scene", "packed-4,random-1"],
    "decide": ["decide", "--nodes", "20", "--rate", "200", "--seconds", "1", "--quota"],
    "preempt": ["preempt", "--nodes", "40", "--gpus-per-node", "8", "--pods", "320", "--turns",
                "60"],
    "claims": ["claims", "--nodes", "20", "--pods", "40"],
    "storm": ["storm", "--nodes", "20", "--scale", "0.002", "--calls", "20", "--no-bounds"],
    "ledger": ["ledger", "--entries", "20000", "--batch", "1000", "--verify"],
    "replay": ["replay", "--nodes", "4", "--pods", "300", "--days", "2"],
    "restart": ["restart", "--ended", "300", "--no-bounds"],
}


def answers(value):
    """Without what was measured, and numbers rounded beyond what a compiler may change."""
    if isinstance(value, dict):
        return {key: answers(inner) for key, inner in value.items()
                if key != "file" and (SIMULATED.match(key) or not MEASURED.search(key))}
    if isinstance(value, list):
        return [answers(inner) for inner in value]
    return round(value, PLACES) if isinstance(value, float) else value


def run(bench, server, arguments, folder):
    out = pathlib.Path(folder) / "out.json"
    command = [bench] + [str(FIXTURES / a) if a.endswith(".csv") else a for a in arguments]
    if arguments[0] in ("fill", "decide", "restart"):
        command += ["--server", server]
    if arguments[0] in ("ledger", "replay", "restart"):
        command += ["--folder", folder]
    done = subprocess.run(command + ["--out", str(out)], cwd=folder, capture_output=True, text=True,
                          timeout=60, check=False)
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr.strip()}"
    return answers(json.loads(out.read_text()))


def differences(expected, found, where=""):
    """Lines that name each place where two answers differ."""
    if type(expected) is not type(found):
        return [f"{where}: expected {expected}, found {found}"]
    if isinstance(expected, dict):
        keys = sorted(expected.keys() | found.keys())
        return [line for key in keys
                for line in differences(expected.get(key), found.get(key), f"{where}.{key}")]
    if isinstance(expected, list):
        if len(expected) != len(found):
            return [f"{where}: expected {len(expected)} elements, found {len(found)}"]
        return [line for i, (one, other) in enumerate(zip(expected, found))
                for line in differences(one, other, f"{where}[{i}]")]
    return [] if expected == found else [f"{where}: expected {expected}, found {found}"]


def refuses(bench):
    """Wrong arguments end with a line on stderr and no figures."""
    done = subprocess.run([bench, "ring", "--matrix", str(FIXTURES / "none.csv")],
                          capture_output=True, text=True, timeout=60, check=False)
    good = done.returncode == 1 and "expected a matrix" in done.stderr and not done.stdout
    return [] if good else [f"expected a refusal, found {done.returncode}: {done.stderr}"]


def figures(bench, server):
    """bench/figures.py tells what ran and what could not, and runs nothing twice."""
    script = HERE.parent.parent / "bench" / "figures.py"
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-B", str(script), "--data", str(FIXTURES), "--out", folder,
                   "--quick", "--bench", bench, "--tranche", server, "--only", "ring", "gang",
                   "ledger"]
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if done.returncode != 0:
                return [f"figures: exit status {done.returncode}: {done.stderr}"]
            written = (pathlib.Path(folder) / "FIGURES.md").read_text()
            states = {path.name: path.stat().st_mtime_ns
                      for path in pathlib.Path(folder).glob("*.state.json")}
            lines.append((written, states))
    (first, ran), (again, reran) = lines
    wanted = ["## Ring", "Not run: expected", "topology/dgx-v.csv, found none", "## Gang",
              "tranche-bench gang --zones 2", "## Ledger"]
    lacks = [f"figures: expected {text!r}, found none" for text in wanted if text not in first]
    if sorted(ran) != ["gang.state.json", "ledger.state.json"]:
        lacks.append(f"figures: expected gang and ledger to run, found {sorted(ran)}")
    if (first, ran) != (again, reran):
        lacks.append("figures: expected nothing to run twice, found other figures")
    return lacks


def as_text(answers):
    """JSON in which a list of numbers takes as few lines as it needs."""
    text = json.dumps(answers, indent=1, sort_keys=True) + "\n"
    return re.sub(r"\[([-+\d.eE,\s]+)\]", lambda numbers: "[" + textwrap.fill(
        " ".join(numbers[1].split()), 96) + "]", text)


def main(arguments):
    write = "--write" in arguments
    bench, server = [os.path.abspath(a) for a in arguments if a != "--write"]
    failed = False
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = run(bench, server, command, folder)
        path = HERE / "expected" / f"{name}.json"
        if write:
            path.write_text(as_text(found))
            continue
        lines = differences(json.loads(path.read_text()), found)
        print(f"{name}: {'ok' if not lines else 'answers differ'}")
        for line in lines[:20]:
            print(f"  {line}")
        failed = failed or bool(lines)
    lines = refuses(bench) + figures(bench, server)
    for line in lines:
        print(line)
    return 1 if failed or lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
