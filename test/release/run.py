#!/usr/bin/env python3
"""Makes a release twice, compares the bytes, and installs from each part of it.

run.py --programs DIR [--junit FILE]

Needs what release/make.py needs, and root or user namespaces. Beyond them the standard library
only.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "test"))
from report import Report  # noqa: E402

URL = "https://example.org/tranche"
START_SECONDS = 60
# Nothing of the machine's own but a shell for the launcher.
ALONE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
CHROOT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=600, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def one(folder, pattern):
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise RuntimeError(f"expected one file {pattern}, found {[path.name for path in found]}")
    return found[0]


def unpack(archive, target):
    with tarfile.open(archive) as content:
        content.extractall(target, filter="tar") if hasattr(tarfile, "tar_filter") \
            else content.extractall(target)
    return target


def same_bytes(first, second):
    names = {path.name for path in first.iterdir()} ^ {path.name for path in second.iterdir()}
    differ = sorted(path.name for path in first.iterdir()
                    if path.name not in names and sha256(path) != sha256(second / path.name))
    if names or differ:
        return f"expected the same files twice, found {sorted(names)} once and {differ} to differ"
    return None


def sums_hold(made):
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=made)
    listed = {line.split()[1] for line in (made / "SHA256SUMS").read_text().splitlines()}
    there = {path.name for path in made.iterdir()} - {"SHA256SUMS"}
    if listed == there:
        return None
    return f"expected {sorted(there)} in SHA256SUMS, found {sorted(listed)}"


def provenance_names_all(made):
    statement = json.loads((made / "provenance.intoto.json").read_text())
    for subject in statement["subject"]:
        if sha256(made / subject["name"]) != subject["digest"]["sha256"]:
            return f"expected the digest of {subject['name']}, found another"
    there = {path.name for path in made.iterdir()} - {"SHA256SUMS", "provenance.intoto.json"}
    named = {subject["name"] for subject in statement["subject"]}
    return None if named == there else f"expected {sorted(there)}, found {sorted(named)}"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serves(program, folder):
    """From the archive to the page; what the machine has installed does not matter."""
    port = free_port()
    begun = time.monotonic()
    server = subprocess.Popen([program, "serve", "--listen", f"127.0.0.1:{port}", "--ledger",
                               folder / "ledger.db"], env=ALONE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    try:
        while time.monotonic() - begun < START_SECONDS:
            try:
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/ui/", timeout=5).read()
                print(f"page after {time.monotonic() - begun:.1f} s")
                return None if b"<html" in page else f"expected the page, found {page[:80]!r}"
            except OSError:
                if server.poll() is not None:
                    return f"expected a server, found {server.stderr.read()[-300:]}"
                time.sleep(0.1)
        return f"expected the page within {START_SECONDS} s, found none"
    finally:
        server.terminate()
        server.wait(timeout=20)


def check_archive(report, made, scratch):
    stage = unpack(one(made, "tranche-[0-9]*-linux-*.tar.gz"), scratch / "archive")
    base = one(stage, "tranche-*")
    program = base / "bin/tranche"
    version = re.search(r"tranche-([0-9.]+)-linux", base.name).group(1)

    def elsewhere():
        link = scratch / "kubectl-tranche"
        link.symlink_to(base / "bin/kubectl-tranche")
        found = run(link, "--version", env=ALONE)
        return None if version in found else f"expected {version}, found {found!r}"

    def own_libraries():
        loader = one(base / "lib", "ld-linux*")
        listed = run(loader, "--library-path", base / "lib", "--list", base / "libexec/tranche")
        foreign = [path for path in re.findall(r"=> (/\S+)", listed)
                   if not path.startswith(str(base / "lib"))]
        return f"expected libraries of the archive, found {foreign}" if foreign else None

    report.attempt("archive: it runs, also through a link", elsewhere)
    report.attempt("archive: every library is its own", own_libraries)
    report.attempt("archive: it serves the page", lambda: serves(program, scratch))
    report.attempt("archive: the manual page and completion are there", lambda: None if
                   (base / "share/man/man1/tranche.1").read_text().startswith(".") and
                   (base / "share/bash-completion/completions/tranche").stat().st_size else
                   "found none")
    agent = unpack(one(made, "tranche-node-*-linux-*.tar.gz"), scratch / "agent")

    def agent_runs():
        done = subprocess.run([one(agent, "tranche-node-*") / "bin/tranche-node"], env=ALONE,
                              capture_output=True, text=True)
        wanted = "tranche-node: expected --config FILE\n"
        return None if done.stderr == wanted else f"expected {wanted!r}, found {done.stderr!r}"

    report.attempt("archive: the agent runs", agent_runs)


def check_debian(report, made, scratch):
    package = one(made, "*.deb")

    def installs():
        # What apt would do, without doing it.
        found = run("apt-get", "install", "--simulate", "--no-install-recommends", package)
        return None if "Inst tranche" in found else f"expected Inst tranche, found {found[-300:]}"

    def runs():
        run("dpkg-deb", "--extract", package, scratch / "deb")
        found = run(scratch / "deb/usr/bin/kubectl-tranche", "--version", env=ALONE)
        return None if found.startswith("tranche ") else f"expected a version, found {found!r}"

    report.attempt("deb: its dependencies can be had", installs)
    report.attempt("deb: it runs", runs)


def check_image(report, made, scratch, name, command, wanted):
    folder = scratch / f"{name}-layout"
    unpack(one(made, f"{name}-[0-9]*.oci.tar"), folder)

    def blob(descriptor):
        data = (folder / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if digest != descriptor["digest"] or len(data) != descriptor["size"]:
            raise ValueError(f"expected blob {descriptor['digest']}, found {digest}")
        return data

    def runs():
        index = json.loads((folder / "index.json").read_text())
        manifest = json.loads(blob(index["manifests"][0]))
        config = json.loads(blob(manifest["config"]))
        root = scratch / f"{name}-root"
        layer = scratch / f"{name}-layer"
        layer.write_bytes(blob(manifest["layers"][0]))
        unpack(layer, root)
        user = config["config"].get("User", "0:0")
        inside = ["chroot", f"--userspec={user}", root] if os.geteuid() == 0 else \
            ["unshare", "--user", "--map-root-user", "chroot", root]
        done = subprocess.run([str(word) for word in inside + config["config"]["Entrypoint"] +
                               command], capture_output=True, text=True, env=CHROOT)
        found = done.stdout + done.stderr
        return None if wanted in found else f"expected {wanted!r}, found {found!r}"

    report.attempt(f"image of {name}: its blobs are whole, and it runs as its user", runs)


def check_source(report, made, scratch):
    tree = one(unpack(one(made, "*-source.tar.gz"), scratch / "source"), "tranche-*")

    def builds_page():
        tools = scratch / "no-node"
        tools.mkdir()
        for name in ("node", "nodejs", "npm"):
            (tools / name).write_text("#!/bin/sh\necho found no registry >&2\nexit 1\n")
            (tools / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        build = scratch / "source-build"
        run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DTRANCHE_TESTS=OFF", env=environment)
        run("ninja", "-C", build, "tranche_ui", env=environment)
        table = one(build / "scheduler/ui", "asset_table.cc").read_text()
        return None if "/ui/app.js" in table else "expected the page in the table, found none"

    def is_the_tree():
        there = {str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir()}
        extra = {name for name in there if name.startswith("scheduler/ui/bundled/")}
        head = set(run("git", "ls-tree", "-r", "--name-only", "HEAD", cwd=ROOT).split("\n")) - {""}
        odd = (there - extra) ^ head
        if not odd:
            return None
        return f"expected the files of the commit, found {sorted(odd)[:5]} to differ"

    report.attempt("source: it is the commit and the bundled page", is_the_tree)
    report.attempt("source: the page is built without node and npm", builds_page)


def check_chart(report, made):
    def whole():
        with tarfile.open(one(made, "tranche-chart-*.tgz")) as content:
            names = {name for name in content.getnames()}
        wanted = {"tranche/Chart.yaml", "tranche/values.yaml", "tranche/crds/gpuquotas.yaml"}
        strangers = [name for name in names if not name.startswith("tranche/")]
        if wanted <= names and not strangers:
            return None
        return f"expected {sorted(wanted)} and all below tranche/, found {strangers[:3]}"
    report.attempt("chart: what Helm takes", whole)


def check_documents(report, made):
    def names_all_libraries():
        document = json.loads(one(made, "*.spdx.json").read_text())
        packages = {package["name"] for package in document["packages"]}
        wanted = {"tranche", "libfmt9", "libsqlite3-0", "libssl3", "libc6", "libstdc++6",
                  "npm-uplot"}
        return None if wanted <= packages else f"expected {sorted(wanted - packages)}, found none"

    def krew_digest():
        text = (made / "krew-tranche.yaml").read_text()
        archive = one(made, "tranche-[0-9]*-linux-*.tar.gz")
        if f"{URL}/{archive.name}" in text and sha256(archive) in text:
            return None
        return "expected the archive's address and digest, found others"

    report.attempt("documents: the bill of materials names the libraries", names_all_libraries)
    report.attempt("documents: krew's manifest has the archive's digest", krew_digest)
    report.attempt("documents: the sums hold and leave nothing out", lambda: sums_hold(made))
    report.attempt("documents: provenance has the digest of each",
                   lambda: provenance_names_all(made))


def make_site(root, folder):
    return subprocess.run([root / "release/docs_site.py", "--out", folder], capture_output=True,
                          text=True, timeout=300)


def check_site(report, scratch):
    first, second = scratch / "site-1", scratch / "site-2"

    def every_link_leads_somewhere():
        for folder in (first, second):
            done = make_site(ROOT, folder)
            if done.returncode != 0:
                return f"expected a site, found: {done.stderr}"
        fields = (first / "crds.html").read_text().count("<code>spec.")
        metrics = (first / "metrics.html").read_text().count("<code>tranche_")
        alerts = (first / "alerts.html").read_text().count('href="operations.html#')
        if min(fields, metrics, alerts) < 30:
            return f"expected fields, metrics and alerts, found {fields}, {metrics}, {alerts}"
        return same_bytes(first, second)

    def wrong_links_are_told():
        tree = scratch / "tree"
        for name in run("git", "-C", ROOT, "ls-files").splitlines():
            if name.endswith((".md", ".yaml", ".h", ".py", ".css", ".png")):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tree / name)
        with (tree / "scheduler/docs/faq.md").open("a") as page:
            page.write("\n[one](nowhere.md), [two](install.md#no-such-heading)\n")
        (tree / "scheduler/docs/lonely.md").write_text("# Nobody leads here\n")
        done = make_site(tree, scratch / "site-3")
        told = [line for line in ("found nowhere.md", "an anchor of install.html, found "
                                  "#no-such-heading", "lonely.html: expected a page that leads")
                if line not in done.stderr]
        return f"expected to be told, found nothing of {told}" if told or not done.returncode \
            else None

    report.attempt("site: every link leads somewhere, the same bytes twice",
                   every_link_leads_somewhere)
    report.attempt("site: links and pages that lead nowhere are told", wrong_links_are_told)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--junit")
    arguments = parser.parse_args()
    report = Report("release")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        first, second = scratch / "first", scratch / "second"
        for folder in (first, second):
            subprocess.run([sys.executable, "-B", ROOT / "release/make.py", "--programs",
                            arguments.programs, "--out", folder, "--url", URL], check=True)
        report.case("the same bytes twice", same_bytes(first, second))
        check_archive(report, first, scratch)
        check_debian(report, first, scratch)
        check_image(report, first, scratch, "tranche", ["--version"], "tranche ")
        check_image(report, first, scratch, "tranche-node", [], "expected --config FILE")
        check_source(report, first, scratch)
        check_chart(report, first)
        check_documents(report, first)
        check_site(report, scratch)
    passed, failed = report.counts()
    if arguments.junit:
        report.write(arguments.junit)
    print(f"release: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
