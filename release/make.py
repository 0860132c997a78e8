#!/usr/bin/env python3
"""Makes everything a release needs, from programs that are built, without a container engine.

make.py --out DIR [--programs build/release/bin] [--url BASE] [--epoch SECONDS]

DIR is made, and may not exist. Programs are those of `cmake --workflow --preset release`. The same
commit and programs give the same bytes. Needs git, strip, ldd, dpkg and dpkg-deb (Debian 12).

--url BASE   where the archives will lie, https://...: the krew manifest names them there; without
             it none is made
--epoch      time of every file, in seconds since 1970; default: that of the commit

Exit codes: 0 done, 1 something is missing, 2 usage.
"""

import argparse
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

import archives
import documents
import image

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ("tranche", "tranche-node")


def output_of(*command, cwd=ROOT):
    done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def version_of_tree():
    found = re.search(r"^project\(tranche VERSION ([0-9.]+)",
                      (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit("make: expected project(tranche VERSION ...) in CMakeLists.txt, found "
                         "none")
    return found.group(1)


class Release:
    """What every part is made from."""

    def __init__(self, arguments, scratch):
        self.root = ROOT
        self.out = arguments.out
        self.scratch = scratch
        self.version = version_of_tree()
        self.commit = output_of("git", "rev-parse", "HEAD")
        self.epoch = arguments.epoch
        if self.epoch is None:
            self.epoch = int(output_of("git", "show", "-s", "--format=%ct", "HEAD"))
        self.debian = output_of("dpkg", "--print-architecture")
        self.programs = {name: arguments.programs / name for name in PROGRAMS}
        self.url = arguments.url
        for name, path in self.programs.items():
            if not path.is_file():
                raise SystemExit(f"make: expected the program {name}, found none at {path}; "
                                 "cmake --workflow --preset release builds it")
        found = subprocess.run([self.programs["tranche"], "--version"], capture_output=True,
                               text=True, check=True).stdout
        if self.version not in found:
            raise SystemExit(f"make: expected the program to say {self.version}, found {found!r}")

    def assembled(self, name):
        """The root file system of the image of a program."""
        folder = self.scratch / f"{name}-root"
        if not folder.exists():
            subprocess.run([ROOT / "charts/image/assemble.sh", self.programs[name], folder],
                           check=True)
        return folder


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--programs", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--url")
    parser.add_argument("--epoch", type=int)
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    arguments.programs = arguments.programs.resolve()
    if arguments.url is not None and not arguments.url.startswith("https://"):
        parser.error(f"expected --url https://..., found {arguments.url}")
    if arguments.out.exists():
        raise SystemExit(f"make: expected no folder yet, found {arguments.out}")
    with tempfile.TemporaryDirectory() as scratch:
        release = Release(arguments, pathlib.Path(scratch))
        arguments.out.mkdir(parents=True)
        steps = [archives.programs, archives.source, archives.chart, archives.debian, image.images,
                 documents.bill_of_materials, documents.krew, documents.provenance]
        for number, step in enumerate(steps, 1):
            for made in step(release):
                print(f"[{number}/{len(steps)}] {made.name:48} {made.stat().st_size:>12,} bytes",
                      flush=True)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
                   for path in sorted(arguments.out.iterdir()))
    (arguments.out / "SHA256SUMS").write_text(sums)
    print(f"SHA256SUMS of {len(sums.splitlines())} files in {arguments.out}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as problem:
        raise SystemExit(f"make: {' '.join(map(str, problem.cmd))} ended with "
                         f"{problem.returncode}: {problem.stderr or ''}") from problem
