"""The place where commands are run: the quickstart's server, and the files that documents name."""

import contextlib
import http.client
import http.server
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "test/docs/data"
QUICKSTART = ROOT / "scheduler/quickstart"
LEDGER = "build/quickstart.db"
LEDGER_COPIES = ("F.db", "ledger.db")
# What documents call files of a reader's own, by the file of data/ that stands for them.
OWN_FILES = {
    "my-pod.yaml": "pod.yaml", "pod.yaml": "pod.yaml", "my-edits.yaml": "edits.yaml",
    "my-quotas.yaml": "edits.yaml", "more-for-vision.yaml": "edits.yaml",
    "vision.yaml": "vision.yaml", "names.key": "names.key"}
# This is the way to the pages of Tranche through an API server.
THROUGH_API = "/api/v1/namespaces/tranche-system/services/https:tranche:pages/proxy"
HOME_FOLDERS = ("bin", ".zfunc", ".config/fish/completions", ".local/share/man/man1",
                ".local/share/bash-completion/completions")
TIMEOUT = 30

# kubectl calls its plugins by name, and shows what a cluster has; here these are files.
KUBECTL = f"""#!/bin/sh
case "$*" in
  tranche" "*) shift; exec kubectl-tranche "$@" ;;
  get" "*"-o json") exec cat "{DATA}/cluster.json" ;;
  get" "*"-o yaml") exec cat "{QUICKSTART}/teams.yaml" ;;
esac
echo "kubectl: expected a plugin, or get -o json or yaml, found $*" >&2
exit 2
"""

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: played, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: me, user: {{}}}}]
contexts: [{{name: prod, context: {{cluster: played, user: me}}}}]
current-context: prod
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Pages(http.server.BaseHTTPRequestHandler):
    """An API server as far as kubectl tranche needs one: what it asks of the Service goes on."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, content = 404, b"{}"
        if self.path.startswith(THROUGH_API):
            onward = http.client.HTTPConnection("127.0.0.1", self.server.tranche, timeout=TIMEOUT)
            with contextlib.closing(onward):
                onward.request(self.command, self.path.removeprefix(THROUGH_API), body,
                               {"Content-Type": self.headers.get("Content-Type", "")})
                reply = onward.getresponse()
                status, content = reply.status, reply.read()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class World:
    """Entered, a server runs in a folder of its own; left, nothing of it does."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder / "work"
        self.port, self.server, self.pages = free_port(), None, None
        self.home = folder / "home"
        self.names = folder / "bin"
        for path in (self.folder / "build", self.names, *(self.home / x for x in HOME_FOLDERS)):
            path.mkdir(parents=True)
        self.environment = {
            "PATH": f"{self.names}:{os.environ['PATH']}", "HOME": str(self.home),
            "KUBECONFIG": str(folder / "kubeconfig"), "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}
        self._put_programs()
        self._put_files()

    def _put_programs(self):
        for program in self.binary.parent.glob("tranche*"):
            if os.access(program, os.X_OK):
                (self.names / program.name).symlink_to(program)
        for name in ("tranche", "kubectl-tranche"):
            (self.names / name).unlink(missing_ok=True)
            (self.names / name).symlink_to(self.binary)
        (self.names / "kubectl").write_text(KUBECTL)
        (self.names / "kubectl").chmod(0o755)

    def _put_files(self):
        for name, source in OWN_FILES.items():
            shutil.copy(DATA / source, self.folder / name)
        for folder in ("charts", "test"):
            (self.folder / folder).symlink_to(ROOT / folder)

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        url = f"http://127.0.0.1:{self.port}"
        with open(self.folder / "server.log", "w", encoding="utf-8") as log:
            self.server = subprocess.Popen(
                [self.binary, "serve", "--cluster", "embedded", "--listen",
                 url.removeprefix("http://"), "--ledger", LEDGER, "--objects",
                 QUICKSTART / "fleet.yaml", QUICKSTART / "teams.yaml"],
                cwd=self.folder, stdout=log, stderr=log, env=self.environment)
        driven = subprocess.run(
            [sys.executable, "-B", QUICKSTART / "drive.py", "--server", url], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        if driven.returncode != 0:
            raise RuntimeError(f"the quickstart failed: {driven.stdout[-2000:]}")
        self.environment["TRANCHE_SERVER"] = url
        self.pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.pages.tranche = self.port
        threading.Thread(target=self.pages.serve_forever, daemon=True).start()
        config = KUBECONFIG.format(port=self.pages.server_port)
        pathlib.Path(self.environment["KUBECONFIG"]).write_text(config, encoding="utf-8")

    def __exit__(self, *_):
        if self.pages:
            self.pages.shutdown()
            self.pages.server_close()
        if self.server:
            self.server.terminate()
            try:
                self.server.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()

    def _copy_ledger(self, text):
        """Makes the ledgers a command names anew, as the server's is now."""
        for name in LEDGER_COPIES:
            if name not in text:
                continue
            for old in self.folder.glob(f"{name}*"):
                old.unlink()
            with contextlib.closing(sqlite3.connect(self.folder / LEDGER)) as source, \
                    contextlib.closing(sqlite3.connect(self.folder / name)) as target:
                source.backup(target)

    def run(self, text):
        """The exit code of a command line, and what it wrote."""
        self._copy_ledger(text)
        environment = dict(self.environment)
        if "kubectl tranche" in text or "--context" in text and "--server" not in text:
            # These ask through an API server, whatever else is said by the environment.
            del environment["TRANCHE_SERVER"]
        # A command that reads standard input gets what it asks for.
        given = "" if " -f -" not in text else (
            DATA / ("pod.yaml" if "whatif" in text else "edits.yaml")).read_text(encoding="utf-8")
        try:
            found = subprocess.run(
                ["bash", "-o", "pipefail", "-c", text], cwd=self.folder, env=environment,
                input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired as error:
            return 124, f"it did not end within {error.timeout} s"
        return found.returncode, found.stdout

    def run_server(self, text, port):
        """Starts a server by a command line, and ends it once it answers on the port."""
        with open(self.folder / "other.log", "w+", encoding="utf-8") as log:
            other = subprocess.Popen(["bash", "-c", f"exec {text}"], cwd=self.folder,
                                     env=self.environment, stdout=log, stderr=log)
            deadline = time.monotonic() + TIMEOUT
            while other.poll() is None and not is_ready(port) and time.monotonic() < deadline:
                time.sleep(0.05)
            answers = is_ready(port)
            if other.poll() is None:
                other.send_signal(signal.SIGTERM if answers else signal.SIGKILL)
            code = other.wait(TIMEOUT)
            log.seek(0)
            return code, log.read()


def is_ready(port):
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    with contextlib.closing(asked):
        try:
            asked.request("GET", "/readyz")
            return asked.getresponse().status == 200
        except OSError:
            return False
