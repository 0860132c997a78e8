"""testssl.sh, which finds out what a TLS server takes, and what its findings must be."""

import json
import re
import shutil
import subprocess

# Debian's package names it testssl, its makers testssl.sh.
NAMES = ("testssl", "testssl.sh")
# Protocols, forward secrecy, ciphers by protocol, the certificate, known vulnerabilities.
PARTS = ("-p", "-f", "-E", "-S", "-U")
SECONDS = 240
# Severities of findings that are no problem.
FINE = {"OK", "INFO"}
# Findings that may be there, and why.
ALLOWED = {
    "engine_problem": "the scanner's own OpenSSL lacks GOST",
    "service": "what is spoken behind TLS is guessed, for its check of compressed answers alone",
    "cert_revocation": "the CA is the installation's own, and publishes no lists",
}
# Where a handshake without a certificate ends, these cannot be looked at.
CLIENT_CERTIFICATE = {"secure_client_renego", "BREACH"}
PROTOCOLS = {"SSLv2": False, "SSLv3": False, "TLS1": False, "TLS1_1": False, "TLS1_2": True,
             "TLS1_3": True}
# Its name, its suites: key agreement, then authenticated encryption.
SUITES = {
    "tls1_2": re.compile(r"ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305)$"),
    "tls1_3": re.compile(r"TLS_(AES_(128|256)_GCM_SHA(256|384)|CHACHA20_POLY1305_SHA256)$"),
}
VULNERABILITIES = ("heartbleed", "CCS", "ticketbleed", "ROBOT", "secure_renego", "CRIME_TLS",
                   "POODLE_SSL", "SWEET32", "FREAK", "DROWN", "LOGJAM", "BEAST", "LUCKY13", "RC4")


def program():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Scan:
    """A scan that runs beside what else is done, until its findings are asked for."""

    def __init__(self, name, port, authority, folder):
        self._file = folder / f"scan-{port}.json"
        self._log = folder / f"scan-{port}.log"
        with self._log.open("w") as log:
            # Nobody is asked for anything: no look-ups of names, no calls to other hosts.
            self._process = subprocess.Popen(
                [program(), *PARTS, "--nodns", "none", "--warnings", "off", "--color", "0",
                 "--openssl-timeout", "10", "--connect-timeout", "10", "--add-ca", str(authority),
                 "--jsonfile", str(self._file), "--ip", "127.0.0.1", f"{name}:{port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder)

    def findings(self):
        """Name -> list of (severity, text)."""
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired as late:
            self.stop()
            raise RuntimeError(f"expected the scan to end within {SECONDS} s: "
                               f"{self._log.read_text()[-2000:]}") from late
        found = {}
        for one in json.loads(self._file.read_text()):
            found.setdefault(one["id"], []).append((one["severity"], one["finding"]))
        if "scanTime" not in found:
            raise RuntimeError(f"expected a scan that came to its end, found "
                               f"{self._log.read_text()[-2000:]}")
        return found

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)


# ---- what must hold; each returns what does not, or None ---------------------------------------


def check_protocols(found):
    """TLS 1.2 and 1.3, nothing older."""
    problems = []
    for protocol, wanted in PROTOCOLS.items():
        texts = [text for _, text in found.get(protocol, [])]
        if not texts or any(text.startswith("offered") != wanted for text in texts):
            expected = "offered" if wanted else "not offered"
            problems.append(f"{protocol}: expected {expected}, found {texts}")
    return "; ".join(problems)


def check_suites(found):
    """Every suite of every protocol agrees on a new key and authenticates what it encrypts."""
    problems, seen = [], dict.fromkeys(SUITES, 0)
    for name, rows in found.items():
        suite = re.fullmatch(r"cipher-(\w+?)_(x[0-9a-f]+)", name)
        if not suite:
            continue
        protocol = suite.group(1)
        for _, text in rows:
            # Protocol, its number, name, key exchange, ...
            words = text.split(suite.group(2), 1)[1].split()
            if protocol in SUITES and words and SUITES[protocol].match(words[0]):
                seen[protocol] += 1
            else:
                problems.append(f"{name}: expected forward secrecy and AEAD, found {text}")
    problems += [f"expected suites of {protocol}, found none"
                 for protocol, count in seen.items() if count == 0]
    return "; ".join(problems)


def check_vulnerabilities(found):
    """Each was looked for."""
    return "; ".join(f"expected a finding about {name}, found none"
                     for name in VULNERABILITIES if name not in found)


def check_rest(found, demands_certificate):
    """Nothing else that the scanner dislikes."""
    allowed = set(ALLOWED) | (CLIENT_CERTIFICATE if demands_certificate else set())
    return "; ".join(f"{name}: {severity}: {text}" for name, rows in found.items()
                     for severity, text in rows
                     if severity not in FINE and name not in allowed)


def check_certificate(found, common_name, alternatives):
    """The one that is configured, and no other beside it."""
    wanted = {"cert_subjectAltName": " ".join(alternatives), "cert_numbers": "1",
              "certs_countServer": "1", "cert_caIssuers": "test-ca",
              "sessionresumption_ticket": "not supported"}
    problems = []
    for name, text in wanted.items():
        texts = [one for _, one in found.get(name, [])]
        if not any(one.startswith(text) for one in texts):
            problems.append(f"{name}: expected {text}, found {texts}")
    shown = [text for name in ("cert_commonName", "cert_commonName_wo_SNI")
             for _, text in found.get(name, [])]
    if common_name not in shown:
        problems.append(f"expected the common name {common_name}, found {shown}")
    return "; ".join(problems)
