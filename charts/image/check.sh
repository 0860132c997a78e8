#!/usr/bin/env bash
# Checks what charts/image/Dockerfile makes, without a container engine: puts the same root file
# system together, looks at it, and runs the program in it with nothing around it.
#
#   check.sh PROGRAM     build/release/bin/tranche or build/release/bin/tranche-node
#
# Exit codes: 0 all is well, 1 not, 2 usage. Needs root or user namespaces.
set -euo pipefail

[[ $# -eq 1 && -x $1 ]] || { echo "usage: check.sh PROGRAM, found: $*" >&2; exit 2; }
program=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=$(basename "$program")
most_mib=60
if [[ $name == tranche-node ]]; then most_mib=40; fi
user=65532
scratch=$(mktemp -d)
root=$scratch/root
server=
cleanup() {
  if [[ -n $server ]]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap cleanup EXIT
failed=0
check() {  # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok      $what"; else echo "FAILED  $what"; failed=1; fi
}

"$here/assemble.sh" "$program" "$root"

size_kib=$(du -sk --apparent-size "$root" | cut -f1)
check "smaller than $most_mib MiB: $((size_kib / 1024)) MiB" \
  test "$size_kib" -lt $((most_mib * 1024))

# Whatever can be run but the program is a library or the loader.
extras() {
  local found
  found=$(cd "$root" && find . -type f -perm /111 ! -name "$name" ! -name '*.so*')
  found+=$(cd "$root" && find . \( -name '*sh' -o -name 'busybox*' -o -name 'perl*' \
    -o -name 'python*' \) -not -path './usr/share/zoneinfo/*')
  [[ -z $found ]] || { echo "found: $found" >&2; return 1; }
}
check "no shell and no other program" extras
nothing() {
  local found
  found=$(cd "$root" && "$@")
  [[ -z $found ]] || { echo "found: $found" >&2; return 1; }
}
check "no file with set-user-id or capabilities" nothing find . -type f -perm /6000
check "nothing others can write but /tmp" \
  nothing find . -mindepth 1 -perm /0002 ! -type l ! -path ./tmp
check "the Dockerfile takes user $user" grep -qx "USER $user:$user" "$here/Dockerfile"
check "the user has a name" grep -q "^tranche:x:$user:" "$root/etc/passwd"

inside() {  # runs a command in the root file system, as the image's user where we may become it
  if [[ $(id -u) == 0 ]]; then
    exec chroot --userspec=$user:$user "$root" "$@"
  else
    exec unshare --user --map-root-user chroot "$root" "$@"
  fi
}
run() { (inside "$@"); }
if [[ $name == tranche-node ]]; then
  usage() { [[ $(run /tranche-node 2>&1) == 'tranche-node: expected --config FILE' ]]; }
  check "it runs" usage
  exit $failed
fi
check "it runs" run /tranche --version
check "its manual page is there" grep -q '^\.TH TRANCHE 1' "$root/usr/share/man/man1/tranche.1"

# Zones are found where budgets name them.
cat >"$root/tmp/budget.yaml" <<'YAML'
apiVersion: tranche.dev/v1alpha1
kind: GPUBudget
metadata: {name: b}
spec: {quotaRef: q, gpuHours: 1, window: {type: Month, timeZone: Europe/Paris}}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: q}
spec: {}
YAML
check "time zones are there" run /tranche validate -f /tmp/budget.yaml

# The default server of an empty cluster, with a ledger where the volume would be.
chmod 1777 "$root/var/lib/tranche"
port=$((20000 + RANDOM % 20000))
(inside /tranche serve --listen "127.0.0.1:$port" --ledger /var/lib/tranche/ledger.db) \
  >"$scratch/log" 2>&1 &
server=$!
alive() {
  exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
  printf 'GET /livez HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n' >&3
  head -n 1 <&3 | grep -q ' 200'
}
answers() {
  for _ in $(seq 50); do
    if (alive) 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  cat "$scratch/log" >&2
  return 1
}
check "it serves" answers
if [[ $(id -u) == 0 ]]; then
  check "as user $user" test "$(awk '$1 == "Uid:" { print $2 }' "/proc/$server/status")" = $user
fi
check "it keeps a ledger" test -s "$root/var/lib/tranche/ledger.db"
kill "$server"
ended() { wait "$server"; }
check "it ends when asked to" ended
server=
exit $failed
