"""What happens in the cluster while Prometheus watches, so that every panel has something to show.

Language borrows GPUs of vision, which takes them back, twice from the same owner; platform uses its
hours up; research is observed. Meanwhile small pods come and go. Time is moved by hand. The verbs
are played as scheduler/quickstart/drive.py plays them.
"""

import http.client
import pathlib
import socket
import sys
import threading
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scheduler" / "quickstart"))
import drive  # noqa: E402

V100_HALF = {"tranche.dev/gpu-fraction": "0.5", "tranche.dev/model": "v100"}


class Cluster:
    """An embedded cluster on a manual clock, and the scheduler that kube-scheduler would be."""

    def __init__(self, address):
        self._server = drive.Server(f"http://{address}")
        self._server.wait_until_ready(20)
        self._nodes = [node["name"] for node in self._server.get("/api/v1/nodes")["nodes"]]

    def create(self, team, name, owner=None, grace_seconds=1, **workload):
        pod = drive.make_pod({"team": team, **workload}, name)
        pod["metadata"]["uid"] = str(uuid.uuid4())
        pod["spec"]["terminationGracePeriodSeconds"] = grace_seconds
        if owner:
            pod["metadata"]["ownerReferences"] = [{
                "apiVersion": "batch/v1", "kind": "Job", "name": owner, "controller": True,
                "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, owner))}]
        self._server.post("/embedded/v1/apply", pod)
        return pod

    def schedule(self, pod):
        """The node it was bound to, or None."""
        return drive.schedule(self._server, pod, self._nodes)[0]

    def place(self, *args, **kwargs):
        pod = self.create(*args, **kwargs)
        if self.schedule(pod) is None:
            raise RuntimeError(f"expected a node for {pod['metadata']['name']}, found none")
        return pod

    def delete(self, pod):
        meta = pod["metadata"]
        self._server.post("/embedded/v1/delete", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": meta["namespace"], "name": meta["name"]}})

    def advance(self, seconds):
        self._server.post("/embedded/v1/clock", {"advanceSeconds": seconds})

    def place_by_reclaim(self, pod):
        """Plays on while room is made for the pod."""
        for _ in range(20):
            if self.schedule(pod):
                return
            self.advance(2)
        raise RuntimeError(f"expected room to be made for {pod['metadata']['name']}, found: "
                           f"{self._server.get('/api/v1/reclaims')}")

    def review(self, webhook, pod):
        """What an API server asks before it creates the pod; returns whether it may."""
        answer = self._server.post(f"/admission/{webhook}", {
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": str(uuid.uuid4()), "operation": "CREATE",
                        "namespace": pod["metadata"]["namespace"],
                        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": pod}})
        return answer["response"]["allowed"]

    def preempt(self, pod):
        """kube-scheduler's PostFilter asks with candidates that have no victims."""
        self._server.post("/scheduler/preempt", {
            "Pod": pod, "NodeNameToVictims": {},
            "NodeNameToMetaVictims": {node: {"Pods": [], "NumPDBViolations": 0}
                                      for node in self._nodes}})


def tell(cluster):
    """The story up to the moment where everybody waits for something."""
    h100 = {"tranche.dev/model": "h100"}
    cluster.place("team-language", "pretrain", limits={"nvidia.com/gpu": 8}, annotations=h100)
    # Whoever started first holds the team's own GPUs, who came later borrows.
    cluster.advance(60)
    borrowed = {"owner": "finetune", "limits": {"nvidia.com/gpu": 6}, "annotations": h100}
    cluster.place("team-language", "finetune-1", **borrowed)
    cluster.place("team-platform", "build", limits={"nvidia.com/gpu": 2},
                  annotations={"tranche.dev/model": "v100"})
    first = cluster.create("team-vision", "train-1", limits={"nvidia.com/gpu": 4},
                           annotations=h100)
    cluster.place_by_reclaim(first)

    cluster.delete(first)
    # Past every rest that an eviction gives, and past platform's two GPU-hours.
    cluster.advance(2 * 3600)
    cluster.place("team-language", "finetune-2", **borrowed)
    cluster.advance(3600)
    second = cluster.create("team-vision", "train-2", limits={"nvidia.com/gpu": 4},
                            annotations=h100)
    cluster.place_by_reclaim(second)
    cluster.place("team-language", "evaluate", limits={"nvidia.com/gpu": 2}, annotations=h100)
    cluster.advance(1800)

    for team, name, workload in [
            ("team-language", "finetune-3", {"limits": {"nvidia.com/gpu": 8}, "annotations": h100}),
            ("team-vision", "train-3", {"limits": {"nvidia.com/gpu": 6}, "annotations": h100,
                                         "priorityClass": "gpu-training"}),
            ("team-platform", "build-next", {"annotations": V100_HALF}),
            ("team-elsewhere", "misspelt", {"limits": {"nvidia.com/gpumem": "4Gib"}})]:
        waiting = cluster.create(team, name, **workload)
        if cluster.schedule(waiting):
            raise RuntimeError(f"expected {name} to wait, found it bound")


def send_too_long_a_header(address):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: tranche\r\nX-Long: " + b"x" * 20_000 +
                           b"\r\n\r\n")
        answer = connection.recv(64)
    if b" 431 " not in answer:
        raise RuntimeError(f"expected 431 for a header of 20,000 bytes, found {answer!r}")


class ComeAndGo(threading.Thread):
    """Small pods that come and go until stop(), and calls that are refused."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self._address = address
        self._stopped = threading.Event()
        self.problem = None

    def run(self):
        try:
            cluster = Cluster(self._address)
            number = 0
            while not self._stopped.wait(0.1):
                number += 1
                for team in ("team-vision", "team-research"):
                    cluster.delete(cluster.place(team, f"small-{number}", grace_seconds=0,
                                                 annotations=V100_HALF))
                # Pods without a quota, of which one can never run.
                huge = cluster.create("team-elsewhere", f"huge-{number}", grace_seconds=0,
                                      limits={"nvidia.com/gpu": 64})
                cluster.schedule(huge)
                cluster.preempt(huge)
                for webhook in ("mutate", "validate"):
                    cluster.review(webhook, huge)
                cluster.delete(huge)
                impossible = drive.make_pod(
                    {"team": "team-elsewhere", "limits": {"nvidia.com/gpu": 65}}, "impossible")
                if cluster.review("validate", impossible):
                    raise RuntimeError("expected 65 GPUs to be refused at creation")
                send_too_long_a_header(self._address)
        except (OSError, http.client.HTTPException, RuntimeError, ValueError) as problem:
            self.problem = problem

    def stop(self):
        self._stopped.set()
        self.join(30)
