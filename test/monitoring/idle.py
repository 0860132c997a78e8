"""Work that does nothing, measured by a real Prometheus: told, then evicted; all others stay.

On the machine's clock: idleAfter is seconds here. Three pods of its class, on a node whose exporter
names the pods: one works, one does nothing, and one the exporter does not know.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scheduler" / "quickstart"))
import drive  # noqa: E402

NAMESPACE = "lab"
GPUS = [{"uuid": "GPU-d0", "util": 0, "namespace": NAMESPACE, "pod": "sleeps"},
        {"uuid": "GPU-d1", "util": 70, "namespace": NAMESPACE, "pod": "works"},
        {"uuid": "GPU-d2", "util": 0}]
OBJECTS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: notebook}
value: 10
---
apiVersion: tranche.dev/v1alpha1
kind: GPUClass
metadata: {name: notebook}
spec:
  priorityClassNames: [notebook]
  preemptible: Never
  sharing: [Exclusive]
  idleAfter: 20s
---
apiVersion: v1
kind: Node
metadata:
  name: with-agent
  labels:
    tranche.dev/agent: "true"
    nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
    nvidia.com/gpu.memory: "81559"
  annotations:
    tranche.dev/agent-register: >-
      {"v":1,"devices":[
      {"uuid":"GPU-d1","index":0,"mib":81559,"healthy":true,"type":"NVIDIA H100 80GB HBM3"},
      {"uuid":"GPU-dx","index":1,"mib":81559,"healthy":true,"type":"NVIDIA H100 80GB HBM3"}]}
spec: {unschedulable: true}
status:
  allocatable: {nvidia.com/gpu: "2", cpu: "8", memory: 64Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
"""
# Of its first card, as the exporter tells it; of the second nobody says anything.
READING = {"percent": 70, "memoryMiB": 56000, "celsius": 65, "watts": 630}


def configuration(prometheus):
    return f"use: {{prometheus: '{prometheus}', everySeconds: 5}}\n"


def place_all(server):
    nodes = [node["name"] for node in server.get("/api/v1/nodes")["nodes"]]
    for name in ("sleeps", "works", "unseen"):
        pod = drive.make_pod({"team": NAMESPACE, "limits": {"nvidia.com/gpu": 1},
                              "priorityClass": "notebook"}, name)
        server.post("/embedded/v1/apply", pod)
        node, why = drive.schedule(server, pod, nodes)
        if node is None:
            return f"expected a node for {name}, found none: {why}"
    return None


def check(server, seconds):
    """Places the pods, and waits for what becomes of them."""
    problem = place_all(server)
    if problem:
        return problem
    deadline = time.monotonic() + seconds
    seen = {}  # of the idle pod, while it was there
    names = set()
    while time.monotonic() < deadline:
        pods = server.get(f"/api/v1/pods?namespace={NAMESPACE}")["pods"]
        names = {pod["name"] for pod in pods}
        for pod in pods:
            if "use" in pod:
                seen[pod["name"]] = pod["use"]["idleSince"]
        if "sleeps" not in names:
            break
        time.sleep(0.5)
    if names != {"works", "unseen"}:
        return f"expected that the idle pod goes and the others stay, found {sorted(names)}"
    if set(seen) != {"sleeps"}:
        return f"expected that the idle pod is shown as idle, found {seen}"
    works = server.get(f"/api/v1/pods/{NAMESPACE}/works")
    if works.get("use", {}).get("percent") != 70:
        return f"expected use of 70 %, found {works.get('use')}"
    cards = [card["reading"] for card in server.get("/api/v1/nodes/with-agent")["gpus"]]
    told = [card and {key: card[key] for key in READING} for card in cards]
    if told != [READING, None]:
        return f"expected that one card is measured, found {told}"
    if any("reading" in card for node in server.get("/api/v1/nodes")["nodes"]
           for card in node["gpus"]):
        return "expected no readings in the list of nodes, found some"
    reclaims = [(one["rule"], [victim["pod"] for victim in one["victims"]])
                for one in server.get("/api/v1/reclaims")["reclaims"]]
    if reclaims != [("Idle", [f"{NAMESPACE}/sleeps"])]:
        return f"expected one reclaim of rule Idle, found {reclaims}"
    # Too short a time to say who would do with less, but all that it takes is told.
    sizes = server.get("/api/v1/advice")["rightSizes"]
    if (sizes["measuring"], sizes["entries"], sizes["notes"]) != (1, [], []):
        return f"expected that one pod is measured, its memory too, found {sizes}"
    kinds = [event["kind"] for event in server.get("/api/v1/events")["events"]
             if event["name"] == "sleeps"]
    if "LeavesSoon" not in kinds:
        return f"expected that its owner is told before, found the events {kinds}"
    return None
