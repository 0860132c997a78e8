// The pods that something was last noted of: so many at most, the oldest are forgotten first.
//
// Externally synchronised. Cost: a hash look-up a call; about 150 bytes a pod.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>

#include "topology/base/ids.h"

namespace tranche {

class RecentPods {
 public:
  explicit RecentPods(std::size_t most) : most_(most) {}
  // False: it was noted before.
  bool Note(const PodUid& uid) {
    if (!pods_.insert(uid).second) return false;
    order_.push_back(uid);
    if (order_.size() > most_) {
      pods_.erase(order_.front());
      order_.pop_front();
    }
    return true;
  }
  // One that is noted again keeps its first place in the order.
  void Forget(const PodUid& uid) { pods_.erase(uid); }
  bool Has(const PodUid& uid) const { return pods_.contains(uid); }
  std::size_t size() const { return pods_.size(); }

 private:
  std::size_t most_;
  std::unordered_set<PodUid> pods_;
  std::deque<PodUid> order_;  // oldest first
};

}  // namespace tranche
