// Which owners had pods evicted, and when: it guards work against being evicted again and again.
//
// An owner is what makes the pod anew (a controller, a gang, else the pod's own name), so that the
// history outlives the pod. quota-model section 4, "Against thrash".
//
// A plain value; externally synchronised. Keeps a day; cost O(log owners).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "topology/base/units.h"

namespace tranche {

// No guard lasts longer, so that the promise to entitled work is bounded.
inline constexpr Millis kGuardCap = std::chrono::hours(1);
inline constexpr Millis kEvictionDay = std::chrono::hours(24);

class EvictionHistory {
 public:
  // One eviction of the owner's work (a gang counts once): `pods` of them, of `leaf`. Times may
  // come in any order (a restart reads them back); the same (owner, at) counts once.
  void Note(const std::string& owner, const std::string& leaf, int64_t pods, Instant at);
  // More pods of an eviction that was noted.
  void NoteMore(const std::string& leaf, int64_t pods, Instant at);
  // Drops what is older than a day.
  void Forget(Instant now);

  // Within the last day.
  int Evictions(const std::string& owner, Instant now) const;
  // What the owner started at `started` may not be evicted before: last eviction before that + base
  // x 2^(n - 1) after n of them within the day, at most kGuardCap after the last. Work that ran all
  // along is not protected by what happened to other work of its owner. nullopt: not immune at
  // `now`.
  std::optional<Instant> ImmuneUntil(const std::string& owner, Instant started, Millis base,
                                     Instant now) const;
  // `most` evictions a day are used up; the moment the oldest of them leaves the day. nullopt: more
  // may come.
  std::optional<Instant> DayFullUntil(const std::string& owner, std::optional<int> most,
                                      Instant now) const;

  // Pods of the leaf evicted within the last hour.
  int64_t PodsInHour(const std::string& leaf, Instant now) const;
  // The moment after which PodsInHour is below `most`; nullopt: it is below now. Requires most > 0.
  std::optional<Instant> HourFullUntil(const std::string& leaf, int64_t most, Instant now) const;

 private:
  struct Entry {
    Instant at;
    int64_t pods = 0;
  };
  std::map<std::string, std::deque<Instant>> by_owner_;  // ascending
  std::map<std::string, std::deque<Entry>> by_leaf_;     // ascending
};

}  // namespace tranche
