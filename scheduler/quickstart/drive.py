#!/usr/bin/env python3
"""Plays kube-scheduler against a running Tranche: filter, prioritize and bind for a list of pods.

Each pod is created in the embedded cluster and then goes through the verbs in the wire form of
k8s.io/kube-scheduler/extender/v1 with node names only (nodeCacheCapable). Prints where every pod
went, why the others wait, and how full each node is. Standard library only.
"""

import argparse
import http.client
import json
import os
import pathlib
import sys
import textwrap
import time
import urllib.parse
import uuid
from collections import Counter

TEAM_COLOURS = (34, 33, 32, 35, 36, 31)
BAR_CELLS = 32
# Reasons of the team rather than of a node.
TEAM_REASONS = ("BudgetExhausted", "ExceedsMaxQuota", "BorrowLimit", "LenderLimit",
                "WaitingForQuota")


class Server:
    """One keep-alive connection, as kube-scheduler holds."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)

    def _call(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        headers = {} if text is None else {"Content-Type": "application/json"}
        self._connection.request(method, path, text, headers)
        reply = self._connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{method} {path}: expected 200, found {reply.status}: "
                               f"{content[:300].decode(errors='replace')}")
        return json.loads(content) if content else None

    def get(self, path):
        return self._call("GET", path)

    def post(self, path, body):
        return self._call("POST", path, body)

    def wait_until_ready(self, seconds):
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._connection.request("GET", "/readyz")
                reply = self._connection.getresponse()
                reply.read()
                if reply.status == 200:
                    return
                problem = f"/readyz answers {reply.status}"
            except OSError as error:
                problem = str(error)
                self._connection.close()
            if time.monotonic() > deadline:
                raise RuntimeError(f"expected a ready server within {seconds} s, found: {problem}")
            time.sleep(0.1)


def read_workload(path):
    for entry in json.loads(path.read_text())["workloads"]:
        for number in range(entry["count"]):
            name = entry["name"] if entry["count"] == 1 else f"{entry['name']}-{number}"
            yield make_pod(entry, name)


def make_pod(entry, name):
    namespace = entry["team"]
    limits = {key: str(value) for key, value in entry.get("limits", {}).items()}
    # A second to leave, so that nobody waits long for those who are evicted.
    spec = {"terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "registry.example/main:1",
                            "resources": {"limits": limits, "requests": limits}}]}
    if "priorityClass" in entry:
        spec["priorityClassName"] = entry["priorityClass"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"quickstart/{namespace}/{name}")),
            "annotations": entry.get("annotations", {}),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def describe_asks(pod):
    """What the pod asks for, short: '4 gpu, model h100'."""
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    units = {"gpumem": "{} MiB", "gpucores": "{} % cores"}
    words = []
    for key, value in limits.items():
        short = key.rpartition("/")[2]
        if short in units and value.isdigit():
            words.append(units[short].format(value))
        else:
            words.append(f"{short} {value}" if short in units else f"{value} {short}")
    forms = {"tranche.dev/gpu-fraction": "{} of a gpu", "tranche.dev/gpu-memory": "{} MiB of a gpu",
             "tranche.dev/model": "model {}", "tranche.dev/min-gpu-memory": "gpu of {} MiB or more",
             "nvidia.com/use-gputype": "type {}"}
    for key, value in pod["metadata"]["annotations"].items():
        words.append(forms[key].format(value))
    return ", ".join(words)


def schedule(server, pod, nodes):
    """One scheduling cycle: the node, or None and why, in the way kube-scheduler reports it."""
    answer = server.post("/scheduler/filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes})
    if answer.get("Error"):
        return None, answer["Error"]
    feasible = answer.get("NodeNames") or []
    if not feasible:
        refused = {**(answer.get("FailedNodes") or {}),
                   **(answer.get("FailedAndUnresolvableNodes") or {})}
        histogram = Counter(refused.values()).most_common()
        return None, ", ".join(f"{count} of {len(nodes)}: {text}" for text, count in histogram)
    best = feasible[0]
    if len(feasible) > 1:
        scores = server.post("/scheduler/prioritize",
                             {"Pod": pod, "Nodes": None, "NodeNames": feasible})
        best = max(scores, key=lambda entry: entry["Score"])["Host"]
    meta = pod["metadata"]
    bound = server.post("/scheduler/bind", {
        "PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"],
        "Node": best})
    return (None, bound["Error"]) if bound.get("Error") else (best, "")


def place_all(server, pods, progress):
    """Pods -> {uid: node} and {uid: why it waits}. Pods bound by an earlier run are left alone."""
    nodes = [node["name"] for node in server.get("/api/v1/nodes")["nodes"]]
    placed = {pod["uid"]: pod["node"] for pod in server.get("/api/v1/pods")["pods"]
              if pod["state"] == "bound"}
    waiting = {}
    for number, pod in enumerate(pods, 1):
        progress(f"placing pod {number} of {len(pods)}")
        uid = pod["metadata"]["uid"]
        if uid in placed:
            continue
        server.post("/embedded/v1/apply", pod)
        node, reason = schedule(server, pod, nodes)
        if node is None:
            waiting[uid] = reason
        else:
            placed[uid] = node
    progress("")
    return placed, waiting


def settle_reclaims(server, pods, placed, waiting, progress):
    """Plays on while room is made: who waits is tried again, as kube-scheduler does after every
    pod that leaves. Returns the reclaims that were carried out."""
    nodes = [node["name"] for node in server.get("/api/v1/nodes")["nodes"]]
    deadline = time.monotonic() + 30
    quiet_until = time.monotonic() + 1
    while time.monotonic() < deadline:
        progress("waiting for room that is being made")
        reclaims = server.get("/api/v1/reclaims")["reclaims"]
        running = [reclaim for reclaim in reclaims if reclaim["finishedAt"] is None]
        if not running and time.monotonic() > quiet_until:
            break
        members = {member["pod"] for reclaim in running for member in reclaim["members"]}
        for pod in pods:
            meta = pod["metadata"]
            if meta["uid"] in waiting and f"{meta['namespace']}/{meta['name']}" in members:
                node, reason = schedule(server, pod, nodes)
                if node is None:
                    waiting[meta["uid"]] = reason
                    continue
                placed[meta["uid"]] = node
                del waiting[meta["uid"]]
                quiet_until = time.monotonic() + 1
        time.sleep(0.2)
    progress("")
    reclaims = server.get("/api/v1/reclaims")["reclaims"]
    gone = {victim["pod"] for reclaim in reclaims for victim in reclaim["victims"]
            if victim["goneAt"]}
    for pod in pods:
        meta = pod["metadata"]
        if f"{meta['namespace']}/{meta['name']}" in gone:
            placed.pop(meta["uid"], None)
    return reclaims


def print_reclaims(style, reclaims):
    for reclaim in reclaims:
        victims = ", ".join(victim["pod"] for victim in reclaim["victims"])
        outcome = "runs" if reclaim["phase"] == "Done" else reclaim["phase"].lower()
        asker = reclaim["for"]
        print(f"{style.paint(asker['name'], 1)} ({asker['namespace']}) {outcome} on "
              f"{reclaim['node']} by rule {reclaim['rule']}; evicted {victims}")


def describe_devices(view):
    """'GPU 0-3', '25 % / 3000 MiB of GPU 2', '3g.40gb at unit 4 of GPU 5', '1 GPU, plugin picks'"""
    devices = view.get("devices") or []
    slices = [device for device in devices if device.get("migProfile")]
    if slices:
        return ", ".join(describe_slice(device) for device in slices)
    if not devices:
        return "-"
    whole = all(device["milli"] == 1000 for device in devices)
    share = "" if whole else describe_share(devices[0]) + " of "
    numbers = sorted(device["index"] for device in devices if device["index"] is not None)
    if not numbers:
        one = "1 GPU" if whole else "a GPU"
        return f"{share}{one if len(devices) == 1 else f'{len(devices)} GPUs'}, plugin picks"
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{share}GPU {numbers[0]}-{numbers[-1]}"
    return f"{share}GPU {','.join(map(str, numbers))}"


def describe_slice(device):
    profile = device["migProfile"]
    if device.get("index") is None:
        return f"{profile}, plugin picks"
    return f"{profile} at unit {device['migStart']} of GPU {device['index']}"


def describe_share(device):
    parts = []
    if device["milli"]:
        parts.append(f"{device['milli'] / 10:g} %")
    parts.append(f"{device['mib']} MiB")
    return " / ".join(parts)


class Style:
    """Colours and block characters only where the terminal shows them."""

    def __init__(self, stream):
        self.live = stream.isatty()
        self.colour = self.live and "NO_COLOR" not in os.environ
        unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
        self.full, self.free = ("█", "░") if unicode else ("#", ".")

    def team_mark(self, team, colour):
        """One cell of a bar: a block in the colour of the team, without colours its initial."""
        if self.colour:
            return self.paint(self.full, colour)
        return team.rpartition("-")[2][:1].upper() or "?"

    def paint(self, text, code):
        return f"\033[{code}m{text}\033[0m" if self.colour and text else text


def print_table(style, headers, rows, paints):
    widths = [max(len(row[column]) for row in [headers, *rows]) for column in range(len(headers))]
    titles = "  ".join(head.ljust(width) for head, width in zip(headers, widths))
    print(style.paint(titles.rstrip(), 1))
    for row in rows:
        cells = [style.paint(cell.ljust(width), paints.get((column, cell), 0))
                 for column, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def print_placed(style, pods, views, placed, colours):
    rows = []
    for pod in pods:
        meta = pod["metadata"]
        if meta["uid"] in placed:
            rows.append((meta["name"], meta["namespace"], describe_asks(pod), placed[meta["uid"]],
                         describe_devices(views.get(meta["uid"], {}))))
    paints = {(1, team): colour for team, colour in colours.items()}
    print_table(style, ("POD", "TEAM", "ASKS", "NODE", "DEVICES"), rows, paints)


def print_waiting(style, pods, views, waiting, colours):
    for pod in pods:
        meta = pod["metadata"]
        if meta["uid"] not in waiting:
            continue
        team = style.paint(meta["namespace"], colours[meta["namespace"]])
        print(f"{style.paint(meta['name'], 1)} ({team}) asks {describe_asks(pod)}")
        lines = waiting[meta["uid"]].split(", ")
        reason = (views.get(meta["uid"]) or {}).get("reason") or {}
        # One answer for all nodes is about the pod itself; its detail quotes what is wrong. The
        # detail of a team's reason has the numbers.
        if reason.get("detail") and (len(lines) == 1 or reason["code"] in TEAM_REASONS):
            lines.append(reason["detail"])
        for line in lines:
            print(textwrap.fill(line, 100, initial_indent="    ", subsequent_indent="      "))


def taken_by_team(node):
    """Team -> whole GPUs it takes on the node, each GPU counted by its scarcer dimension."""
    taken = Counter()
    for gpu in node["gpus"]:
        memory = gpu["memoryMiB"] or 1
        share = max(1 - gpu["freeMilli"] / 1000, 1 - gpu["freeMiB"] / memory)
        if gpu.get("mig") is not None:
            users = [(instance["pod"], instance["size"]) for instance in gpu["mig"]
                     if instance.get("pod")]
        else:
            users = [(pod["pod"], max(pod["milli"] / 1000, pod["mib"] / memory))
                     for pod in gpu["pods"]]
        total = sum(weight for _, weight in users)
        for pod, weight in users:
            taken[pod.partition("/")[0]] += share * weight / total if total else 0
    return taken


def print_nodes(style, nodes, colours):
    width = max(len(node["name"]) for node in nodes)
    for node in nodes:
        count = len(node["gpus"])
        taken = taken_by_team(node)
        total = sum(taken.values())
        bar, drawn, reached = "", 0, 0.0
        for team in sorted(taken):
            reached += taken[team]
            upto = round(BAR_CELLS * reached / count)
            bar += style.team_mark(team, colours.get(team, 37)) * (upto - drawn)
            drawn = upto
        bar += style.free * (BAR_CELLS - drawn)
        state = "" if node["ready"] else "  closed"
        print(f"{node['name']:<{width}}  {bar}  {total:5.2f} of {count} GPUs  "
              f"{node['model']}{state}")
    print("  ".join(f"{style.team_mark(team, code)} {team}" for team, code in colours.items()))


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="http://127.0.0.1:8080")
    parser.add_argument("--pods", type=pathlib.Path, default=here / "pods.json")
    options = parser.parse_args()

    style = Style(sys.stdout)

    def progress(text):
        if style.live:
            print(f"\r\033[K{text}", end="", flush=True)

    server = Server(options.server)
    server.wait_until_ready(20)
    pods = list(read_workload(options.pods))
    teams = sorted({pod["metadata"]["namespace"] for pod in pods})
    colours = dict(zip(teams, TEAM_COLOURS))

    start = time.monotonic()
    placed, waiting = place_all(server, pods, progress)
    spent = time.monotonic() - start
    reclaims = settle_reclaims(server, pods, placed, waiting, progress)
    views = {view["uid"]: view for view in server.get("/api/v1/pods")["pods"]}

    print_placed(style, pods, views, placed, colours)
    if reclaims:
        print(f"\n{style.paint('TAKEN BACK', 1)}")
        print_reclaims(style, reclaims)
    print(f"\n{style.paint('WAITING', 1)}")
    print_waiting(style, pods, views, waiting, colours)
    print(f"\n{style.paint('NODES', 1)}")
    print_nodes(style, server.get("/api/v1/nodes")["nodes"], colours)
    print(f"\n{len(placed)} pods placed, {len(waiting)} wait; {spent:.2f} s for all calls together")


if __name__ == "__main__":
    try:
        main()
    except (OSError, http.client.HTTPException, RuntimeError, ValueError) as problem:
        print(f"quickstart: {problem}", file=sys.stderr)
        sys.exit(1)
