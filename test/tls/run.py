#!/usr/bin/env python3
"""TLS of a running server, looked at from outside by programs that are not ours.

run.py --tranche BIN [--junit FILE]

Needs testssl.sh, curl and openssl in PATH, else exits 3. Beyond them the standard library only.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import scanner
from authority import CLIENT, EXPIRED, SERVER, Authority

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "test"))
from report import Report  # noqa: E402

NAME = "tranche.tranche-system.svc"
ALTERNATIVES = (NAME, f"{NAME}.cluster.local")
CALLER = "tranche-scheduler.tranche-system.svc"
START_SECONDS = 20
VERBS = ("/scheduler/filter", "/scheduler/prioritize", "/scheduler/preempt", "/scheduler/bind",
         "/embedded/v1/apply")
# A filter call that the verbs answer with 200 if they are reached at all.
FILTER = {"Pod": {"metadata": {"name": "p", "namespace": "default", "uid": "u-1"},
                  "spec": {"containers": [{"name": "main"}]}}, "NodeNames": ["n1"]}
REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
          "request": {"uid": "r-1", "operation": "CREATE", "namespace": "default",
                      "kind": {"group": "", "version": "v1", "kind": "Pod"},
                      "resource": {"group": "", "version": "v1", "resource": "pods"},
                      "object": {"apiVersion": "v1", "kind": "Pod", **FILTER["Pod"]}}}
NO_ANSWER = 0  # what curl says for a status: no handshake, or no connection


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """`tranche serve` with TLS: `required` as the chart runs it, else every handshake is refused
    that shows no certificate."""

    def __init__(self, binary, folder, label, authority, pair, required):
        self.port, self.plain, self.pages = free_port(), free_port(), free_port()
        self.ca, self.required, self.label = authority.certificate, required, label
        settings = {"tls": {"listen": f"127.0.0.1:{self.port}", "certFile": str(pair[0]),
                            "keyFile": str(pair[1]), "clientCaFile": str(self.ca),
                            "verbs": "Required" if required else "Optional",
                            "allowedClients": [CALLER]}}
        if required:
            settings["pages"] = {"listen": f"127.0.0.1:{self.pages}"}
        config = folder / f"{label}.yaml"
        config.write_text(json.dumps(settings))
        self._log = folder / f"{label}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [binary, "serve", "--config", config, "--listen", f"127.0.0.1:{self.plain}"],
                stdout=log, stderr=subprocess.STDOUT)

    def wait(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError as problem:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError(f"{self.label}: {problem}; its log: "
                                       f"{self._log.read_text()[-2000:]}") from problem
                time.sleep(0.05)

    def close(self):
        self._process.terminate()
        self._process.wait(20)

    def ask(self, path, body, pair=None, version="1.3"):
        """The HTTP status that curl gets over TLS `version`, and the answer."""
        url = f"https://{NAME}:{self.port}{path}"
        shown = ("--cert", str(pair[0]), "--key", str(pair[1])) if pair else ()
        done = subprocess.run(
            ["curl", "--silent", "--noproxy", "*", "--cacert", str(self.ca), "--resolve",
             f"{NAME}:{self.port}:127.0.0.1", f"--tlsv{version}", "--tls-max", version,
             *shown, "--max-time", "20", "--json", json.dumps(body), "--write-out",
             "\n%{http_code}", url], text=True, capture_output=True, check=False)
        answer, _, status = done.stdout.rpartition("\n")
        return int(status), answer


def ask_plainly(port, path):
    done = subprocess.run(
        ["curl", "--silent", "--noproxy", "*", "--max-time", "20", "--json", json.dumps(FILTER),
         "--output", "/dev/null", "--write-out", "%{http_code}", f"http://127.0.0.1:{port}{path}"],
        text=True, capture_output=True, check=False)
    return int(done.stdout)


def make_strangers(authority, foreign):
    """What a caller may show that is not the one of CALLER, by what is wrong with it."""
    return {
        "no certificate": None,
        "a certificate of another CA": foreign.sign(CALLER, CLIENT, [CALLER]),
        "a certificate that has expired": authority.sign(CALLER, CLIENT, [CALLER],
                                                         validity=EXPIRED),
        "a certificate of another name": authority.sign("elsewhere", CLIENT, ["elsewhere.svc"]),
        "a common name beside alternative names": authority.sign(CALLER, CLIENT, ["elsewhere.svc"]),
        "a certificate for servers": authority.sign(CALLER, SERVER, [CALLER]),
    }


# Shown in a handshake that verifies: what comes after is HTTP's to refuse.
VERIFIED = {"a certificate of another name", "a common name beside alternative names"}


def check_stranger(server, wrong, pair, path, version):
    status, answer = server.ask(path, FILTER, pair, version)
    shakes_hands = wrong in VERIFIED or (wrong == "no certificate" and server.required)
    expected = 403 if shakes_hands else NO_ANSWER
    if status != expected:
        return f"expected status {expected}, found {status}: {answer}"
    return None


def check_callers(report, server, caller, strangers):
    for version in ("1.2", "1.3"):
        for wrong, pair in strangers.items():
            for path in VERBS:
                report.case(f"{server.label}: TLS {version}: {wrong}: no answer on {path}",
                            check_stranger(server, wrong, pair, path, version))
        # Else the cases above might fail for another reason.
        status, answer = server.ask("/scheduler/filter", FILTER, caller, version)
        report.case(f"{server.label}: TLS {version}: the caller that is allowed gets its answer",
                    None if status == 200 else f"expected 200, found {status}: {answer}")


def check_other_doors(report, server, caller, strangers):
    """Of a server that is run as the chart runs it."""
    for path in VERBS:
        for door, port, expected in (("plain port, closed", server.plain, NO_ANSWER),
                                     ("pages", server.pages, 404)):
            status = ask_plainly(port, path)
            report.case(f"{server.label}: {door}: no answer on {path}",
                        None if status == expected else f"expected {expected}, found {status}")
    for path in ("/admission/mutate", "/admission/validate"):
        status, answer = server.ask(path, REVIEW)
        allowed = status == 200 and json.loads(answer)["response"]["allowed"]
        report.case(f"{server.label}: {path} answers API servers, which show no certificate",
                    None if allowed else f"expected a review, found {status}: {answer}")
        for wrong in strangers:
            if wrong == "no certificate" or wrong in VERIFIED:
                continue
            status, _ = server.ask(path, REVIEW, strangers[wrong])
            report.case(f"{server.label}: {path}: {wrong}: no answer",
                        None if status == NO_ANSWER else f"expected none, found {status}")
    status, answer = server.ask("/metrics", {}, caller)
    report.case(f"{server.label}: pages are not served beside the verbs",
                None if status == 404 else f"expected 404, found {status}: {answer}")


def check_scan(report, server, scan):
    try:
        found = scan.findings()
    except (RuntimeError, ValueError, OSError) as problem:
        report.case(f"{server.label}: scan", str(problem))
        return
    for name, check in (
            ("TLS 1.2 and 1.3 alone", scanner.check_protocols),
            ("suites with forward secrecy and AEAD alone", scanner.check_suites),
            ("known vulnerabilities were looked for", scanner.check_vulnerabilities),
            ("the scanner has nothing against it",
             lambda one: scanner.check_rest(one, not server.required)),
            ("the certificate is the one configured",
             lambda one: scanner.check_certificate(one, "tranche", ALTERNATIVES))):
        report.case(f"{server.label}: scan: {name}", check(found))


def run(report, binary, folder, stack):
    authority = Authority(folder / "ca")
    foreign = Authority(folder / "foreign")
    caller = authority.sign(CALLER, CLIENT, [CALLER])
    strangers = make_strangers(authority, foreign)
    # The suites of TLS 1.2 depend on the kind of key, and only RSA keys could do without agreement.
    servers = [Server(binary, folder, label, authority,
                      authority.sign("tranche", SERVER, ALTERNATIVES, kind), required)
               for label, kind, required in (("verbs required, EC key", "EC", True),
                                             ("certificates demanded, RSA key", "RSA", False))]
    for server in servers:
        stack.callback(server.close)
    for server in servers:
        server.wait()
    scans = [scanner.Scan(NAME, server.port, authority.certificate, folder) for server in servers]
    for scan in scans:
        stack.callback(scan.stop)
    for server in servers:
        check_callers(report, server, caller, strangers)
    check_other_doors(report, servers[0], caller, strangers)
    for server, scan in zip(servers, scans):
        check_scan(report, server, scan)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tranche", required=True, type=pathlib.Path)
    parser.add_argument("--junit", type=pathlib.Path)
    options = parser.parse_args()
    found = {"testssl.sh": scanner.program(), **{one: shutil.which(one)
                                                 for one in ("curl", "openssl")}}
    for program, path in found.items():
        if not path:
            print(f"expected {program} in PATH (test/install-deps.sh tls), found none",
                  file=sys.stderr)
            sys.exit(3)
    report = Report("tls")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        report.attempt("the run went through", lambda: run(
            report, options.tranche.resolve(), pathlib.Path(folder), stack))
    if options.junit:
        report.write(options.junit)
    passed, failed = report.counts()
    print(f"tls: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
