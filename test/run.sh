#!/usr/bin/env bash
# Builds Tranche and runs every test. From any folder, on a fresh clone, without input.
#
#   test/run.sh [STEP ...]    default: release sim artifacts monitoring tls charts page e2e
#                             asan-ubsan; besides there are tsan, asan-properties and fuzz, a
#                             quarter of an hour each on two cores, sim-fresh (two minutes) and
#                             coverage (half an hour); what each does is said when it runs
#   test/run.sh quick         before each commit: unit and property tests, scenarios and the rules
#                             of the tree, in the release build; minutes after a change of one file
#   TRANCHE_CONTROL_PLANES    versions of Kubernetes for charts and e2e; default: "1.37"
#   E2E_ALSO=karpenter        the scenarios beside a running Karpenter too; minutes more
#
# The end-to-end tests need Go; without a Go that is new enough they are skipped with one line. With
# TRANCHE_CI=1 a skipped step is a failure. The last line counts test cases; exit 1 on any failure.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
if (( $# == 0 )); then set -- release sim artifacts monitoring tls charts page e2e asan-ubsan; fi
steps=("$@")
all_steps=(quick release sim artifacts monitoring tls charts page e2e asan-ubsan asan-properties
  tsan fuzz sim-fresh coverage)
read -r -a control_planes <<<"${TRANCHE_CONTROL_PLANES:-1.37}"
jobs=$(nproc) E2E_ALSO=${E2E_ALSO:-}
ci=${TRANCHE_CI:-0}
passed=0 failed=0 skipped=0
failures=() besides=()
scratch=$(mktemp -d)
control_plane_builder= asan_builder=
# Before what may hang: a step that does fails, and the steps after it are still run.
bounded=(timeout --verbose --kill-after=30 1200)

# Runs a command in the background, niced, in a process group of its own, so that its compilers end
# with it; the group is in $group. It is no session of its own: the kernel may share the processor
# out by session first, and by niceness only within one.
start_beside() {  # NICENESS COMMAND ...
  set -m
  nice -n "$@" &
  group=$!
  set +m
}

# Ends what start_beside started, if it still runs, and waits until all of it is gone.
end_group() {  # GROUP
  if [[ -z $1 ]]; then return 0; fi
  kill -TERM -- "-$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
  while kill -0 -- "-$1" 2>/dev/null; do sleep 0.1; done
}

cleanup() {
  end_group "$control_plane_builder"
  end_group "$asan_builder"
  rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

heading() {
  local built=''
  if [[ -n $asan_builder ]]; then
    built=$(sed -n 's|^\[\([0-9]*/[0-9]*\)\].*|   (asan-ubsan: \1 built)|p' \
      "$scratch/asan-build.log" 2>/dev/null | tail -n 1)
  fi
  printf '\n== [%4d s] %s%s\n' "$SECONDS" "$*" "$built"
}

# How long each step took the last time it was run in this checkout: "STEP SECONDS" a line.
times=build/step-times

last_time() {  # STEP
  if [[ -f $times ]]; then awk -v step="$1" '$1 == step { print $2 }' "$times"; fi
}

remember_time() {  # STEP SECONDS
  mkdir -p build
  { awk -v step="$1" '$1 != step' "$times" 2>/dev/null || true; echo "$1 $2"; } >"$scratch/times"
  mv "$scratch/times" "$times"
}

declare -A what=(
  [quick]="unit, property and scenario tests and the rules of the tree, in the release build"
  [release]="everything is built with optimisation; all tests that need no other program"
  [sim]="the whole product in a simulated, failing world: forty seeds, one of them 100 times"
  [sim-fresh]="the same with fresh seeds, for two minutes"
  [artifacts]="what a release consists of, made twice and installed from"
  [asan-ubsan]="unit, torture and corpus tests with address and undefined-behaviour sanitizers"
  [asan-properties]="property tests with the same sanitizers"
  [tsan]="unit tests of the rooms that have threads, with the thread sanitizer"
  [coverage]="lines and decisions that the tests reach, by room, in a build that counts them"
  [fuzz]="libFuzzer by coverage, 15 s for each target"
  [monitoring]="metrics, rules and dashboards against Prometheus"
  [tls]="a running server as a scanner and wrong callers see it"
  [charts]="the chart rendered, judged and run on a real API server"
  [page]="the web page in Chromium"
  [e2e]="a real control plane in front of Tranche"
)

show_plan() {
  local step seconds
  echo "What is done, and what it took last time (asan-ubsan: without what is built beside others):"
  for step in "${steps[@]}"; do
    seconds=$(last_time "$step")
    printf '  %-16s %8s  %s\n' "$step" "${seconds:+$seconds s}" "${what[$step]}"
  done
}

show_longest() {
  local step
  echo "Which steps took longest:"
  for step in "${!took[@]}"; do printf '  %-16s %6d s\n' "$step" "${took[$step]}"; done |
    sort -k2,2nr | head -n 5
}
declare -A took=()

fail() {
  failed=$((failed + 1))
  failures+=("$*")
  printf 'FAILED: %s\n' "$*"
}

skip() {
  if [[ $ci == 1 ]]; then
    fail "$* (in CI nothing may be skipped)"
  else
    skipped=$((skipped + 1))
    printf 'SKIPPED: %s\n' "$*"
  fi
}

# Adds the cases of reports; a command that failed without a failed case counts as one.
count() {  # STATUS NAME REPORT ...
  local status=$1 name=$2 p=0 f=0 s=0
  shift 2
  if [[ -s ${1:-} ]]; then read -r p f s < <(python3 test/count.py "$@"); fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  printf '%s: %d passed, %d failed, %d skipped\n' "$name" "$p" "$f" "$s"
  if (( f > 0 )); then
    failures+=("$name"$'\n'"$(python3 test/count.py --failed "$@" || true)")
  elif (( status != 0 )); then
    fail "$name"
  elif (( p == 0 )); then
    fail "$name: expected at least one test case, found none"
  fi
}

build() {  # PRESET [TARGET ...]
  local preset=$1
  shift
  heading "$preset: configure and build"
  cmake --preset "$preset" >"$scratch/configure.log" 2>&1 || {
    cat "$scratch/configure.log"
    fail "$preset: configure"
    return 1
  }
  cmake --build --preset "$preset" --parallel "$jobs" ${1:+--target "$@"} || {
    fail "$preset: build"
    return 1
  }
}

# Cases with one of the labels, all for ''; arguments are put before ctest, $besides behind it.
ctest_cases() {  # PRESET LABELS [PREFIX ...]
  local preset=$1 status=0 labels=(${2:+--label-regex "$2"})
  shift 2
  heading "$preset: test"
  "$@" ctest --preset "$preset" --parallel "$jobs" "${labels[@]}" "${besides[@]}" --progress \
    --output-junit "$scratch/$preset.xml" || status=$?
  count "$status" "$preset" "$scratch/$preset.xml"
  if [[ -s $scratch/$preset.xml ]]; then python3 test/count.py --longest "$scratch/$preset.xml"; fi
}

# Runs a binary's cases in sixteen processes, as many at a time as there are cores: a process takes
# longer to begin than most cases take, with a sanitizer above all. `ctest` runs each case alone.
sharded_cases() {  # PRESET BINARY
  local shard status=0
  heading "$1: $2"
  mkdir -p "$scratch/shards"
  seq 0 15 | xargs -P "$jobs" -I{} bash -c '
    status=0
    cd "$1/test"
    GTEST_TOTAL_SHARDS=16 GTEST_SHARD_INDEX=$3 timeout 1200 "../bin/$2" --gtest_brief=1 \
      --gtest_output="xml:$4/shards/$3.xml" >"$4/shards/$3.log" 2>&1 || status=$?
    echo "$status" >"$4/shards/$3.status"
    echo "shard $3 of 16: $(tail -n 1 "$4/shards/$3.log")"' shard "build/$1" "$2" {} "$scratch"
  for shard in {0..15}; do
    [[ $(<"$scratch/shards/$shard.status") == 0 ]] && continue
    status=1
    grep -am1 -A30 -E 'ERROR: |runtime error|: Failure' "$scratch/shards/$shard.log" || true
    tail -n 100 "$scratch/shards/$shard.log"
    # One that ended early has no report, and counts as a failure of its own.
    [[ -s $scratch/shards/$shard.xml ]] || fail "$1: $2, shard $shard of 16"
  done
  count "$status" "$1: $2" "$scratch"/shards/*.xml
  if compgen -G "$scratch/shards/*.xml" >/dev/null; then
    python3 test/count.py --longest "$scratch"/shards/*.xml
  fi
  rm -r "$scratch/shards"
}

# The unit tests, then others with one of the labels, which count the marks of both.
release_cases() {  # LABELS
  TRANCHE_MARKS_FILE=$root/build/release/marks_reached.txt sharded_cases release unit_tests
  local besides=(--label-exclude '^unit_tests$' --fixture-exclude-setup marks)
  ctest_cases release "$1"
}

quick() {
  build release unit_tests property_tests agent_tests tranche-scenario scenario_tests || return 0
  release_cases '^(property_tests|agent_tests|scenario|tidy)$'
}

release() { build release && release_cases '' || return 0; }

# Runs the simulator; its seeds and what they are to be called.
simulate() {  # STEP ARGUMENT ...
  local step=$1 status=0 last p=0 f=0
  shift
  build release tranche-sim || return 0  # at once after the step release
  heading "$step: tranche-sim $*"
  "${bounded[@]}" build/release/bin/tranche-sim "$@" --out "$scratch/sim.json" \
    >"$scratch/sim.log" || status=$?
  grep FAILED "$scratch/sim.log" || true
  last=$(tail -n 1 "$scratch/sim.log")
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]}
  fi
  passed=$((passed + p)) failed=$((failed + f))
  echo "$step: $p passed, $f failed"
  if (( f > 0 )); then
    failures+=("$step")
  elif (( status != 0 || p == 0 )); then
    fail "$step"
  fi
}

sim() {
  simulate sim --seeds 1..40 --lives 60 --faults all,trial
  # The same seed, a hundred times the same digest.
  simulate sim --seeds 7 --lives 20 --repeat 100
}

# Seeds by the clock. What they find is to be kept as a file of test/sim/seeds, with its mend.
sim-fresh() { simulate sim-fresh --seconds 120 --faults all,trial; }

# What is too little is in its output, room by room.
coverage() {
  heading "coverage: the tests in a build that counts what they reach"
  if test/coverage.sh; then passed=$((passed + 1)); else fail coverage; fi
}

asan_targets=(unit_tests torture_tests fuzzers)

# Steps that mostly wait, for clusters and browsers. The sanitized build goes on beside them with
# what they leave of the machine: they keep the processor whenever they want it.
waiting_steps=(monitoring tls charts page e2e)

start_asan_build() {
  heading "asan-ubsan: building beside the next steps"
  start_beside 19 bash -c '
    cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --parallel "$@"' asan-ubsan \
    "$jobs" --target "${asan_targets[@]}" >"$scratch/asan-build.log" 2>&1
  asan_builder=$group
}

asan-ubsan() {
  # What is left of it, a failure too, comes at full speed and into sight.
  end_group "$asan_builder"
  asan_builder=
  build asan-ubsan "${asan_targets[@]}" || return 0
  export UBSAN_OPTIONS=print_stacktrace=1
  sharded_cases asan-ubsan unit_tests
  ctest_cases asan-ubsan '^(torture_tests|fuzz)$'
  heading "asan-ubsan: random changes of each fuzz target's corpus, 8 s"
  run_fuzzers build/asan-ubsan/bin '"$target" "test/fuzz/corpus/$name" 8'
}

# Long, and what it finds the streams of the unit tests mostly find too: by hand before a release.
asan-properties() {
  build asan-ubsan property_tests || return 0
  UBSAN_OPTIONS=print_stacktrace=1 ctest_cases asan-ubsan '^property_tests$'
}

# Runs every fuzz target of a folder, as many at a time as there are cores; COMMAND sees $target,
# $name, $scratch and $root.
run_fuzzers() {  # FOLDER COMMAND
  printf '%s\n' "$1"/*_fuzz | xargs -P "$jobs" -I{} bash -c '
    target=$1 scratch=$2 root=$3 name=$(basename "$1") status=0
    mkdir -p "$scratch/$name"
    { eval "$4"; } >"$scratch/$name.log" 2>&1 || status=$?
    echo "$status" >"$scratch/$name.status"' fuzz {} "$scratch" "$root" "$2"
  local target name
  for target in "$1"/*_fuzz; do
    name=$(basename "$target")
    if [[ $(<"$scratch/$name.status") == 0 ]]; then
      passed=$((passed + 1))
      printf '%s: %s\n' "$name" \
        "$(grep -m1 -E 'number_of_executed_units|changed inputs' "$scratch/$name.log" || true)"
    else
      tail -n 60 "$scratch/$name.log"
      fail "fuzz: $name"
    fi
  done
}

# Suites of binder, ledger writer, reflector, reclaimer, election and the engine's lock.
threaded='Bind*:Reclaimer*:*Writer*:*Reflector*:*Elector*:EngineHost*:Ledger*:*Timers*:SelfCheck*'

tsan() {
  build tsan unit_tests || return 0
  # The runtime of GCC 12 cannot place its shadow memory under the address randomisation of newer
  # kernels.
  local prefix=()
  if setarch "$(uname -m)" -R true 2>/dev/null; then prefix=(setarch "$(uname -m)" -R); fi
  TSAN_OPTIONS=halt_on_error=1 ctest_cases tsan '^unit_tests$' "${prefix[@]}"
  local seed first=$((RANDOM * 32768 + RANDOM + 1))
  heading "tsan: the same threads in other orders (test/yields), seeds $first to $((first + 19))"
  for ((seed = first; seed < first + 20; ++seed)); do
    if TRANCHE_YIELDS=$seed TSAN_OPTIONS=halt_on_error=1 "${prefix[@]}" \
      build/tsan/bin/unit_tests --gtest_brief=1 --gtest_filter="$threaded" \
      >"$scratch/yields.log" 2>&1; then
      passed=$((passed + 1))
    else
      tail -n 60 "$scratch/yields.log"
      fail "tsan: TRANCHE_YIELDS=$seed"
    fi
  done
}

fuzz() {
  if [[ ! -f test/fuzz/CMakeLists.txt ]]; then return 0; fi
  if ! command -v clang++ >/dev/null; then
    skip "fuzz: expected clang++ in PATH, found none"
    return 0
  fi
  build fuzz fuzzers || return 0
  heading "fuzz: 15 s for each target"
  # New inputs go to the first folder, not into the tree.
  run_fuzzers build/fuzz/bin '
    corpus=("$scratch/$name")
    if [[ -d test/fuzz/corpus/$name ]]; then corpus+=("test/fuzz/corpus/$name"); fi
    "$target" -max_total_time=15 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
      -artifact_prefix="$root/build/fuzz/" "${corpus[@]}"'
}

# A program of test/FOLDER judges the built one; without the packages it needs it is skipped.
judge() {  # STEP FOLDER PACKAGES ARGUMENT ...
  local step=$1 folder=$2 packages=$3 status=0
  shift 3
  test/install-deps.sh "$step" || {
    skip "$step: expected $packages, found none to install"
    return 0
  }
  build release tranche tranche-node || return 0  # at once after the step release
  heading "$step"
  "${bounded[@]}" python3 -B "test/$folder/run.py" "$@" --junit "$scratch/$step.xml" || status=$?
  count "$status" "$step" "$scratch/$step.xml"
}
monitoring() {
  judge monitoring monitoring "the package prometheus" --tranche build/release/bin/tranche
}
tls() {
  judge tls tls "the packages testssl.sh and curl" --tranche build/release/bin/tranche
}
artifacts() {
  judge artifacts release "git, binutils and python3-markdown" --programs build/release/bin
}

page() {
  build release tranche || return 0  # at once after the step release
  heading "page: the web page in Chromium"
  local status=0
  # Where it cannot be installed, the next command says so.
  test/install-deps.sh page >"$scratch/chromium.log" 2>&1 || true
  "${bounded[@]}" test/page/run.sh --tap "$scratch/page.tap" || status=$?
  if (( status == 3 )); then
    skip "page: expected chromium in PATH, found none: $(tail -n 1 "$scratch/chromium.log")"
    return 0
  fi
  count "$status" page "$scratch/page.tap"
}

start_control_planes() {
  local wanted=("${control_planes[@]}")
  if [[ " ${steps[*]} " == *" e2e "* ]]; then wanted+=(kueue kwok $E2E_ALSO); fi
  heading "building ${wanted[*]} in the background, until the steps that need it"
  start_beside 10 bash -c '
    for version in "${@:2}"; do
      test/e2e/controlplane/build.sh "$version" >"$1/$version.bin" 2>"$1/$version.log"
      echo "$?" >"$1/$version.status"
    done' control-planes "$scratch" "${wanted[@]}"
  control_plane_builder=$group
}

# Waits for a control plane or the like, whose folder is then in $scratch/VERSION.bin. 1: none.
await_control_plane() {  # STEP VERSION
  local waited=0 status
  while [[ ! -s $scratch/$2.status ]]; do
    sleep 1
    waited=$((waited + 1))
    if (( waited % 30 == 0 )); then tail -n 1 "$scratch/$2.log" 2>/dev/null || true; fi
  done
  status=$(<"$scratch/$2.status")
  case $status in
    0) return 0 ;;
    3) skip "$1 $2: $(tail -n 1 "$scratch/$2.log")" ;;
    *) tail -n 40 "$scratch/$2.log"; fail "$1 $2: build" ;;
  esac
  return 1
}

# The chart rendered and judged, applied and run on a real API server, and the image's files.
charts() {
  local status=0 version=${control_planes[0]} shown=''
  build release tranche || return 0  # at once after the step release
  heading "charts: image"
  if "${bounded[@]}" charts/image/check.sh "$root/build/release/bin/tranche"; then
    passed=$((passed + 1))
  else
    fail "charts: image"
  fi
  heading "charts: Helm chart on Kubernetes $version"
  await_control_plane charts "$version" || return 0
  (
    cd test/charts
    export GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false"
    export TRANCHE_BIN=$root/build/release/bin/tranche
    CONTROLPLANE_BIN=$(<"$scratch/$version.bin")
    export CONTROLPLANE_BIN
    go vet ./... && go test -count=1 -timeout 15m -json ./... >"$scratch/charts.json"
  ) || status=$?
  if (( status == 0 )); then shown='^ *(--- |ok)'; fi
  if [[ -s $scratch/charts.json ]]; then
    python3 test/count.py --text "$scratch/charts.json" | grep -E "$shown" || true
  fi
  count "$status" charts "$scratch/charts.json"
}

e2e() {
  local version status shown name kueue= kwok= karpenter=
  build release tranche fake_nvml || return 0  # at once after the step release
  for name in kueue kwok $E2E_ALSO; do
    ! await_control_plane e2e "$name" || printf -v "$name" %s "$(<"$scratch/$name.bin")"; done
  for version in "${control_planes[@]}"; do
    heading "e2e: Kubernetes $version"
    await_control_plane e2e "$version" || continue
    status=0
    (
      cd test/e2e
      export GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false"
      export TRANCHE_BIN=$root/build/release/bin/tranche
      CONTROLPLANE_BIN=$(<"$scratch/$version.bin")
      export CONTROLPLANE_BIN KUEUE_BIN=$kueue KWOK_BIN=$kwok KARPENTER_BIN=$karpenter
      go vet ./... && go test -count=1 -timeout 25m -json ./... >"$scratch/e2e-$version.json"
    ) || status=$?
    # The text of the run: all of it on failure, else one line for each test.
    if (( status == 0 )); then shown='^ *(--- |ok)'; else shown=''; fi
    if [[ -s $scratch/e2e-$version.json ]]; then
      python3 test/count.py --text "$scratch/e2e-$version.json" | grep -E "$shown" || true
    fi
    count "$status" "e2e $version" "$scratch/e2e-$version.json"
  done
}

for step in "${steps[@]}"; do
  if [[ -z ${what[$step]:-} ]]; then
    echo "expected one of: ${all_steps[*]}, found $step" >&2
    exit 2
  fi
done
show_plan

heading "dependencies"
if [[ ${steps[*]} == quick ]]; then
  test/install-deps.sh build
else
  test/install-deps.sh build check cli
fi
took[dependencies]=$SECONDS
if [[ " ${steps[*]} " =~ \ (charts|e2e)\  ]]; then start_control_planes; fi
for i in "${!steps[@]}"; do
  step=${steps[i]} later=" ${steps[*]:i + 1} "
  if [[ -z $asan_builder && $later == *" asan-ubsan "* && " ${waiting_steps[*]} " == *" $step "* ]]
  then
    start_asan_build
  fi
  before=$SECONDS failed_before=$failed
  "$step"
  took[$step]=$((SECONDS - before))
  # What failed half way says nothing of the next time.
  if (( failed == failed_before )); then remember_time "$step" "${took[$step]}"; fi
done

heading "summary"
show_longest
for failure in ${failures[@]+"${failures[@]}"}; do printf 'FAILED: %s\n' "$failure"; done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
