#!/usr/bin/env bash
# Builds Tranche, starts it on an embedded cluster of six GPU nodes, sends sixty pods of three teams
# through the scheduler verbs, shows what the teams' quotas make of it, and leaves the web page open
# until Ctrl-C.
#
#   scheduler/quickstart.sh [--port N] [--once]
#
#   --port N   listen on 127.0.0.1:N (default 8080)
#   --once     stop after printing the result
#
# Debian 12 or 13, Ubuntu 24.04. Installs missing packages (asks sudo only then). Running it again
# is safe: nothing is kept outside build/.
set -euo pipefail

port=8080
once=false

fail() {
  echo "quickstart: $1" >&2
  exit "${2:-1}"
}

usage() {
  sed -n '2,12s/^# \{0,1\}//p' "$0"
}

while [ $# -gt 0 ]; do
  case "$1" in
    --port) [ $# -ge 2 ] || fail "expected a number after --port" 2; port=$2; shift 2 ;;
    --port=*) port=${1#--port=}; shift ;;
    --once) once=true; shift ;;
    -h | --help) usage; exit 0 ;;
    *) fail "expected --port N or --once, found '$1'" 2 ;;
  esac
done
if ! [[ $port =~ ^[0-9]{1,5}$ ]] || [ "$port" -lt 1 ] || [ "$port" -gt 65535 ]; then
  fail "expected a port from 1 to 65535, found '$port'" 2
fi

cd "$(dirname "$0")/.."

step() {
  printf '\n==> %s\n' "$*"
}

port_is_free() {
  python3 - "$port" <<'PY'
import socket, sys
with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind(("127.0.0.1", int(sys.argv[1])))
    except OSError:
        sys.exit(1)
PY
}

step "Packages"
test/install-deps.sh build

port_is_free ||
  fail "port $port of 127.0.0.1 is in use; try another: --port $((port % 65535 + 1))"

step "Build (a few minutes the first time)"
mkdir -p build
if ! cmake --preset release >build/configure.log 2>&1; then
  cat build/configure.log >&2
  fail "configuring failed, see above"
fi
cmake --build --preset release --target tranche --parallel "$(nproc)"

step "Server"
log=build/quickstart.log
url=http://127.0.0.1:$port
# Every run begins a ledger of its own.
ledger=build/quickstart.db
rm -f "$ledger" "$ledger"[-.]*
build/release/bin/tranche serve --cluster embedded --listen "127.0.0.1:$port" --ledger "$ledger" \
  --objects scheduler/quickstart/fleet.yaml scheduler/quickstart/teams.yaml >"$log" 2>&1 &
server=$!

stop_server() {
  if kill -0 "$server" 2>/dev/null; then
    kill -TERM "$server"
    wait "$server" 2>/dev/null || true
  fi
}
trap stop_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
echo "$url (log: $log)"

step "Sixty pods of three teams"
show() {
  "$@" --server "$url" && return
  echo "--- last lines of $log" >&2
  tail -n 20 "$log" >&2
  fail "the run did not finish"
}
show python3 scheduler/quickstart/drive.py

step "What a team took back: tranche reclaims"
show build/release/bin/tranche reclaims

step "Quotas: tranche quota"
show build/release/bin/tranche quota

step "Why a pod waits while GPUs are free: tranche explain team-language/pretrain-next"
show build/release/bin/tranche explain team-language/pretrain-next

if $once; then
  exit 0
fi

step "The page is at $url/ui/"
cat <<TEXT
Ask from another terminal:
  build/release/bin/tranche nodes --server $url
  build/release/bin/tranche explain team-vision/train-next --server $url
  build/release/bin/tranche ledger report --ledger $ledger
Ctrl-C stops the server.
TEXT
wait "$server" || fail "the server stopped by itself; see $log"
