"""A real Prometheus on the loopback, and its HTTP API. Standard library only."""

import json
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def promtool(*arguments, text=None):
    """What promtool complains of; "" when it is content."""
    done = subprocess.run(["promtool", *map(str, arguments)], input=text, text=True, check=False,
                          capture_output=True, timeout=60)
    said = (done.stdout + done.stderr).strip()
    return said or f"exit {done.returncode}" if done.returncode else ""


class Prometheus:
    """`jobs`: dicts of a scrape configuration; JSON is YAML."""

    def __init__(self, folder, jobs, rule_files):
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s",
                             "evaluation_interval": "1s"},
                  "rule_files": [str(file) for file in rule_files], "scrape_configs": jobs}
        file = pathlib.Path(folder) / "prometheus.yml"
        file.write_text(json.dumps(config))
        self.log = pathlib.Path(folder) / "prometheus.log"
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        self._api = f"{self.url}/api/v1"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address={address}"], stdout=log, stderr=subprocess.STDOUT)

    def close(self):
        self._process.terminate()
        self._process.wait(20)

    def _get(self, path, **query):
        url = f"{self._api}/{path}?{urllib.parse.urlencode(query, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error).get("error", str(error))) from error

    def series(self, expr):
        return self._get("query", query=expr)["result"]

    def series_over(self, expr, start, end):
        return self._get("query_range", query=expr, start=start, end=end, step=1)["result"]

    def label_values(self, series, label):
        return self._get(f"label/{label}/values", **{"match[]": series})

    def names(self):
        return self._get("label/__name__/values")

    def rules(self):
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def wait_for_targets(self, count, seconds):
        deadline = time.monotonic() + seconds
        found = "no answer"
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"expected a running Prometheus, found: {self.log.read_text()}")
            try:
                targets = self._get("targets")["activeTargets"]
                found = {target["scrapeUrl"]: target["lastError"] or target["health"]
                         for target in targets}
                if [*found.values()] == ["up"] * count:
                    return
            except (OSError, ValueError) as problem:
                found = str(problem)
            time.sleep(0.2)
        raise RuntimeError(f"expected {count} targets within {seconds} s, found: {found}")
