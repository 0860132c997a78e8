#!/usr/bin/env bash
# Holds what Tranche answers to pods on nodes of every Topology Manager policy and scope against the
# kubelet's own device and topology managers.
#
#   test/kubelet/run.sh [SEED [STATES]]   default: a fresh seed, 10000 states of each of the 8
#   TRANCHE_BUILD                         a build folder that is there; default: build/release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
seed=${1:-$((RANDOM * 32768 + RANDOM))}
states=${2:-10000}
build=${TRANCHE_BUILD:-build/release}
[[ $build == /* ]] || build=$root/$build
export GOTOOLCHAIN=local GOWORK=off

echo "seed $seed, $states states of each policy and scope: test/kubelet/run.sh $seed $states"
if [[ ! -f $build/build.ninja ]]; then
  cmake --preset release >/dev/null
fi
cmake --build "$build" --target tranche-kubelet-cases
judge=$build/kubelet-judge
(cd test/kubelet && go vet ./... && go build -o "$judge" .)
"$build/bin/tranche-kubelet-cases" "$seed" "$states" | "$judge" -states "$states"
