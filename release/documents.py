"""What is told of a release: its parts (SPDX), where it came from (in-toto), krew's manifest."""

import datetime
import hashlib
import json

import archives


def _time(release):
    return datetime.datetime.fromtimestamp(release.epoch, datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%SZ")


def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _spdx_package(name, version, download="NOASSERTION", license_of="NOASSERTION"):
    identity = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in name)
    return {"SPDXID": f"SPDXRef-{identity}", "name": name, "versionInfo": version,
            "downloadLocation": download, "licenseConcluded": license_of,
            "licenseDeclared": license_of, "copyrightText": "NOASSERTION",
            "filesAnalyzed": False}


def bill_of_materials(release):
    """SPDX 2.3: the libraries that archives and images carry, and what the page is made of."""
    packages = {}
    for program in release.programs.values():
        packages.update(archives.packages_of(archives.libraries_of(program)))
    page = json.loads((release.root / "scheduler/ui/package.json").read_text())
    entries = [_spdx_package("tranche", release.version)]
    for name, version in sorted(packages.items()):
        entry = _spdx_package(name, version)
        entry["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={release.debian}"}]
        entries.append(entry)
    for name, version in sorted(page["dependencies"].items()):
        entry = _spdx_package(f"npm-{name}", version)
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": f"pkg:npm/{name}@{version}"}]
        entries.append(entry)
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tranche-{release.version}",
        "documentNamespace":
            f"https://spdx.org/spdxdocs/tranche-{release.version}-{release.commit}",
        "creationInfo": {"created": _time(release), "creators": ["Tool: release/make.py"]},
        "packages": entries,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": "SPDXRef-tranche"}] + [
            {"spdxElementId": "SPDXRef-tranche", "relationshipType": "DEPENDS_ON",
             "relatedSpdxElement": entry["SPDXID"]} for entry in entries[1:]],
    }
    made = release.out / f"tranche-{release.version}.spdx.json"
    made.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    yield made


def krew(release):
    if release.url is None:
        return
    archive = release.out / f"tranche-{release.version}-linux-{release.debian}.tar.gz"
    base = archive.name.removesuffix(".tar.gz")
    made = release.out / "krew-tranche.yaml"
    made.write_text(f"""apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata: {{name: tranche}}
spec:
  version: v{release.version}
  shortDescription: GPUs, quotas and why pods wait
  description: |
    Asks a running Tranche, a GPU scheduler extender: which GPUs are free, what each team may use
    and uses, why a pod waits and what would change that.
  caveats: |
    Needs the right to GET services/proxy of Tranche's Service.
  platforms:
  - selector: {{matchLabels: {{os: linux, arch: {release.debian}}}}}
    uri: {release.url.rstrip("/")}/{archive.name}
    sha256: {_digest(archive)}
    files: [{{from: "{base}/*", to: .}}]
    bin: bin/kubectl-tranche
""")
    yield made


def provenance(release):
    """An in-toto statement with SLSA's predicate. It is not signed: whoever publishes does that."""
    subjects = [{"name": path.name, "digest": {"sha256": _digest(path)}}
                for path in sorted(release.out.iterdir())]
    statement = {
        "_type": "https://in-toto.io/Statement/v1", "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "release/make.py",
                "externalParameters": {"version": release.version, "url": release.url},
                "resolvedDependencies": [{"name": "tree",
                                          "digest": {"gitCommit": release.commit}}]},
            "runDetails": {"builder": {"id": "release/make.py"},
                           "metadata": {"invocationId": release.commit}}},
    }
    made = release.out / "provenance.intoto.json"
    made.write_text(json.dumps(statement, indent=1, sort_keys=True) + "\n")
    yield made
