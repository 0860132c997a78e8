#!/usr/bin/env bash
# Renders the Helm chart where there is Go and no Helm.
#
#   charts/render.sh     writes anew the manifests in charts/ that are made of the chart
#   charts/render.sh --print [--kube-version V] [VALUES.yaml ...]
#                        prints what `helm template tranche -n tranche-system` would
#
# Exit codes: 0 done, 1 values or templates are wrong, 3 Go is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! command -v go >/dev/null; then
  echo "render: expected a Go toolchain, found none in PATH" >&2
  exit 3
fi
export GOTOOLCHAIN=local CGO_ENABLED=0 GOWORK=off GOFLAGS="-mod=readonly -buildvcs=false"

arguments=(-static)
if [[ ${1:-} == --print ]]; then
  shift
  arguments=()
  if [[ ${1:-} == --kube-version ]]; then
    arguments=(-kube-version "${2:?a version like v1.34.1}")
    shift 2
  fi
  for file in "$@"; do arguments+=("$(realpath "$file")"); done
elif (( $# > 0 )); then
  echo "usage: render.sh [--print [--kube-version V] [VALUES.yaml ...]], found: $*" >&2
  exit 1
fi
cd "$here/../test/charts"
exec go run ./render -charts "$here" "${arguments[@]}"
