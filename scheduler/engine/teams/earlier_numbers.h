// Under which number each pod or claim was metered last, before what we hold now.
//
// A pod that is metered again goes on after it. At a start that may be a million pods, of which few
// are still there: 16 bytes each until it is known which. Externally synchronised. Cost: O(log) a
// question; the first one after NoteEnded sorts.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/facts/metering.h"

namespace tranche {

class EarlierNumbers {
 public:
  static constexpr std::size_t kMostRecent = 4'096;

  void Note(const PodUid& uid, int number) { known_[uid] = number; }
  void NoteEnded(const std::vector<EndedNumber>& numbers);
  // Of what ended just now, and may yet be seen by a watch that is late; the last kMostRecent.
  void NoteRecent(const PodUid& uid, int number);
  // The one to go on with: not below `at_least`.
  int NextOf(const PodUid& uid, int at_least);
  void Forget(const PodUid& uid) { known_.erase(uid); }
  // Of all others nothing more will be metered.
  void KeepOnly(const std::vector<PodUid>& uids);

 private:
  // -1: none.
  int LastOf(const PodUid& uid);

  std::unordered_map<PodUid, int> known_;
  std::deque<std::pair<PodUid, int>> recent_;
  std::vector<EndedNumber> ended_;
  bool sorted_ = true;
};

}  // namespace tranche
