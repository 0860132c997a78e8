"""Certificates of every kind that a server may be shown, made with openssl."""

import subprocess

CONFIG = """\
[ca]
default_ca = one
[one]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""
EXPIRED = ("-startdate", "20240101000000Z", "-enddate", "20240201000000Z")
VALID = ("-days", "90")
CLIENT, SERVER = "clientAuth", "serverAuth"


def openssl(folder, *arguments):
    done = subprocess.run(["openssl", *arguments], cwd=folder, text=True, capture_output=True,
                          check=False, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")


def make_key(folder, name, kind="EC"):
    how = {"EC": ("-pkeyopt", "ec_paramgen_curve:prime256v1"),
           "RSA": ("-pkeyopt", "rsa_keygen_bits:2048")}[kind]
    openssl(folder, "genpkey", "-algorithm", kind, *how, "-out", f"{name}.key")


class Authority:
    """A CA in a folder of its own; file names are relative to that folder."""

    def __init__(self, folder, name="test-ca"):
        folder.mkdir()
        self.folder = folder
        self.certificate = folder / "ca.crt"
        (folder / "ca.cnf").write_text(CONFIG)
        (folder / "index.txt").write_text("")
        make_key(folder, "ca")
        openssl(folder, "req", "-x509", "-new", "-key", "ca.key", "-days", "90", "-subj",
                f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", "ca.crt")

    def sign(self, name, usage, alternatives=(), kind="EC", validity=VALID):
        """Returns (certificate, key). `name` is the CN; `alternatives` are DNS names."""
        files = f"{name}-{usage}-{len(list(self.folder.iterdir()))}"
        make_key(self.folder, files, kind)
        names = ",".join(f"DNS:{one}" for one in alternatives)
        more = ("-addext", f"subjectAltName={names}") if names else ()
        openssl(self.folder, "req", "-new", "-key", f"{files}.key", "-subj", f"/CN={name}",
                "-addext", f"extendedKeyUsage={usage}",
                "-addext", "keyUsage=critical,digitalSignature", *more, "-out", f"{files}.csr")
        openssl(self.folder, "ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.crt",
                "-keyfile", "ca.key", *validity, "-in", f"{files}.csr", "-out", f"{files}.crt")
        return self.folder / f"{files}.crt", self.folder / f"{files}.key"
