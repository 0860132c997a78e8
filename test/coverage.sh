#!/usr/bin/env bash
# Which lines and decisions of the product the tests reach: builds without optimisation and with
# counters (build/coverage), runs unit, property, agent, scenario and torture tests and the
# simulator, and prints a table by room.
#
#   test/coverage.sh [--report]     --report: only the table, of what was run before
#   JOBS                            compilers at a time; default: one for each core
#
# Half an hour on two cores. What a decision is, and how code that nothing can reach is marked, is
# said in coverage.py. The rooms that decide and account (`must` below) are to have every
# decision taken both ways; those that are not are listed with file and line. Exit 1 where a test
# failed, where fewer than 90 % of the lines were reached of all rooms together or of one of those
# rooms, or where a decision of those rooms was never taken.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
build=build/coverage
must='scheduler/index/|quota/tree/|scheduler/ledger/|scheduler/kube/leadership/'

jobs=${JOBS:-$(nproc)}

failed=0
# Counters of processes that end are added up under a lock, so that they may run beside each other.
sharded() {  # BINARY [FILTER]
  seq 0 7 | GTEST_TOTAL_SHARDS=8 xargs -P "$jobs" -I{} env GTEST_SHARD_INDEX={} \
    "$build/bin/$1" --gtest_brief=1 --gtest_filter="${2:-*}" || failed=1
}

if [[ ${1:-} != --report ]]; then
  test/install-deps.sh build
  cmake --preset coverage
  cmake --build --preset coverage --parallel "$jobs" --target unit_tests property_tests \
    agent_tests tranche-scenario torture_tests tranche-sim sim_tests tranche fake_nvml
  find "$build" -name '*.gcda' -delete
  sharded unit_tests
  # A step is a world of its own to most of them, and one event to the streams. The slow oracle of
  # the drawn sets alone would take a quarter of an hour without optimisation.
  TRANCHE_STEPS=200 sharded property_tests '-Engine*Stream*:MachineTableProperty.Drawn*'
  TRANCHE_STEPS=5 sharded property_tests 'MachineTableProperty.Drawn*'
  TRANCHE_STEPS=10000 sharded property_tests 'Engine*Stream*'
  sharded agent_tests
  sharded sim_tests
  "$build/bin/tranche-scenario" test/scenarios/*.scn || failed=1
  "$build/bin/torture_tests" --gtest_brief=1 || failed=1
  "$build/bin/tranche-sim" --seconds 120 || failed=1
  if (( failed )); then echo "coverage.sh: tests failed; the table is of what ran" >&2; fi
fi
python3 -B test/coverage.py "$build" --must "$must" --least-lines 90 || failed=1
exit "$failed"
