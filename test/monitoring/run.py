#!/usr/bin/env python3
"""Dashboards, rules and metrics against a real Prometheus and a loaded Tranche.

run.py --tranche BIN [--junit FILE]

Needs prometheus and promtool in PATH, else exits 3. Standard library only.
"""

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import dashboards
import idle
import prometheus
import stand_ins
import story

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "test"))
from report import Report  # noqa: E402

CHART = ROOT / "charts" / "tranche"
RULES = sorted((CHART / "rules").glob("*.yaml"))
CASES = sorted(pathlib.Path(__file__).parent.glob("*_test.yaml"))
RUNBOOK = ROOT / "scheduler" / "docs" / "operations.md"
FLEET = ROOT / "scheduler" / "quickstart" / "fleet.yaml"
DECLARED = pathlib.Path(__file__).parent / "cluster.yaml"
SEVERITIES = {"critical", "warning", "info"}
# Their names are HAMi's, and are there so that what was made for HAMi goes on.
HAMI_NAME = re.compile(r"(GPUDevice|nodeGPU|vGPU)\w+")
NAME = re.compile(r"\b(?:tranche|process)_\w+")
# Alerts that the story brings about: budgets, and pods larger than any node in the mix of requests.
ACTIVE = {"TrancheBudgetExhausted", "TrancheBudgetRunsOut", "TrancheLostWorkHigh",
          "TrancheStrandedHigh"}
# Rules and rates need some scrapes.
ANSWER_SECONDS = 30


def text_of(url):
    with urllib.request.urlopen(url, timeout=20) as reply:
        return reply.read().decode()


class Servers:
    """Processes of `tranche serve` on free ports, stopped at the end."""

    def __init__(self, binary, folder):
        self._binary, self._folder = binary, pathlib.Path(folder)
        self._processes = []
        self._logs = {}

    def start(self, name, *arguments):
        address = f"127.0.0.1:{prometheus.free_port()}"
        self._logs[address] = self._folder / f"{name}.log"
        with self._logs[address].open("w") as log:
            self._processes.append(subprocess.Popen(
                [self._binary, "serve", "--listen", address, *map(str, arguments)], stdout=log,
                stderr=subprocess.STDOUT))
        return address

    def wait_until_ready(self):
        for address, log in self._logs.items():
            try:
                story.drive.Server(f"http://{address}").wait_until_ready(20)
            except RuntimeError as problem:
                raise RuntimeError(f"{problem}; its log: {log.read_text()[-2000:]}") from problem

    def close(self):
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(20)


# ---- without a server --------------------------------------------------------------------------


def check_files(report, boards):
    for name, board in boards.items():
        for what, check in dashboards.FILE_CHECKS.items():
            report.case(f"{name}: {what}", check(board))
    report.attempt("dashboards are what charts/dashboards/make.py writes", lambda: subprocess.run(
        [sys.executable, "-B", ROOT / "charts" / "dashboards" / "make.py", "--check"], text=True,
        capture_output=True, check=False).stderr)
    for file in RULES:
        report.attempt(f"promtool check rules {file.name}",
                       lambda file=file: prometheus.promtool("check", "rules", file))
    for file in CASES:
        report.attempt(f"promtool test rules {file.name}",
                       lambda file=file: prometheus.promtool("test", "rules", file))


def check_alerts(report, rules):
    """Every alert says what it means, has a runbook, and cases in which it fires and does not."""
    cases = "".join(file.read_text() for file in CASES)
    headings = {re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-")
                for line in RUNBOOK.read_text().splitlines() if line.startswith("#")}
    for rule in rules:
        if rule["type"] != "alerting":
            continue
        name, notes = rule["name"], rule["annotations"]
        problems = []
        if rule["labels"].get("severity") not in SEVERITIES:
            problems.append(f"expected a severity of {sorted(SEVERITIES)}, found {rule['labels']}")
        problems += [f"expected the annotation {key}, found none"
                     for key in ("summary", "description", "runbook") if not notes.get(key)]
        file, _, anchor = notes.get("runbook", "").partition("#")
        if ROOT / file != RUNBOOK or anchor not in headings:
            problems.append("expected a runbook in scheduler/docs/operations.md, found "
                            f"{file}#{anchor}")
        if not re.search(rf"- alertname: {name}\n\s+eval_time: \w+\n\s+exp_alerts:\n", cases):
            problems.append("expected a case in which it fires, found none")
        if not re.search(rf"- {{alertname: {name}, eval_time: \w+}}", cases):
            problems.append("expected a case in which it does not fire, found none")
        report.case(f"{name}: words and cases", "; ".join(problems))


# ---- with servers ------------------------------------------------------------------------------


def check_page(report, name, address, aliases):
    """promtool's lint of a live page; only HAMi's names may be as they are."""
    def check():
        said = prometheus.promtool("check", "metrics", text=text_of(f"http://{address}/metrics"))
        lines = [line for line in said.splitlines() if not (aliases and HAMI_NAME.match(line))]
        return "; ".join(lines)
    report.attempt(f"promtool check metrics: {name}", check)


def scrape_jobs(main, hami, kubernetes, exporters, lab, monitor):
    # The operator for Prometheus adds namespace and pod of what it scrapes.
    def job(name, address, **more):
        labels = {"namespace": f"{name}-system", "pod": f"{name}-0"}
        return {"job_name": name, **more,
                "static_configs": [{"targets": [address], "labels": labels}]}
    renamed, honoured = exporters
    return [job("tranche", main), job("tranche-hami", hami), job("tranche-kubernetes", kubernetes),
            job("dcgm-renamed", renamed), job("dcgm-honoured", honoured, honor_labels=True),
            job("dcgm-lab", lab), job("hami-monitor", monitor)]


def make_exporters():
    """One whose labels Prometheus renames, and one whose labels it honours."""
    language = [{"uuid": f"GPU-a{index}", "util": 90 + index, "namespace": "team-language",
                 "pod": "pretrain"} for index in range(8)]
    vision = [{"uuid": "GPU-b0", "util": 40, "namespace": "team-vision", "pod": "train-2"},
              {"uuid": "GPU-b1", "util": 1, "namespace": "team-vision", "pod": "train-2"}]
    others = [{"uuid": "GPU-c0", "util": 70, "namespace": "team-platform", "pod": "build",
               "mig": "3"},
              {"uuid": "GPU-c1", "util": 10, "namespace": "team-elsewhere", "pod": "free"},
              {"uuid": "GPU-c2", "util": 0}]
    return (stand_ins.DcgmExporter("h100-a", language + vision),
            stand_ins.DcgmExporter("v100-mesh", others))


# Team -> what the exporters' numbers come to: the join is right, not only there.
UTILISATION = {"language": 0.935, "vision": 0.205, "platform": 0.7}
IDLE = {"language": 0, "vision": 1, "platform": 0}


def check_join(live):
    for name, expected in (("leaf:dcgm_gpu_utilization:avg", UTILISATION),
                           ("leaf:dcgm_idle_gpus:count_30m", IDLE)):
        found = {one["metric"]["leaf"]: round(float(one["value"][1]), 6)
                 for one in live.series(name)}
        if found != expected:
            return f"{name}: expected {expected}, found {found}"
    return None


# Shown by servers with TLS, and by those that are told of use, which Prometheus does not watch
# here; tests of the alerts bring their own.
ELSEWHERE = {"tranche_certificate_expires_seconds", "tranche_gpu_use_age_seconds"}


def check_rules_run(live, rules):
    problems = [f"{rule['name']}: {rule['lastError'] or rule['health']}" for rule in rules
                if rule["health"] != "ok"]
    known = set(live.names()) | ELSEWHERE
    for rule in rules:
        unknown = set(NAME.findall(re.sub(r'"[^"]*"', "", rule["query"]))) - known
        problems += [f"{rule['name']}: expected a series, found none named {name}"
                     for name in sorted(unknown)]
    return "; ".join(problems)


def check_active(rules):
    """The story brings about these alerts, and no others."""
    found = {rule["name"] for rule in rules if rule["type"] == "alerting" and rule["alerts"]}
    if found != ACTIVE:
        return f"expected {sorted(ACTIVE)}, found {sorted(found)}"
    return None


def ask(live, panel, query, expr, start):
    if query["instant"]:
        return dashboards.check_answer(panel, query, live.series(expr))
    return dashboards.check_answer(panel, query, live.series_over(expr, start, time.time()))


def ask_until(live, panel, query, expr, start, deadline):
    while True:
        try:
            problem = ask(live, panel, query, expr, start)
        except ValueError as error:
            problem = str(error)
        if not problem or time.monotonic() > deadline:
            return problem
        time.sleep(0.5)


def check_queries(report, live, boards, start):
    """Every query of every panel; of a panel that is repeated, for each value."""
    deadline = time.monotonic() + ANSWER_SECONDS
    for name, board in boards.items():
        try:
            chosen = dashboards.choices(board, live)
        except ValueError as problem:
            report.case(f"{name}: variables have values", str(problem))
            continue
        report.case(f"{name}: variables have values")
        for panel, query, expr in dashboards.queries_of(board):
            for values in dashboards.repetitions(panel, chosen):
                asked = dashboards.substitute(expr, values)
                problem = ask_until(live, panel, query, asked, start, deadline)
                title = dashboards.substitute(panel["title"], values)
                report.case(f"{name}: {title}: {query['refId']}",
                            f"{problem}; asked {asked}" if problem else None)


def start_told(servers, folder, url):
    """A server that asks Prometheus how much GPUs are used."""
    config, objects = pathlib.Path(folder) / "told.yaml", pathlib.Path(folder) / "lab.yaml"
    config.write_text(idle.configuration(url))
    objects.write_text(idle.OBJECTS)
    told = servers.start("told", "--objects", FLEET, "--objects", objects, "--config", config)
    servers.wait_until_ready()
    return told


def run_live(report, binary, boards, folder, stack):
    servers = Servers(binary, folder)
    stack.callback(servers.close)
    quiet = stand_ins.QuietApiServer()
    stack.callback(quiet.close)
    kubeconfig = pathlib.Path(folder) / "kubeconfig.json"
    kubeconfig.write_text(quiet.kubeconfig())
    hami_config = pathlib.Path(folder) / "hami.yaml"
    hami_config.write_text("compatibility: hami\n")
    objects = ("--clock", "manual", "--objects", FLEET, DECLARED)
    main = servers.start("main", *objects, "--ledger", pathlib.Path(folder) / "ledger.db")
    hami = servers.start("hami", *objects, "--config", hami_config)
    kubernetes = servers.start("kubernetes", "--cluster", "kubernetes", "--kubeconfig", kubeconfig)
    exporters = make_exporters()
    lab = stand_ins.DcgmExporter("h100-b", idle.GPUS)
    monitor = stand_ins.HamiMonitor(idle.containers())
    for exporter in (*exporters, lab, monitor):
        stack.callback(exporter.close)
    servers.wait_until_ready()

    live = prometheus.Prometheus(
        folder, scrape_jobs(main, hami, kubernetes, [one.address for one in exporters],
                            lab.address, monitor.address), RULES)
    stack.callback(live.close)
    live.wait_for_targets(7, 30)
    # Counters must have been seen before they grow.
    start = time.time()
    load = story.ComeAndGo(main)
    stack.callback(load.stop)
    story.tell(story.Cluster(main))
    story.tell(story.Cluster(hami))
    load.start()
    check_page(report, "with quotas, budgets and load", main, aliases=False)
    check_page(report, "with HAMi's names beside ours", hami, aliases=True)
    check_page(report, "in a cluster", kubernetes, aliases=False)
    check_queries(report, live, boards, start)
    told = start_told(servers, folder, live.url)
    report.attempt("idle work is told and evicted, by what Prometheus says",
                   lambda: idle.check(story.drive.Server(f"http://{told}"), 90))
    check_page(report, "told of use", told, aliases=False)
    report.attempt("GPU telemetry is joined with teams", lambda: check_join(live))
    rules = live.rules()
    report.attempt("rules are evaluated, over series that exist",
                   lambda: check_rules_run(live, rules))
    report.case("alerts that are active", check_active(rules))
    check_alerts(report, rules)
    load.stop()
    report.case("pods came and went all the time", str(load.problem or ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tranche", required=True, type=pathlib.Path)
    parser.add_argument("--junit", type=pathlib.Path)
    options = parser.parse_args()
    for program in ("prometheus", "promtool"):
        if not shutil.which(program):
            print(f"expected {program} in PATH (test/install-deps.sh monitoring), found none",
                  file=sys.stderr)
            sys.exit(3)
    boards = {file.name: json.loads(file.read_text())
              for file in sorted((CHART / "dashboards").glob("*.json"))}
    report = Report("monitoring")
    check_files(report, boards)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        report.attempt("the live run went through", lambda: run_live(
            report, options.tranche.resolve(), boards, folder, stack))
    if options.junit:
        report.write(options.junit)
    passed, failed = report.counts()
    print(f"monitoring: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
