#!/usr/bin/env bash
# Holds what Tranche foresees of resource claims against Kubernetes' own allocator.
#
#   test/allocator/run.sh [SEED [STATES]]   default: a fresh seed, 3000 states of each part
#   TRANCHE_BUILD                           a build folder that is there; default: build/release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
seed=${1:-$((RANDOM * 32768 + RANDOM))}
states=${2:-3000}
build=${TRANCHE_BUILD:-build/release}
[[ $build == /* ]] || build=$root/$build
export GOTOOLCHAIN=local GOWORK=off

echo "seed $seed, $states states of each part: test/allocator/run.sh $seed $states"
if [[ ! -f $build/build.ninja ]]; then
  cmake --preset release >/dev/null
fi
cmake --build "$build" --target tranche-allocator-cases
judge=$build/allocator-judge
(cd test/allocator && go vet ./... && go build -o "$judge" .)
"$build/bin/tranche-allocator-cases" "$seed" "$states" | "$judge" -states "$states"
