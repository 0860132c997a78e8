"""Work that does nothing, measured by a real Prometheus: told, then evicted; all others stay.

On the machine's clock: idleAfter is seconds here. Three pods of its class, on a node whose exporter
names the pods: one works, one does nothing, and one the exporter does not know. Five more share a
card of HAMi, which is busy: HAMi's monitor tells that one works, that two stopped, by its older
names and by those of 2.9, and nothing that proves anything of the others: one was never seen to
work, one launches kernels.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scheduler" / "quickstart"))
import drive  # noqa: E402

NAMESPACE = "lab"
GPUS = [{"uuid": "GPU-d0", "util": 0, "namespace": NAMESPACE, "pod": "sleeps"},
        {"uuid": "GPU-d1", "util": 70, "namespace": NAMESPACE, "pod": "works"},
        {"uuid": "GPU-d2", "util": 0},
        {"uuid": "GPU-hs", "util": 80}]
SHARED = [{"pod": "shares-works", "work": 75, "kernel": 0},
          {"pod": "shares-stopped", "work": 0, "kernel": 600, "worked": 600},
          {"pod": "shares-stopped-29", "work": 0, "kernel": 600, "worked": 600, "newer": True},
          {"pod": "shares-unmeasured", "work": 0, "kernel": 600},
          {"pod": "shares-launches", "work": 0, "kernel": 1, "worked": 600}]
LEAVE = {"sleeps", "shares-stopped", "shares-stopped-29"}
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
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: shares}
value: 11
---
apiVersion: tranche.dev/v1alpha1
kind: GPUClass
metadata: {name: shares}
spec: {priorityClassNames: [shares], idleAfter: 20s}
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
---
apiVersion: v1
kind: Node
metadata:
  name: shared
  labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.memory: "81559"}
  annotations:
    hami.io/node-nvidia-register: >-
      [{"id":"GPU-hs","count":10,"devmem":81559,"devcore":100,
      "type":"NVIDIA-NVIDIA H100 80GB HBM3","mode":"hami-core","health":true}]
status:
  allocatable: {nvidia.com/gpu: "10", cpu: "8", memory: 64Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
"""
# Of its first card, as the exporter tells it; of the second nobody says anything.
READING = {"percent": 70, "memoryMiB": 56000, "celsius": 65, "watts": 630}


def configuration(prometheus):
    return f"use: {{prometheus: '{prometheus}', everySeconds: 5}}\n"


def containers():
    return [{"card": "GPU-hs", "namespace": NAMESPACE, **one} for one in SHARED]


def place(server, name, priority_class, limits, nodes):
    pod = drive.make_pod({"team": NAMESPACE, "limits": limits,
                          "priorityClass": priority_class}, name)
    server.post("/embedded/v1/apply", pod)
    node, why = drive.schedule(server, pod, nodes)
    return None if node else f"expected a node for {name}, found none: {why}"


def place_all(server):
    nodes = [node["name"] for node in server.get("/api/v1/nodes")["nodes"]]
    nodes.remove("shared")
    for name in ("sleeps", "works", "unseen"):
        if problem := place(server, name, "notebook", {"nvidia.com/gpu": 1}, nodes):
            return problem
    for one in SHARED:
        limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000}
        if problem := place(server, one["pod"], "shares", limits, ["shared"]):
            return problem
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
        if not LEAVE & names:
            break
        time.sleep(0.5)
    stay = {"works", "unseen", "shares-works", "shares-unmeasured", "shares-launches"}
    if names != stay:
        return f"expected that idle pods go and the others stay, found {sorted(names)}"
    if set(seen) != LEAVE:
        return f"expected that idle pods are shown as idle, found {seen}"
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
    if sorted(reclaims) != [("Idle", [f"{NAMESPACE}/{name}"]) for name in sorted(LEAVE)]:
        return f"expected a reclaim of rule Idle for each idle pod, found {reclaims}"
    # Too short a time to say who would do with less, but all that it takes is told: of the one that
    # works, and of the three that share a card.
    sizes = server.get("/api/v1/advice")["rightSizes"]
    if (sizes["measuring"], sizes["entries"], sizes["notes"]) != (4, [], []):
        return f"expected that four pods are measured, their memory too, found {sizes}"
    kinds = [event["kind"] for event in server.get("/api/v1/events")["events"]
             if event["name"] == "sleeps"]
    if "LeavesSoon" not in kinds:
        return f"expected that its owner is told before, found the events {kinds}"
    return None
