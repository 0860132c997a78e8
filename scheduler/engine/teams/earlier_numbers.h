// Under which number, and until when, each pod or claim was metered last, before what we hold now.
//
// A pod that is metered again goes on after it. At a start that may be a million pods, of which few
// are still there: 24 bytes each until it is known which. Externally synchronised. Cost: O(log) a
// question; the first one after NoteEnded sorts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/facts/metering.h"

namespace tranche {

class EarlierNumbers {
 public:
  static constexpr std::size_t kMostRecent = 4'096;

  void Note(const PodUid& uid, int number) { known_[uid] = {number, Instant::min()}; }
  void NoteEnded(const std::vector<EndedNumber>& numbers);
  // It ended just now, and may go on: a watch that is late shows it, or its node is back. The last
  // kMostRecent are remembered.
  void NoteRecent(const PodUid& uid, int number, Instant ended);
  // When it ended last, as far as that is remembered; the least moment where it is not.
  Instant EndOf(const PodUid& uid);
  // The one to go on with: not below `at_least`.
  int NextOf(const PodUid& uid, int at_least);
  void Forget(const PodUid& uid) { known_.erase(uid); }
  // Of others nothing more will be metered, but where what was listed is old and a watch goes
  // through what came since: of those that ended, the last kMostRecent are remembered.
  void KeepOnly(const std::vector<PodUid>& uids);

 private:
  struct Last {
    int number = -1;  // none
    Instant ended = Instant::min();
  };
  struct Recent {
    Last last;
    uint64_t serial = 0;
  };
  Last LastOf(const PodUid& uid);

  std::map<PodUid, Last> known_;
  std::unordered_map<PodUid, Recent> recent_;
  std::deque<std::pair<uint64_t, PodUid>> order_;  // by serial; those that ended again twice
  uint64_t serial_ = 0;
  std::vector<EndedNumber> ended_;
  bool sorted_ = true;
};

}  // namespace tranche
