"""Runs every benchmark of RESULTS.md on one machine and one commit, and writes what they print.

    bench/figures.py --data DATA --out FOLDER [--only NAME ...] [--quick] [--bench B] [--tranche T]

DATA holds openb/, philly-vc/ and topology/ as bench/README.md says; benchmarks whose files are not
there are left out, and FIGURES.md says so. FOLDER gets FIGURES.md (machine, commit, each command
and the tables it printed) and NAME.json and NAME.txt of each; what is there already, of the same
commit, is not run again, so a run that was cut off goes on. --quick: small inputs that say nothing
about the product, to see that all of it runs; a minute. The whole takes hours on two cores and
wants nothing else on the machine.
Exit 1 where a benchmark failed.
"""

import argparse
import datetime
import json
import pathlib
import platform
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPENB_LISTS = ["default", "cpu050", "cpu100", "gpushare40", "gpushare60", "gpushare100",
               "gpuspec10", "gpuspec20", "gpuspec25", "multigpu20", "multigpu30"]


class Benchmark:
    """A section of FIGURES.md: arguments of tranche-bench, {data} being the folder of traces."""

    def __init__(self, name, title, command, quick, server=False, folder=False):
        self.name = name
        self.title = title
        self.command = command
        self.quick = quick
        self.server = server  # it starts a program: --server
        self.folder = folder  # it writes files: --folder


def openb(lists):
    return ["--nodes", "{data}/openb/openb_node_list_gpu_node.csv", "--pods",
            *[f"{{data}}/openb/openb_pod_list_{name}.csv" for name in lists]]


PHILLY = ["--jobs", "{data}/philly-vc/jobs.csv", "--tenants", "{data}/philly-vc/vc_nodes.csv"]
SMALL_FLEET = ["--fleet", "40", "--seeds", "42..42"]

BENCHMARKS = [
    Benchmark("fill", "Filling a cluster",
              ["fill", *openb(OPENB_LISTS), "--tune", "1.3", "--seeds", "42..51"],
              ["fill", *openb(["default"]), *SMALL_FLEET]),
    Benchmark("protocol", "Filling a cluster over HTTP",
              ["fill", *openb(["default", "gpuspec25"]), "--policy", "fgd", "tranche", "--protocol",
               "--seeds", "42..43"],
              ["fill", *openb(["default"]), "--policy", "tranche", "--protocol", *SMALL_FLEET],
              server=True),
    Benchmark("churn", "Steady state: pods also leave",
              ["fill", *openb(["default", "gpushare100", "gpuspec25", "multigpu20"]), "--churn",
               "--load", "0.9", "1.0", "--policy", "bestfit", "fgd", "tranche", "--seeds",
               "11..16"],
              ["fill", *openb(["default"]), "--churn", "--load", "0.9", "--policy", "tranche",
               *SMALL_FLEET]),
    Benchmark("mig", "MIG: profiles come and go",
              ["mig", "--gpus", "100", "--mix", "uniform", "--mix", "small", "--mix", "big",
               "--load", "0.85", "1.0", "1.2", "--seeds", "1000..1019"],
              ["mig", "--gpus", "4", "--mix", "small", "--load", "1.0", "--seeds", "1000..1000"]),
    Benchmark("claims", "Claims: filter for pods with resource claims",
              ["claims", "--nodes", "5000", "--pods", "400"],
              ["claims", "--nodes", "50", "--pods", "40"]),
    Benchmark("ring", "Ring: sets of GPUs on one machine",
              ["ring", "--matrix", "{data}/topology/dgx-v.csv", "{data}/topology/dgx-p.csv",
               "{data}/topology/summit.csv", "--seeds", "42..51"],
              ["ring", "--matrix", "{data}/topology/dgx-v.csv", "--seeds", "42..42", "--jobs",
               "40"]),
    Benchmark("gang", "Gang: racks and blocks a gang is spread over",
              ["gang", "--seeds", "42..51"],
              ["gang", "--zones", "2", "--blocks", "2", "--racks", "2", "--nodes", "2", "--gangs",
               "40", "--seeds", "42..42"]),
    Benchmark("decide", "Decisions over HTTP",
              ["decide", "--quota", "--nodes", "5000", "--gpus-per-node", "8", "--fill", "0.5",
               "--rate", "200", "--seconds", "8"],
              ["decide", "--quota", "--nodes", "50", "--rate", "200", "--seconds", "1"],
              server=True),
    Benchmark("decide-large", "Decisions over HTTP, 30,000 nodes",
              ["decide", "--nodes", "30000", "--gpus-per-node", "8", "--fill", "0.5", "--rate",
               "50", "--seconds", "8"],
              ["decide", "--nodes", "80", "--rate", "100", "--seconds", "1"], server=True),
    Benchmark("preempt", "Preemption: planning, 500 nodes",
              ["preempt", "--nodes", "500", "--gpus-per-node", "8", "--pods", "4000", "--seconds",
               "10"],
              ["preempt", "--nodes", "40", "--gpus-per-node", "8", "--pods", "320", "--turns",
               "20"]),
    Benchmark("preempt-large", "Preemption: planning, 5,000 nodes",
              ["preempt", "--nodes", "5000", "--gpus-per-node", "8", "--pods", "40000",
               "--seconds", "10"],
              ["preempt", "--nodes", "60", "--gpus-per-node", "8", "--pods", "480", "--turns",
               "20"]),
    Benchmark("tenants", "Tenants: sharing and taking back", ["tenants", *PHILLY], None),
    Benchmark("cost", "Cost: rented machines of a cloud",
              ["cost", "--openb", "{data}/openb/openb_pod_list_default.csv", *PHILLY, "--money",
               "20000", "--cloud", "aws", "--seeds", "42..44"],
              ["cost", "--synthetic-tasks", "60", "--seeds", "1..1", "--money", "5000"]),
    Benchmark("ledger", "Ledger", ["ledger", "--entries", "1000000", "--batch", "1000"],
              ["ledger", "--entries", "20000", "--batch", "1000"], folder=True),
    Benchmark("restart", "Restart", ["restart", "--ended", "1000000"],
              ["restart", "--ended", "300", "--no-bounds"], server=True, folder=True),
    Benchmark("replay", "Replay",
              ["replay", "--nodes", "5000", "--pods", "600000", "--days", "30"],
              ["replay", "--nodes", "4", "--pods", "300", "--days", "2"], folder=True),
    Benchmark("forecast", "Expected starts",
              ["forecast", "--synthetic-jobs", "1000", *PHILLY, "--most-jobs", "3000", "--fleet",
               "5000"],
              ["forecast", "--synthetic-jobs", "300", "--every-hours", "12", "--fleet", "20"]),
    Benchmark("storm", "Storms", ["storm"],
              ["storm", "--nodes", "20", "--scale", "0.002", "--calls", "20", "--no-bounds"]),
]


def text_of(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def machine():
    cpu = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
    cores = text_of(["nproc"])
    compiler = text_of(["c++", "--version"]).splitlines()
    return f"{cores} cores of {cpu}, {platform.platform()}, " + \
        (compiler[0] if compiler else "no compiler")


def commit():
    changed = text_of(["git", "status", "--porcelain", "--untracked-files=no"])
    return text_of(["git", "rev-parse", "--short=12", "HEAD"]) + ("-changed" if changed else "")


def arguments_of(one, options):
    """Its command; None where --quick has none for it."""
    chosen = one.quick if options.quick else one.command
    return None if chosen is None else [a.replace("{data}", str(options.data)) for a in chosen]


def missing(arguments):
    return [a for a in arguments if a.endswith(".csv") and not pathlib.Path(a).is_file()]


def run(one, arguments, options, state):
    """Runs it unless it ran; its record, as NAME.json's neighbour NAME.state.json has it."""
    known = options.out / f"{one.name}.state.json"
    if known.is_file():
        record = json.loads(known.read_text())
        if record["arguments"] == arguments and record["commit"] == state["commit"] \
                and record["status"] == 0:
            return record
    command = [str(options.bench), *arguments]
    if one.server:
        command += ["--server", str(options.tranche)]
    if one.folder:
        scratch = options.out / "scratch"
        scratch.mkdir(exist_ok=True)
        command += ["--folder", str(scratch)]
    command += ["--out", str(options.out / f"{one.name}.json")]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    record = {"arguments": arguments, "commit": state["commit"], "status": done.returncode,
              "seconds": round(time.monotonic() - began, 1),
              "day": datetime.date.today().isoformat()}
    (options.out / f"{one.name}.txt").write_text(done.stdout)
    if done.returncode != 0:
        (options.out / f"{one.name}.err").write_text(done.stderr)
    known.write_text(json.dumps(record) + "\n")
    return record


def shown(arguments, options):
    return shlex.join(["tranche-bench", *[a.replace(str(options.data), "DATA")
                                          for a in arguments]])


def section(one, arguments, record, options):
    lines = [f"## {one.title}", "", "```", shown(arguments, options), "```", ""]
    if record is None:
        return lines + [f"Not run: expected {', '.join(missing(arguments))}, found none.", ""]
    if record["status"] != 0:
        lines += [f"Failed with exit status {record['status']}: see {one.name}.err.", ""]
    text = (options.out / f"{one.name}.txt").read_text().rstrip()
    return lines + ["```", text, "```", "", f"{record['day']}, {record['seconds']} s", ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder of traces")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=None, help="names of benchmarks")
    parser.add_argument("--quick", action="store_true")
    build = ROOT / "build" / "release" / "bin"
    parser.add_argument("--bench", type=pathlib.Path, default=build / "tranche-bench")
    parser.add_argument("--tranche", type=pathlib.Path, default=build / "tranche")
    options = parser.parse_args()
    names = [one.name for one in BENCHMARKS]
    unknown = sorted(set(options.only or []) - set(names))
    if unknown:
        parser.error(f"--only: expected any of {', '.join(names)}, found {', '.join(unknown)}")
    for program in (options.bench, options.tranche):
        if not program.is_file():
            parser.error(f"expected the program {program}, found none; build it first")
    options.data, options.out = options.data.resolve(), options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    state = {"commit": commit()}
    lines = ["# Figures", "", f"Commit {state['commit']}, {machine()}."]
    if options.quick:
        lines.append("With --quick: of small inputs, which say nothing about the product.")
    lines.append("")
    failed = False
    wanted = [one for one in BENCHMARKS if options.only is None or one.name in options.only]
    for number, one in enumerate(wanted, 1):
        arguments = arguments_of(one, options)
        if arguments is None:
            continue
        print(f"[{number}/{len(wanted)}] {one.name}: {shown(arguments, options)}", flush=True)
        record = None if missing(arguments) else run(one, arguments, options, state)
        told = "left out, its files are missing" if record is None else \
            f"{record['seconds']} s, exit status {record['status']}"
        print(f"    {told}", flush=True)
        failed = failed or (record is not None and record["status"] != 0)
        lines += section(one, arguments, record, options)
        (options.out / "FIGURES.md").write_text("\n".join(lines))
    print(f"written to {options.out / 'FIGURES.md'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
