#!/usr/bin/env bash
# The same seeds give the same runs in every build of the same sources, wherever it lies.
#
#   test/sim/same_digests.sh build/release/bin/tranche-sim OTHER/bin/tranche-sim ...
#
# Exit 1 where digests differ, 2 where one cannot be had.
set -euo pipefail
seeds=${SEEDS:-1..10} lives=${LIVES:-40}
if (( $# < 2 )); then
  echo "same_digests.sh: expected two programs or more, found $#" >&2
  exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
digests() {  # PROGRAM
  # What checkers find is another matter.
  rm -f "$scratch/run.json"
  "$1" --seeds "$seeds" --lives "$lives" --out "$scratch/run.json" >&2 || true
  if [[ ! -s $scratch/run.json ]]; then
    echo "same_digests.sh: expected of $1 --out a file, found none" >&2
    return 2
  fi
  python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["digests"]))' \
    "$scratch/run.json"
}
first=$(digests "$1") || exit 2
for other in "${@:2}"; do
  found=$(digests "$other") || exit 2
  if [[ $found != "$first" ]]; then
    printf 'expected of %s the digests of %s:\n%s\nfound:\n%s\n' "$other" "$1" "$first" "$found"
    exit 1
  fi
done
echo "$# builds, the same digests of seeds $seeds"
