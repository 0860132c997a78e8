// How much of what the books know the exporter of NodeResourceTopology may not show yet.
//
// It tells how many GPUs of each NUMA node are free, some time after each change. A pod that came
// since may be in any of them, and one that has ended since may still be counted, so that the two
// can cancel each other out in the sum. A pod counts as shown once the exporter counts at least as
// many GPUs in use as all pods hold, those that ended lately included: then it shows each of them.
// Thread rule: as the engine's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

class ZoneLag {
 public:
  // The exporters' period is a minute.
  static constexpr Millis kEndedFor{120'000};

  // `held`: GPUs of each pod on the node by the books now. `shown`: in use as the exporter says.
  // Returns how many GPUs of pods that are there it may not show. Cost: O(pods of the node).
  int64_t Update(const std::map<PodUid, int64_t>& held, int64_t shown, Instant now) {
    for (const auto& [uid, gpus] : held_) {
      if (held.contains(uid)) continue;
      ended_.emplace_back(now, gpus);
      ended_sum_ += gpus;
      unshown_.erase(uid);
    }
    int64_t booked = 0, unshown = 0;
    for (const auto& [uid, gpus] : held) {
      booked += gpus;
      if (!held_.contains(uid)) unshown_[uid] = gpus;
    }
    held_ = held;
    while (!ended_.empty() && now - ended_.front().first >= kEndedFor) DropEnded();
    for (const auto& [uid, gpus] : unshown_) unshown += gpus;
    const int64_t most = booked + ended_sum_ - shown;
    if (unshown > 0 && most > 0) return std::min(unshown, most);
    // All that are there are shown; what it counts beyond them are those that have ended.
    unshown_.clear();
    while (!ended_.empty() && ended_sum_ > shown - booked) DropEnded();
    return 0;
  }

  // When time alone changes the answer; nullopt: never.
  std::optional<Instant> due() const {
    if (ended_.empty() || unshown_.empty()) return std::nullopt;
    return ended_.front().first + kEndedFor;
  }

 private:
  void DropEnded() {
    ended_sum_ -= ended_.front().second;
    ended_.pop_front();
  }

  std::map<PodUid, int64_t> held_;
  std::map<PodUid, int64_t> unshown_;
  std::deque<std::pair<Instant, int64_t>> ended_;  // oldest first
  int64_t ended_sum_ = 0;
};

}  // namespace tranche
