// The lock on a node that tells HAMi's agent for which pod it is called next: the text of the
// annotation "hami.io/mutex.lock", and who may take it.
//
// Pure functions. Source: request-dialects section 4.4, hazard 16.
#pragma once

#include <optional>
#include <string_view>

#include "topology/base/units.h"

namespace tranche::wire {

inline constexpr std::string_view kNodeLockKey = "hami.io/mutex.lock";

// "<RFC 3339>,<namespace>,<pod>"; the form of HAMi's first versions has the time alone.
struct NodeLock {
  Instant taken;
  std::string_view ns, pod;  // empty: not said

  bool names_a_pod() const { return !pod.empty(); }
};
// nullopt: another number of parts, an empty one, or no time.
std::optional<NodeLock> ParseNodeLock(std::string_view text);

enum class LockVerdict {
  kOurs,  // it has the text we want
  kFree,  // nobody's, left from an earlier try of the same pod, or too old: ours to write
  kHeld,  // somebody else's
};
// `current`: the annotation, nullopt when there is none. A lock that cannot be read is held: its
// age is not known. `stale_after` nullopt: no lock is ever too old; zero: any is.
LockVerdict JudgeLock(std::optional<std::string_view> current, std::string_view wanted,
                      std::optional<Millis> stale_after, Instant now);

}  // namespace tranche::wire
