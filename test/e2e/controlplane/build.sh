#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-scheduler and kube-controller-manager of one Kubernetes version,
# or Kueue's manager, or Karpenter with its KWOK provider, or kubectl and KWOK, which plays nodes
# and the life of pods, from Go modules.
#
#   build.sh NAME   NAME is that of a folder beside this file without its v: 1.34, 1.37, kueue,
#                   kwok, karpenter
#
# The last line of stdout is the folder with the programs; progress goes to stderr. It lies in
# ${TRANCHE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/tranche}/controlplane/HASH, where HASH covers go.mod
# and go.sum, so a second call does nothing. Calls at the same time wait for one another.
# Exit codes: 0 built or cached, 1 the build failed, 2 usage, 3 Go is missing or too old.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf '%s: %s\n' "$title" "$*" >&2; }

case $#,${1:-} in
  1,kueue) module=$here/kueue title=Kueue ;;
  1,karpenter) module=$here/karpenter title=Karpenter ;;
  1,kwok) module=$here/kwok title="KWOK and kubectl" ;;
  1,*) module=$here/v$1 title="control plane $1" ;;
  *) module= ;;
esac
if [[ ! -f $module/go.mod ]]; then
  versions=$(cd "$here" && echo v*/ | tr -d 'v/')
  echo "usage: build.sh NAME, one of: $versions kueue kwok karpenter, found: $*" >&2
  exit 2
fi

# "1.26.8" as one comparable number; release candidates count as their release.
go_number() { awk -F. '{ printf "%d\n", $1 * 1000 + $2 }' <<<"${1#go}"; }

if ! command -v go >/dev/null; then
  say "skipped: expected a Go toolchain, found none in PATH"
  exit 3
fi
# The toolchain at hand must do: fetching another one is no business of a test.
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false" GOWORK=off
needed=$(awk '$1 == "go" { print $2 }' "$module/go.mod")
found=$(cd / && go env GOVERSION)
if (( $(go_number "$found") < $(go_number "$needed") )); then
  say "skipped: expected Go >= $needed, found $found"
  exit 3
fi

hash=$(cat "$module/go.mod" "$module/go.sum" | sha256sum | cut -c1-16)
cache=${TRANCHE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tranche}/controlplane
target=$cache/$hash
mkdir -p "$cache"

exec 9>"$cache/$hash.lock"
if ! flock --nonblock 9; then
  say "another build of this version is running, waiting for it"
  flock 9
fi
if [[ -d $target ]]; then
  say "cached"
  echo "$target"
  exit 0
fi

# Built beside the target and renamed at the end: a folder that exists is complete.
staging=$cache/$hash.partial
rm -rf "$staging"
mkdir -p "$staging"
build() {  # NAME PACKAGE
  local start=$SECONDS
  say "building $1 ($2)"
  (cd "$module" && exec go build -trimpath -ldflags "$ldflags" -o "$staging/$1" "$2") 9>&- >&2 &
  local compiler=$! beats=0
  while kill -0 "$compiler" 2>/dev/null; do
    sleep 1
    beats=$((beats + 1))
    if (( beats % 30 == 0 )); then say "building $1, $((SECONDS - start)) s so far"; fi
  done
  if ! wait "$compiler"; then
    say "failed to build $1"
    return 1
  fi
  say "built $1 in $((SECONDS - start)) s"
}

finish() {
  mv "$staging" "$target"
  say "ready"
  echo "$target"
  exit 0
}

release_of() {  # MODULE
  awk -v of="$1" '$1 == "require" && $2 == of { print $3 }' "$module/go.mod"
}

if [[ $1 == kueue ]]; then
  ldflags="-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion=$(release_of sigs.k8s.io/kueue)"
  build kueue sigs.k8s.io/kueue/cmd/kueue
  finish
fi
if [[ $1 == karpenter ]]; then
  ldflags="-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version=$(release_of sigs.k8s.io/karpenter)"
  build karpenter sigs.k8s.io/karpenter/kwok
  finish
fi
release=$(release_of k8s.io/kubernetes)
minor=${release#v1.}
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$release -X $stamp.gitMajor=1"
ldflags+=" -X $stamp.gitMinor=${minor%%.*} -X $stamp.gitTreeState=clean"
if [[ $1 == kwok ]]; then
  build kubectl k8s.io/kubernetes/cmd/kubectl
  build kwok sigs.k8s.io/kwok/cmd/kwok
else
  build etcd go.etcd.io/etcd/server/v3
  build kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
  build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
  build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
fi
finish
