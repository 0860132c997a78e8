"""Hazard 40: the machine's clock is set a day forward and back while a pod runs on two GPUs.

A real server, its wall clock moved by libfaketime (package faketime): what the ledger charges must
be the time that passed, by a clock nobody moved. Usage: clock_step.py TRANCHE_BINARY
"""

import csv
import datetime
import glob
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

GPUS = 2
PAUSE_SECONDS = 1.5
STEPS = ["+1d", "+0", "-1d", "+1d", "+0"]
# Requests and the group commit lie between our reading of the clock and the server's.
TOLERANCE_GPU_SECONDS = 0.2 * GPUS

OBJECTS = {
    "apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Node",
         "metadata": {"name": "node-1", "labels": {
             "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559",
             "nvidia.com/gpu.count": "8"}},
         "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}},
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "train", "namespace": "team-a", "uid": "uid-train"},
         "spec": {"containers": [{"name": "main", "image": "trainer", "resources": {
             "limits": {"nvidia.com/gpu": str(GPUS)}}}]}}]}


def fake_time_library():
    found = sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))
    if not found:
        sys.exit("clock_step: expected libfaketimeMT.so.1 (package faketime), found none")
    return found[0]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, binary, folder):
        self.port = free_port()
        self.offset = os.path.join(folder, "offset")
        self.ledger = os.path.join(folder, "ledger.db")
        self.set_clock("+0")
        environment = dict(
            os.environ, LD_PRELOAD=fake_time_library(), FAKETIME_TIMESTAMP_FILE=self.offset,
            FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1")
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--ledger", self.ledger,
             "--log-level", "warn"], env=environment)
        self.wait_until_ready()

    def wait_until_ready(self):
        for _ in range(200):
            try:
                self.ask("GET", "/readyz", parse=False)
                return
            except OSError:
                time.sleep(0.05)
        sys.exit("clock_step: expected a ready server within 10 s, found none")

    def set_clock(self, offset):
        with open(self.offset + ".new", "w", encoding="utf-8") as file:
            file.write(offset)
        os.replace(self.offset + ".new", self.offset)

    def ask(self, method, path, body=None, parse=True):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if parse else text

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=20)


def main(binary):
    with tempfile.TemporaryDirectory(prefix="tranche-clock-") as folder:
        server = Server(binary, folder)
        server.ask("POST", "/embedded/v1/apply", OBJECTS)
        pod = server.ask("GET", "/embedded/v1/objects?kind=Pod&namespace=team-a&name=train")
        server.ask("POST", "/scheduler/filter", {"Pod": pod, "NodeNames": ["node-1"]})
        begin = time.monotonic()
        bound = server.ask("POST", "/scheduler/bind", {
            "PodName": "train", "PodNamespace": "team-a", "PodUID": "uid-train", "Node": "node-1"})
        assert not bound.get("Error") and not bound.get("error"), bound
        for offset in STEPS:
            time.sleep(PAUSE_SECONDS)
            server.set_clock(offset)
            server.ask("GET", "/api/v1/pods")  # somebody reads the clock soon after it was moved
        time.sleep(PAUSE_SECONDS)
        server.ask("POST", "/embedded/v1/delete", {
            "kind": "Pod", "metadata": {"name": "train", "namespace": "team-a"},
            "gracePeriodSeconds": 0})
        passed = (time.monotonic() - begin) * GPUS
        code = server.stop()
        assert code == 0, f"expected exit code 0, found {code}"
        subprocess.run([binary, "ledger", "verify", "--ledger", server.ledger], check=True)
        rows = subprocess.run([binary, "ledger", "export", "--ledger", server.ledger], check=True,
                              capture_output=True, text=True).stdout
    charged = 0.0
    intervals = list(csv.DictReader(io.StringIO(rows)))
    for row in intervals:
        start, end = (time_of(row[key]) for key in ("start", "end"))
        assert end >= start, f"expected no negative interval, found {row}"
        charged += (end - start) * float(row["gpus"])
    assert len(intervals) > 1, "expected a step forward to close and reopen the interval"
    print(f"charged {charged:.3f} GPU-seconds in {len(intervals)} intervals, {passed:.3f} passed")
    assert abs(charged - passed) <= TOLERANCE_GPU_SECONDS, "expected the two to agree"


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    main(sys.argv[1])
