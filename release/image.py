"""Images as OCI image layouts, a tar each: what `docker load`, skopeo and podman take."""

import datetime
import hashlib
import json

import tar

OCI = "application/vnd.oci.image"
# Who the program runs as, and where it listens.
SETTINGS = {
    "tranche": {"User": "65532:65532", "Entrypoint": ["/tranche"],
                "ExposedPorts": {"8443/tcp": {}, "9090/tcp": {}}},
    "tranche-node": {"Entrypoint": ["/tranche-node"]},
}
OWNERS = {"tranche": {"var/lib/tranche": 65532}, "tranche-node": {}}


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Layout:
    def __init__(self, folder):
        self.blobs = folder / "blobs/sha256"
        self.blobs.mkdir(parents=True)
        self.folder = folder

    def add(self, data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        (self.blobs / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def finish(self, manifests):
        (self.folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
        (self.folder / "index.json").write_bytes(_json(
            {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": manifests}))


def images(release):
    created = datetime.datetime.fromtimestamp(release.epoch, datetime.timezone.utc)
    labels = {"org.opencontainers.image.version": release.version,
              "org.opencontainers.image.revision": release.commit}
    for name in release.programs:
        layout = Layout(release.scratch / f"{name}-oci")
        layer = tar.tar_of(release.assembled(name), release.epoch, owners=OWNERS[name])
        packed = layout.add(tar.gzipped(layer), f"{OCI}.layer.v1.tar+gzip")
        config = layout.add(_json({
            "architecture": release.debian, "os": "linux",
            "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "config": {**SETTINGS[name], "Labels": labels},
            "rootfs": {"type": "layers",
                       "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }), f"{OCI}.config.v1+json")
        manifest = layout.add(_json({
            "schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "config": config,
            "layers": [packed], "annotations": labels,
        }), f"{OCI}.manifest.v1+json")
        manifest["platform"] = {"architecture": release.debian, "os": "linux"}
        manifest["annotations"] = {"org.opencontainers.image.ref.name": release.version}
        layout.finish([manifest])
        made = release.out / f"{name}-{release.version}-{release.debian}.oci.tar"
        made.write_bytes(tar.tar_of(layout.folder, release.epoch))
        yield made
