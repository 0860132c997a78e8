#!/usr/bin/env bash
# How much of the product the tests run through: lines and branches, a table by room.
#
#   test/coverage.sh [--only REGEX]   ctest labels; default: unit, property, scenario, sim tests
#
# Builds in build/coverage without optimisation, which takes as long as the release build. The last
# line says whether the promise holds: 90 % of all lines, and every branch that is no exception's of
# allocation, quota tree, ledger and lease. Exit 1 where it does not. Needs gcovr.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
only='^(unit_tests|property_tests|sim_tests|scenario)$'
if [[ ${1:-} == --only && $# == 2 ]]; then
  only=$2
elif (( $# > 0 )); then
  echo "expected --only REGEX, found: $*" >&2
  exit 2
fi
command -v gcovr >/dev/null || {
  echo "expected gcovr in PATH, found none: apt-get install gcovr" >&2
  exit 2
}
build=build/coverage

# Sources compiled together would be one for gcov too.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTRANCHE_UNITY=OFF -DTRANCHE_WERROR=OFF \
  -DCMAKE_CXX_FLAGS="--coverage -O0 -fprofile-update=atomic" >"$build.configure.log" 2>&1 || {
  cat "$build.configure.log"
  exit 1
}
cmake --build "$build" --parallel "$(nproc)"
find "$build" -name '*.gcda' -delete
failed=0
ctest --test-dir "$build" --parallel "$(nproc)" --label-regex "$only" --output-on-failure ||
  failed=1

gcovr --root . --object-directory "$build" --json-summary "$build/coverage.json" \
  --exclude-throw-branches --exclude-unreachable-branches --gcov-ignore-parse-errors \
  --filter 'topology/' --filter 'policy/' --filter 'quota/' --filter 'scheduler/' >/dev/null
python3 -B test/coverage.py "$build/coverage.json" || failed=1
exit "$failed"
