#!/usr/bin/env bash
# Tests the web page in a real Chromium, or Firefox; see README.md.
#
#   test/page/run.sh [--firefox] [--tap FILE] [TEST.mjs ...]
#
#   --firefox    in Firefox as it is distributed
#   --tap FILE   write the outcome there too, in the Test Anything Protocol
#
# PAGE_WIDTHS (1440,390): widths in pixels at which accessibility_test.mjs looks.
# Exit codes: 0 all passed, 1 some failed, 2 something is missing, 3 the browser is not installed.
set -euo pipefail
exec </dev/null

fail() {
  echo "page tests: $1" >&2
  exit "${2:-2}"
}

cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../.. && pwd)
unset FIREFOX
if [[ ${1:-} == --firefox ]]; then
  FIREFOX=$(command -v firefox-esr || command -v firefox || true)
  export FIREFOX
  [[ -n $FIREFOX ]] ||
    fail "expected firefox (test/install-deps.sh firefox), found none in PATH" 3
  shift
fi
tap=
if [[ ${1:-} == --tap ]]; then
  tap=$(realpath -m "${2:?expected a file after --tap}")
  shift 2
fi
tests=("$@")
if (( ${#tests[@]} == 0 )); then tests=(*_test.mjs); fi

export TRANCHE_BIN=${TRANCHE_BIN:-$root/build/release/bin/tranche}
export CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[[ -x $TRANCHE_BIN ]] || fail "expected a built server, found none at $TRANCHE_BIN"
[[ -n ${FIREFOX:-}$CHROMIUM ]] ||
  fail "expected chromium (test/install-deps.sh page), found none in PATH" 3
for tool in node npm; do
  command -v "$tool" >/dev/null || fail "expected $tool (test/install-deps.sh build), found none"
done

cache=${TRANCHE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tranche}
key=$(cat package.json package-lock.json | sha256sum | cut -c1-16)
modules=$cache/page-tests-$key
if [[ ! -d $modules ]]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/page-tests-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  cp package.json package-lock.json "$fresh"
  (cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 ||
    fail "npm ci could not fetch what package-lock.json names; is the npm registry in reach?"
  mv -T "$fresh" "$modules" 2>/dev/null || [[ -d $modules ]] || fail "cannot write $modules"
fi

# Modules are found beside the tests only: they run from a copy that stands beside theirs.
mkdir -p "$root/build/page"
work=$root/build/page/run
rm -rf "$work"
mkdir -p "$work"
cp ./*.mjs package.json "$work"
ln -s "$modules/node_modules" "$work/node_modules"
cd "$work"
export TRANCHE_ROOT=$root
reporters=(--test-reporter=spec --test-reporter-destination=stdout)
if [[ -n $tap ]]; then reporters+=(--test-reporter=tap --test-reporter-destination="$tap"); fi
# The longest file takes two minutes, and longer with more widths or in Firefox. A headless browser
# was seen to hang for ever on a busy machine: such a file is begun once more, and a page that is at
# fault hangs again.
most=480
if [[ -n ${FIREFOX:-}${PAGE_WIDTHS:-} ]]; then most=1800; fi
# One after another: frame times are measured.
status=0
for file in "${tests[@]}"; do
  part=("${reporters[@]}")
  if [[ -n $tap ]]; then part[3]=--test-reporter-destination="$tap.$(basename "$file")"; fi
  for try in 1 2; do
    outcome=0
    timeout --kill-after=20 "$most" node --test "${part[@]}" "$(basename "$file")" || outcome=$?
    (( outcome == 124 || outcome == 137 )) || break
    echo "page tests: expected $file to end within $most s, found it hanging (try $try of 2)"
  done
  (( outcome == 0 )) || status=1
done
if [[ -n $tap ]]; then
  cat "$tap".*_test.mjs >"$tap"
  rm -f "$tap".*_test.mjs
fi
exit "$status"
