// Pods that ask no GPU: that they exist, where they run and how much CPU they request. GPUs on a
// node without CPU are stranded, so what these pods take decides where GPU pods go best.
//
// Externally synchronised. Cost: a hash look-up a call; about 100 bytes a pod.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

class PlainPodBooks {
 public:
  // The pod as it is now; `node` empty: it waits. True: what its node's pods request changed.
  bool Put(const PodUid& uid, const NodeName& node, MilliCpu cpu) {
    const uint32_t at = node.empty() ? kNowhere : Number(node);
    const auto [pod, fresh] = pods_.try_emplace(uid, Pod{kNowhere, MilliCpu::Zero()});
    if (pod->second.node == at && pod->second.cpu == cpu) return false;
    Count(pod->second, -1);
    pod->second = {at, cpu};
    Count(pod->second, 1);
    return at != kNowhere;
  }
  // Ended or gone. The node whose sum changed; empty: none.
  NodeName Remove(const PodUid& uid) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) return NodeName();
    const Pod was = pod->second;
    pods_.erase(pod);
    Count(was, -1);
    return was.node == kNowhere ? NodeName() : NodeName(names_[was.node]);
  }
  bool Has(const PodUid& uid) const { return pods_.contains(uid); }
  // Empty: it waits, or is not known.
  NodeName NodeOf(const PodUid& uid) const {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end() || pod->second.node == kNowhere) return NodeName();
    return NodeName(names_[pod->second.node]);
  }
  MilliCpu On(const NodeName& node) const {
    const auto found = numbers_.find(node.str());
    return found == numbers_.end() ? MilliCpu::Zero() : sums_[found->second];
  }

 private:
  struct Pod {
    uint32_t node = kNowhere;
    MilliCpu cpu;
  };
  static constexpr uint32_t kNowhere = UINT32_MAX;

  uint32_t Number(const NodeName& node) {
    const auto [at, fresh] = numbers_.try_emplace(node.str(), static_cast<uint32_t>(names_.size()));
    if (fresh) {
      names_.push_back(node.str());
      sums_.emplace_back();
    }
    return at->second;
  }
  void Count(const Pod& pod, int64_t sign) {
    if (pod.node != kNowhere) sums_[pod.node] += pod.cpu * sign;
  }

  std::unordered_map<PodUid, Pod> pods_;  // looked up, never iterated
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;  // by number; of nodes that ever ran such a pod
  std::vector<MilliCpu> sums_;      // by number
};

}  // namespace tranche
