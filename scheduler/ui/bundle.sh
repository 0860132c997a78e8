#!/usr/bin/env bash
# Bundles the web page: the modules of page/ and the libraries of package.json, into plain files.
#
#   scheduler/ui/bundle.sh OUT     OUT: a folder, made if missing; gets index.html, app.js, ...
#
# Needs node 18 or later and npm. What package-lock.json pins is fetched once from the npm registry
# (its integrity is checked, no install script runs) into ~/.cache/tranche (TRANCHE_CACHE moves it),
# shared by all builds. CMake calls it; no input is asked for.
set -euo pipefail
exec </dev/null

fail() {
  echo "bundle: $*" >&2
  exit 1
}

if (( $# != 1 )); then fail "expected one folder to write to, found $# arguments"; fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

for tool in node npm; do
  command -v "$tool" >/dev/null ||
    fail "expected $tool in PATH (packages nodejs and npm; test/install-deps.sh build), found none"
done
major=$(node -p 'process.versions.node.split(".")[0]')
if (( major < 18 )); then fail "expected node 18 or later, found $(node --version)"; fi

cache=${TRANCHE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tranche}
key=$(cat "$here/package.json" "$here/package-lock.json" | sha256sum | cut -c1-16)
modules=$cache/page-$key
if [[ ! -d $modules ]]; then
  mkdir -p "$cache"
  # Made beside its place and moved there whole: other builds may do the same at this moment.
  fresh=$(mktemp -d "$cache/page-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  cp "$here/package.json" "$here/package-lock.json" "$fresh"
  (cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 ||
    fail "npm ci could not fetch what package-lock.json names; is the npm registry in reach?"
  mv -T "$fresh" "$modules" 2>/dev/null || [[ -d $modules ]] || fail "cannot write $modules"
fi

rm -f "$out"/*
NODE_PATH=$modules/node_modules node "$modules/node_modules/esbuild/bin/esbuild" \
  "$here/page/app.js" "$here/page/worker.js" "$here/page/style.css" --outdir="$out" --bundle \
  --format=esm --minify --charset=utf8 --target=es2022 --legal-comments=none --log-level=warning
cp "$here/page/index.html" "$here/page/icon.svg" "$out"
# The licences ask to be where the code is.
{
  echo "uPlot, which draws the charts of this page:"
  echo
  cat "$modules/node_modules/uplot/LICENSE"
} >"$out/licences.txt"
