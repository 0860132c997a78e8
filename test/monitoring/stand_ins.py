"""Stand-ins for what runs beside Tranche in a cluster: dcgm-exporter and a quiet API server.

Each listens on a free port of the loopback until close(). Standard library only.
"""

import http.server
import json
import threading
import time


class _Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, content_type, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server:
    def __init__(self, handler):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class DcgmExporter(_Server):
    """Publishes GPUs as dcgm-exporter does: labels of the GPU, and of the pod that holds it.

    `gpus`: dicts with uuid, util (percent), optionally namespace and pod, and mig (instance id).
    """

    def __init__(self, hostname, gpus):
        text = _exposition(hostname, gpus)

        class Handler(_Quiet):
            def do_GET(self):
                self.answer(200, "text/plain; version=0.0.4; charset=utf-8", text)

        super().__init__(Handler)


def _exposition(hostname, gpus):
    util = ["# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).",
            "# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    engine = ["# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time the graphics engine is active.",
              "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge"]
    others = {}  # in MiB, degrees Celsius and W
    for number, gpu in enumerate(gpus):
        labels = {"gpu": str(number), "UUID": gpu["uuid"], "device": f"nvidia{number}",
                  "modelName": "NVIDIA H100 80GB HBM3", "Hostname": hostname}
        if "mig" in gpu:
            labels.update(GPU_I_PROFILE="1g.10gb", GPU_I_ID=gpu["mig"])
        if "pod" in gpu:
            labels.update(container="main", namespace=gpu["namespace"], pod=gpu["pod"])
        text = ",".join(f'{name}="{value}"' for name, value in labels.items())
        if "mig" not in gpu:
            util.append(f"DCGM_FI_DEV_GPU_UTIL{{{text}}} {gpu['util']}")
        engine.append(f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{text}}} {gpu['util'] / 100:.6f}")
        used = 800 * gpu["util"]
        for name, value in (("FB_USED", used), ("FB_FREE", 81559 - used),
                            ("GPU_TEMP", 30 + used // 1600), ("POWER_USAGE", 70 + used / 100)):
            others.setdefault(name, [f"# TYPE DCGM_FI_DEV_{name} gauge"]).append(
                f"DCGM_FI_DEV_{name}{{{text}}} {value}")
    return "\n".join(util + engine + sum(others.values(), [])) + "\n"


class HamiMonitor(_Server):
    """Publishes what containers do on shared cards as HAMi's monitor does, by its older names, or
    by those of 2.9 where `newer`.

    `containers`: dicts of card, namespace, pod, work (percent) and kernel (seconds since the last
    one); `worked`: seconds ago, told as the first answer, when the container was at work.
    """

    def __init__(self, containers):
        told = []  # one entry for each answer

        class Handler(_Quiet):
            def do_GET(self):
                text = _hami_exposition(containers, first=not told)
                told.append(text)
                self.answer(200, "text/plain; version=0.0.4; charset=utf-8", text)

        super().__init__(Handler)


def _hami_exposition(containers, first):
    lines = {}
    for one in containers:
        if one.get("newer"):
            names = ("namespace", "pod", "container", "vdevice_index", "device_uuid")
            work = "hami_container_device_utilization_ratio"
            kernel = "hami_container_last_kernel_elapsed_seconds"
        else:
            names = ("podnamespace", "podname", "ctrname", "vdeviceid", "deviceuuid")
            work = "Device_utilization_desc_of_container"
            kernel = "Device_last_kernel_of_container"
        values = (one["namespace"], one["pod"], "main", "0", one["card"])
        text = ",".join(f'{name}="{value}"' for name, value in zip(names, values)) + ',zone="vGPU"'
        if first and "worked" in one:
            then = int((time.time() - one["worked"]) * 1000)
            lines.setdefault(work, []).append(f"{work}{{{text}}} 35 {then}")
        else:
            lines.setdefault(work, []).append(f"{work}{{{text}}} {one['work']}")
        lines.setdefault(kernel, []).append(f"{kernel}{{{text}}} {one['kernel']}")
    return "".join(f"# TYPE {name} gauge\n" + "\n".join(rows) + "\n"
                   for name, rows in lines.items())


# Lists that a Kubernetes API server always has; what else is asked for does not exist there.
_LISTS = {
    "/api/v1/pods": ("v1", "PodList"),
    "/api/v1/nodes": ("v1", "NodeList"),
    "/api/v1/namespaces": ("v1", "NamespaceList"),
    "/apis/scheduling.k8s.io/v1/priorityclasses": ("scheduling.k8s.io/v1", "PriorityClassList"),
    "/apis/policy/v1/poddisruptionbudgets": ("policy/v1", "PodDisruptionBudgetList"),
}


class QuietApiServer(_Server):
    """A Kubernetes API server of an empty cluster, where nothing happens: lists are empty, watches
    carry a bookmark a second."""

    def __init__(self):
        class Handler(_Quiet):
            def do_GET(self):
                path, _, query = self.path.partition("?")
                if path not in _LISTS:
                    self.answer(404, "application/json", json.dumps({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                        "reason": "NotFound",
                        "message": "the server could not find the requested resource"}))
                    return
                version, kind = _LISTS[path]
                if "watch=" in query:
                    self._watch(version, kind.removesuffix("List"))
                    return
                self.answer(200, "application/json", json.dumps({
                    "kind": kind, "apiVersion": version, "items": [],
                    "metadata": {"resourceVersion": "100"}}))

            def _watch(self, version, kind):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                number = 100
                try:
                    while True:
                        number += 1
                        line = json.dumps({"type": "BOOKMARK", "object": {
                            "kind": kind, "apiVersion": version,
                            "metadata": {"resourceVersion": str(number)}}}).encode() + b"\n"
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                        self.wfile.flush()
                        time.sleep(1)
                except OSError:
                    self.close_connection = True

        super().__init__(Handler)

    def kubeconfig(self):
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "quiet",
            "clusters": [{"name": "quiet", "cluster": {"server": f"http://{self.address}"}}],
            "contexts": [{"name": "quiet", "context": {"cluster": "quiet", "user": "nobody"}}],
            "users": [{"name": "nobody", "user": {}}]})
