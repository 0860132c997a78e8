#!/usr/bin/env bash
# Holds what Tranche says and promises of nodes against NVIDIA's device plugin, GPU feature
# discovery and mig-parted, which run on a fake NVML.
#
#   test/nvidia/run.sh [SEED [STATES]]   default: a fresh seed, 300 states
#   TRANCHE_BUILD                        a build folder that is there; default: build/release
#   TRANCHE_BINARY                       a tranche that is there; default: the folder's, built
#
# Needs root: the programs look at fixed places below /var/lib, /sys and /proc, which they find in a
# mount namespace of their own. It ends with the judge, and its mounts with it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
seed=${1:-$((RANDOM * 32768 + RANDOM))}
states=${2:-300}
build=${TRANCHE_BUILD:-build/release}
[[ $build == /* ]] || build=$root/$build
[[ $seed =~ ^[0-9]{1,18}$ && $states =~ ^[0-9]{1,9}$ ]] ||
  { echo "run.sh: expected two numbers SEED and STATES, found: $*" >&2; exit 2; }
[[ $(id -u) == 0 ]] || { echo "run.sh: expected root, found user $(id -un)" >&2; exit 2; }
export GOTOOLCHAIN=local GOWORK=off

echo "seed $seed, $states states: test/nvidia/run.sh $seed $states"
if [[ ! -f $build/build.ninja ]]; then
  cmake --preset release >/dev/null
fi
targets=(fake_nvml)
tranche=${TRANCHE_BINARY:-$build/bin/tranche}
[[ -n ${TRANCHE_BINARY:-} ]] || targets+=(tranche)
cmake --build "$build" --target "${targets[@]}"

programs=$build/nvidia-programs
mkdir -p "$programs"
plugin=github.com/NVIDIA/k8s-device-plugin/cmd
parted=github.com/NVIDIA/mig-parted/cmd/nvidia-mig-parted
(cd test/nvidia && go vet . && go test . >/dev/null && go build -o "$programs/judge" .)
# NVIDIA's programs change with their versions alone, and take long to link.
if [[ ! $programs/nvidia-device-plugin -nt test/nvidia/go.sum ]]; then
  (cd test/nvidia && go build -o "$programs/" $plugin/gpu-feature-discovery \
    $plugin/mps-control-daemon $plugin/nvidia-device-plugin)
fi
if [[ ! $programs/nvidia-mig-parted -nt test/nvidia/parted/go.sum ]]; then
  (cd test/nvidia/parted && go build -o "$programs/" $parted)
fi

place=$(mktemp -d "${TMPDIR:-/tmp}/tranche-nvidia.XXXXXX")
trap 'rm -rf "$place"' EXIT
mkdir -p "$place"/{lib,bin,root,state,pci,driver/nvidia-caps}
cp "$build/bin/fake_nvml.so" "$place/lib/libnvidia-ml.so.1"
cp "$here"/bin/* "$place/bin/"
ln -s "$programs" "$place/programs"
echo "nvidia 1 0 - Live 0x0" >"$place/modules"

unshare --mount --propagation private "$here/enter.sh" "$place" \
  "$programs/judge" -place "$place" -tranche "$tranche" -seed "$seed" -states "$states"
