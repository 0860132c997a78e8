#!/usr/bin/env bash
# Puts the root file system of an image together, Tranche's or tranche-node's: the program without
# debug symbols, the shared libraries it names, CA certificates and the user; for Tranche also its
# manual page, time zones (budgets have them) and the ledger's folder.
#
#   assemble.sh PROGRAM FOLDER     FOLDER is made, and may not exist
#
# Exit codes: 0 done, 1 something is missing, 2 usage.
set -euo pipefail

fail() { echo "assemble: $1" >&2; exit "${2:-1}"; }
[[ $# -eq 2 ]] || fail "usage: assemble.sh PROGRAM FOLDER, found: $*" 2
program=$1 root=$2
[[ -x $program ]] || fail "expected a program, found none at $program"
[[ ! -e $root ]] || fail "expected no folder yet, found $root"

name=$(basename "$program")
mkdir -p "$root"/{etc/ssl/certs,tmp}
install -m 0755 "$program" "$root/$name"
strip --strip-unneeded "$root/$name"

# The loader and every library, under the names the program asks for.
libraries=$(ldd "$program") || fail "expected a dynamically linked program, found $program"
if grep -q 'not found' <<<"$libraries"; then
  fail "expected all libraries here, found: $(grep 'not found' <<<"$libraries" | tr -s ' \t\n' ' ')"
fi
while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  install -m 0755 "$(realpath "$library")" "$root$library"
done < <(grep -oE '/[^ ]+' <<<"$libraries" | sort -u)

certificates=/etc/ssl/certs/ca-certificates.crt
[[ -s $certificates ]] || fail "expected ca-certificates at $certificates, found none"
install -m 0644 "$certificates" "$root$certificates"
if [[ $name != tranche-node ]]; then
  # Built for this machine, so that it can tell of itself.
  mkdir -p "$root/usr/share/man/man1" "$root/var/lib/tranche"
  "$program" man >"$root/usr/share/man/man1/tranche.1"
  [[ -d /usr/share/zoneinfo/Europe ]] || fail "expected time zones, found none (tzdata)"
  cp -a /usr/share/zoneinfo "$root/usr/share/zoneinfo"
  # Variants of every zone that nothing reads.
  rm -rf "$root"/usr/share/zoneinfo/{right,posix}
fi

printf 'root:x:0:0:root:/:\ntranche:x:65532:65532:tranche:/:\n' >"$root/etc/passwd"
printf 'root:x:0:\ntranche:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
chmod 1777 "$root/tmp"
if [[ $(id -u) == 0 ]]; then
  chown -R 0:0 "$root"
  if [[ $name != tranche-node ]]; then chown 65532:65532 "$root/var/lib/tranche"; fi
fi
