#!/usr/bin/env bash
# A cluster to try Tranche in, without a container engine, without GPUs: etcd, kube-apiserver,
# kube-controller-manager and kube-scheduler in front of `tranche serve`, and KWOK, which plays
# nodes and the life of their pods. Everything listens on 127.0.0.1 alone.
#
#   cluster.sh start    brings it up and leaves it running
#   cluster.sh run      the same, in the foreground until Ctrl-C
#   cluster.sh env      prints what a shell needs: eval "$(cluster.sh env)"
#   cluster.sh stop     takes it down; what was in it is gone
#
# Debian 12 or 13, Ubuntu 24.04, with Go 1.26 or newer. The first start builds all programs, which
# takes minutes; the cluster's own are kept in ~/.cache/tranche. The environment may name programs
# that are built already: TRANCHE_BIN (the file), CONTROLPLANE_BIN and KWOK_BIN (the folders that
# controlplane/build.sh prints), and with FIRSTDAY_DIR another folder than build/firstday.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
dir=${FIRSTDAY_DIR:-$root/build/firstday}

fail() {
  echo "cluster.sh: $1" >&2
  exit "${2:-1}"
}

# The pid of the running cluster, nothing if there is none. Its start time tells it from another
# process that got its number.
running() {
  local pid began
  [[ -s $dir/pid ]] || return 0
  read -r pid began <"$dir/pid"
  if [[ $(started "$pid") == "$began" ]]; then echo "$pid"; fi
}

started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

build() {
  # Kubernetes before Tranche: where Go is missing or too old it says so at once.
  control_plane=${CONTROLPLANE_BIN:-$("$here/../controlplane/build.sh" 1.37)}
  kwok=${KWOK_BIN:-$("$here/../controlplane/build.sh" kwok)}
  tranche=${TRANCHE_BIN:-}
  if [[ -z $tranche ]]; then
    tranche=$root/build/release/bin/tranche
    (cd "$root" && test/install-deps.sh build && cmake --preset release &&
      cmake --build --preset release --target tranche --parallel "$(nproc)") >&2
  fi
  local program
  for program in "$tranche" "$kwok"/{kwok,kubectl} \
    "$control_plane"/{etcd,kube-apiserver,kube-scheduler,kube-controller-manager}; do
    [[ -x $program ]] || fail "expected a program at $program, found none"
  done
  (
    export GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false"
    cd "$here/.." && go build -o "$dir/cluster" ./firstday
  )
}

launch() {  # the program in the background, its pid in $cluster
  [[ -z $(running) ]] || fail "a cluster runs already; end it with: $0 stop"
  rm -rf "$dir"
  mkdir -p "$root/build" "$(dirname "$dir")"
  mkdir -m 700 "$dir"
  build
  # A group of its own: Ctrl-C in this terminal is for us, and we pass it on while we are there.
  set -m
  "$dir/cluster" -dir "$dir" -tranche "$tranche" -control-plane "$control_plane" -kwok "$kwok" \
    -charts "$root/charts" -stages "$here/stages.yaml" </dev/null >"$dir/cluster.log" 2>&1 &
  cluster=$!
  set +m
  echo "$cluster $(started "$cluster")" >"$dir/pid"
  trap 'take_down' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  tail -n +1 -f --pid="$cluster" "$dir/cluster.log" &
  progress=$!
}

take_down() {
  kill -TERM "$cluster" 2>/dev/null || true
  wait "$cluster" 2>/dev/null || true
  rm -f "$dir/pid" "$dir/env"
}

start() {
  launch
  while [[ ! -f $dir/env ]]; do
    kill -0 "$cluster" 2>/dev/null || fail "the cluster did not start; logs are in $dir"
    sleep 0.2
  done
  trap - EXIT
  sleep 0.3  # the last line of progress
  kill "$progress" 2>/dev/null || true
  wait "$progress" 2>/dev/null || true
}

run() {
  launch
  wait "$cluster" || fail "the cluster ended by itself; logs are in $dir"
}

stop() {
  local pid
  pid=$(running)
  [[ -n $pid ]] || fail "no cluster runs in $dir"
  kill -TERM "$pid"
  while [[ -n $(running) ]]; do sleep 0.1; done
  rm -f "$dir/pid" "$dir/env"
  echo "The cluster is gone. Its logs are in ${dir#"$PWD"/}."
}

env_lines() {
  [[ -n $(running) && -f $dir/env ]] || fail "no cluster runs in $dir; begin one with: $0 start"
  cat "$dir/env"
}

case $#,${1:-} in
  1,start | 1,run | 1,stop) "$1" ;;
  1,env) env_lines ;;
  1,-h | 1,--help) sed -n '2,15s/^# \{0,1\}//p' "$0" ;;
  *) fail "expected start, run, env or stop, found: $*" 2 ;;
esac
