#!/bin/bash
# Has clang check the locks: everything marked ABSL_GUARDED_BY is used only under its mutex.
#
#   test/tidy/threads.sh            from the root of the project
#
# It reads every source that includes the annotations, or a header that does. It leaves out sources
# with coroutines, because clang 14 cannot read those of the standard library, and those that need
# code which a build generates.
# A faulty example comes first: what clang does not find there it would find nowhere.
set -euo pipefail
clang=${CLANG:-clang++}
flags=(-std=c++20 -fsyntax-only -I. -Wno-everything -Wthread-safety -Werror=thread-safety
       -DTRANCHE_VERSION='"0"' -DFMT_SHARED -DBOOST_ASIO_NO_DEPRECATED
       -DBOOST_ASIO_DISABLE_BOOST_COROUTINE)
command -v "$clang" > /dev/null || { echo "threads: no $clang here, nothing was checked"; exit 77; }

example='#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
struct Shared {
  int Read() { return value; }
  absl::Mutex mutex;
  int value ABSL_GUARDED_BY(mutex) = 0;
};'
if found=$("$clang" "${flags[@]}" -x c++ - <<< "$example" 2>&1) ||
   ! grep -q "requires holding mutex" <<< "$found"; then
  echo "threads: expected the example to be refused, found: ${found:-nothing}"
  exit 1
fi

annotated=$(grep -rl --include=*.h 'absl/base/thread_annotations.h' scheduler)
includes=(-e 'absl/base/thread_annotations.h')
for header in $annotated; do includes+=(-e "\"$header\""); done
with_coroutines='co_await|co_return|boost/asio/(awaitable|co_spawn|use_awaitable)'
for room in api_client api_calls reflector cluster elector stop_signal http_connection; do
  with_coroutines="$with_coroutines|kube/([a-z]+/)?$room\\.h"
done
generated='\.pb\.h"'
sources=$(grep -rl --include=*.cc -F "${includes[@]}" scheduler | sort)
to_read=()
for source in $sources; do
  if grep -qE "$with_coroutines" "$source" "${source%.cc}.h" 2> /dev/null; then
    echo "threads: $source is left out, it has coroutines"
  elif grep -qE "$generated" "$source" "${source%.cc}.h" 2> /dev/null; then
    echo "threads: $source is left out, it needs what a build generates"
  else
    to_read+=("$source")
  fi
done
failed=0
printf '%s\n' "${to_read[@]}" | xargs -P "$(nproc)" -n 1 "$clang" "${flags[@]}" || failed=1
echo "threads: ${#to_read[@]} sources read"
exit $failed
