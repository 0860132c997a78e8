#!/usr/bin/env python3
"""Times a burst of GPU pods in any cluster, with one scheduler after another.

    bench/peers/burst.py --arm tranche=gpu-scheduler:fraction --arm hami=hami-scheduler:hami
        --pods 400 --rounds 3 --process tranche=4711 --out peers.json

An arm is NAME=SCHEDULER:STYLE: pods that name that scheduler and ask for GPUs in that style:

    whole     nvidia.com/gpu: 1
    fraction  annotation tranche.dev/gpu-fraction
    hami      nvidia.com/gpu: 1 with gpumem-percentage and gpucores
    volcano   volcano.sh/vgpu-number: 1 with vgpu-memory-percentage and vgpu-cores
    kai       annotation gpu-fraction, label kai.scheduler/queue: default
    FILE      a JSON file: {"limits": {...}, "annotations": {...}, "labels": {...}}; "{percent}"
              and "{part}" in its values become 10, 20, 30, 50 and 0.1, 0.2, 0.3, 0.5 in turn

The arms take turns, so that what else the machine does meets all of them. The pods are real: they
take GPUs for as long as a round lasts, in a namespace of their own that is deleted at the end. The
API server is reached by `kubectl proxy`, with the kubeconfig's user.

Exit codes: 0 every pod was bound, 1 some were not within --patience, 2 a mistake.
"""
import argparse
import collections
import http.client
import json
import os
import pathlib
import queue
import re
import secrets
import socket
import subprocess
import sys
import threading
import time

PERCENTS = (10, 20, 30, 50)
STYLES = {
    "whole": {"limits": {"nvidia.com/gpu": "1"}},
    "fraction": {"annotations": {"tranche.dev/gpu-fraction": "{part}"}},
    "hami": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "{percent}",
                        "nvidia.com/gpucores": "{percent}"}},
    "volcano": {"limits": {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": "{percent}",
                           "volcano.sh/vgpu-memory-percentage": "{percent}"}},
    "kai": {"annotations": {"gpu-fraction": "{part}"},
            "labels": {"kai.scheduler/queue": "default"}},
}
SENDERS = 16
TICKS = os.sysconf("SC_CLK_TCK")

Arm = collections.namedtuple("Arm", "name scheduler style wishes")


class Mistake(Exception):
    """What the caller gave cannot be used; the text says what was expected."""


class Server:
    """An API server behind `kubectl proxy`."""

    def __init__(self, kubectl, flags):
        self.proxy = subprocess.Popen([kubectl, *flags, "proxy", "--port=0"], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.proxy.stdout.readline()
        found = re.search(r":(\d+)$", line.strip())
        if not found:
            raise Mistake(f"expected {kubectl} proxy to serve, found: "
                          f"{line.strip() or self.proxy.stderr.read().strip()}")
        self.port = int(found.group(1))

    def close(self):
        self.proxy.terminate()
        self.proxy.wait()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None, connection=None):
        """The answer's object. Raises Mistake for anything but success."""
        own = connection or self.connect()
        own.request(method, path, None if body is None else json.dumps(body),
                    {"Content-Type": "application/json"})
        answer = own.getresponse()
        text = answer.read()
        if connection is None:
            own.close()
        if answer.status >= 300:
            raise Mistake(f"{method} {path}: expected success, found {answer.status}: "
                          f"{text[:300].decode(errors='replace')}")
        return json.loads(text)


class Watch(threading.Thread):
    """When pods of a namespace were first seen, and first seen with a node."""

    def __init__(self, server, namespace, version):
        super().__init__(daemon=True)
        self.seen, self.bound = {}, {}
        self.wake = threading.Condition()
        self.stopped = False
        self.path = (f"/api/v1/namespaces/{namespace}/pods"
                     "?watch=1&timeoutSeconds=3600&resourceVersion=")
        self.version = version
        self.server = server
        self.connection = None
        self.start()

    def run(self):
        while not self.stopped:
            try:
                self._follow()
            except (OSError, ValueError, http.client.HTTPException):
                pass  # the stream ended in the middle, or stop() closed it
            time.sleep(0.1)

    def _follow(self):
        self.connection = self.server.connect()
        self.connection.request("GET", self.path + self.version)
        self.connection.sock.settimeout(None)
        for line in self.connection.getresponse():
            now = time.monotonic()
            found = json.loads(line)["object"]
            if found["kind"] != "Pod":
                self.version = ""  # too old: from what there is now
                return
            name = found["metadata"]["name"]
            with self.wake:
                self.version = found["metadata"]["resourceVersion"]
                self.seen.setdefault(name, now)
                if found["spec"].get("nodeName"):
                    self.bound.setdefault(name, now)
                self.wake.notify_all()

    def wait_bound(self, count, patience):
        end = time.monotonic() + patience
        with self.wake:
            while len(self.bound) < count and (left := end - time.monotonic()) > 0:
                self.wake.wait(left)

    def stop(self):
        self.stopped = True
        if self.connection is not None and self.connection.sock is not None:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.join()


def parse_arm(text):
    name, equals, rest = text.partition("=")
    scheduler, colon, style = rest.partition(":")
    if not (name and equals and scheduler and colon and style):
        raise Mistake(f"--arm: expected NAME=SCHEDULER:STYLE, found {text!r}")
    if style in STYLES:
        return Arm(name, scheduler, style, STYLES[style])
    try:
        wishes = json.loads(pathlib.Path(style).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Mistake(f"--arm {name}: expected one of {' '.join(STYLES)} or a JSON file, found "
                      f"{style!r} ({error})") from error
    unknown = sorted(set(wishes) - {"limits", "annotations", "labels"})
    if unknown:
        raise Mistake(f"{style}: expected limits, annotations and labels, found {unknown[0]!r}")
    return Arm(name, scheduler, pathlib.Path(style).stem, wishes)


def parse_pair(flag, text):
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise Mistake(f"{flag}: expected KEY=VALUE, found {text!r}")
    return key, value


def make_pod(arm, number, options):
    percent = PERCENTS[number % len(PERCENTS)]
    part = f"0.{percent // 10}"

    def filled(values):
        return {key: str(value).replace("{percent}", str(percent)).replace("{part}", part)
                for key, value in values.items()}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"burst-{number:05d}",
                     "labels": filled(arm.wishes.get("labels", {})),
                     "annotations": filled(arm.wishes.get("annotations", {}))},
        "spec": {
            "schedulerName": arm.scheduler, "terminationGracePeriodSeconds": 0,
            "nodeSelector": dict(options.node_selector),
            "tolerations": [{"operator": "Exists"}] if options.tolerate else [],
            "automountServiceAccountToken": False,
            "containers": [{"name": "pause", "image": options.image, "resources": {
                "limits": filled(arm.wishes.get("limits", {}))}}]}}


def send(server, namespace, pods):
    """Creates them from several connections at once."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    work, errors = queue.SimpleQueue(), []
    for pod in pods:
        work.put(pod)

    def sender():
        connection = server.connect()
        while not errors:
            try:
                server.ask("POST", path, work.get_nowait(), connection)
            except queue.Empty:
                return
            except (Mistake, OSError, http.client.HTTPException) as error:
                errors.append(error)
    threads = [threading.Thread(target=sender) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise Mistake(str(errors[0]))


def processor_time(pid):
    """User and system seconds of a process of this machine."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError as error:
        raise Mistake(f"--process: expected a process of this machine, found none with id "
                      f"{pid}") from error
    fields = text.rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


def run_round(server, namespace, arm, options):
    pods_path = f"/api/v1/namespaces/{namespace}/pods"
    version = server.ask("GET", pods_path + "?limit=1")["metadata"]["resourceVersion"]
    watch = Watch(server, namespace, version)
    before = {name: processor_time(pid) for name, pid in options.process}
    began = time.monotonic()
    try:
        send(server, namespace, [make_pod(arm, i, options) for i in range(options.pods)])
        watch.wait_bound(options.pods, options.patience)
        with watch.wake:
            seen, bound = dict(watch.seen), dict(watch.bound)
    finally:
        watch.stop()
        server.ask("DELETE", pods_path + "?gracePeriodSeconds=0")
        wait_empty(server, pods_path, options.patience)
    ended = max(bound.values(), default=began)
    waits = [at - seen[name] for name, at in bound.items()]
    spent = {name: (processor_time(pid) - before[name]) * 1000 / options.pods
             for name, pid in options.process}
    return {"arm": arm.name, "scheduler": arm.scheduler, "style": arm.style, "bound": len(bound),
            "podsPerSecond": len(bound) / (ended - began) if bound else 0.0,
            "p50Seconds": quantile(waits, 0.5), "p99Seconds": quantile(waits, 0.99),
            "processorMsPerPod": spent}


def wait_empty(server, pods_path, patience):
    end = time.monotonic() + patience
    while server.ask("GET", pods_path + "?limit=1")["items"]:
        if time.monotonic() > end:
            raise Mistake(f"expected deleted pods to go within {patience} s, found some in "
                          f"{pods_path}")
        time.sleep(0.2)


def table(rounds, processes):
    def seconds(value):
        return "-" if value is None else f"{value:.2f}"
    rows = [["ARM", "SCHEDULER", "STYLE", "BOUND", "PODS/S", "P50 S", "P99 S",
             *(f"{name.upper()} MS/POD" for name in processes)]]
    for one in rounds:
        rows.append([one["arm"], one["scheduler"], one["style"], str(one["bound"]),
                     f"{one['podsPerSecond']:.0f}", seconds(one["p50Seconds"]),
                     seconds(one["p99Seconds"]),
                     *(f"{one['processorMsPerPod'][name]:.2f}" for name in processes)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    texts = 3
    return "\n".join(
        "  ".join(cell.ljust(width) if at < texts else cell.rjust(width)
                  for at, (cell, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows)


def measure(options, arms):
    server = Server(options.kubectl, options.flags)
    namespace = f"peers-{secrets.token_hex(4)}"
    try:
        version = server.ask("GET", "/version")["gitVersion"]
        some = server.ask("GET", "/api/v1/nodes?limit=1")
        nodes = len(some["items"]) + some["metadata"].get("remainingItemCount", 0)
        server.ask("POST", "/api/v1/namespaces",
                   {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        rounds = []
        try:
            for turn in range(options.rounds):
                for arm in arms:
                    print(f"round {turn + 1} of {options.rounds}: {arm.name}",
                          file=sys.stderr, flush=True)
                    rounds.append({"round": turn + 1,
                                   **run_round(server, namespace, arm, options)})
                    time.sleep(options.pause)
        finally:
            server.ask("DELETE", f"/api/v1/namespaces/{namespace}")
    finally:
        server.close()
    print(f"Kubernetes {version}, {nodes} nodes, {options.pods} pods in a burst\n")
    print(table(rounds, [name for name, _ in options.process]))
    if options.out:
        text = json.dumps({"kubernetes": version, "nodes": nodes, "pods": options.pods,
                           "rounds": rounds}, indent=2)
        pathlib.Path(options.out).write_text(text + "\n", encoding="utf-8")
    return 0 if all(one["bound"] == options.pods for one in rounds) else 1


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text!r}")
    return int(text)


def main():
    summary, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--arm", action="append", required=True, metavar="NAME=SCHEDULER:STYLE")
    add("--pods", type=positive, default=400, help="of a burst (400)")
    add("--rounds", type=positive, default=2, help="in which every arm has a turn (2)")
    add("--pause", type=float, default=2.0, help="seconds between two turns (2)")
    add("--patience", type=positive, default=300, help="seconds for a burst to be bound (300)")
    add("--image", default="registry.k8s.io/pause:3.10", help="of the pods' only container")
    add("--node-selector", action="append", default=[], metavar="KEY=VALUE",
        help="where pods may go")
    add("--tolerate", action="store_true", help="pods tolerate every taint")
    add("--process", action="append", default=[], metavar="NAME=PID",
        help="a process of this machine whose processor time is counted")
    add("--kubeconfig", help="as of kubectl")
    add("--context", help="as of kubectl")
    add("--kubectl", default="kubectl", help="the program (kubectl)")
    add("--out", metavar="FILE", help="JSON file to write")
    options = parser.parse_args()
    try:
        options.node_selector = [parse_pair("--node-selector", text)
                                 for text in options.node_selector]
        options.process = [parse_pair("--process", text) for text in options.process]
        given = (("kubeconfig", options.kubeconfig), ("context", options.context))
        options.flags = [f"--{name}={value}" for name, value in given if value]
        return measure(options, [parse_arm(text) for text in options.arm])
    except (Mistake, OSError, http.client.HTTPException) as error:
        print(f"burst.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2


if __name__ == "__main__":
    sys.exit(main())
