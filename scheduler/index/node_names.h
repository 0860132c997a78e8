// Node names <-> small numbers, with look-ups made for lists of thousands of names.
//
// kube-scheduler sends its candidates in nearly the same order every time, so after each name the
// two that followed it last are tried first: a comparison of bytes instead of a hash. Two, because
// its parallel workers swap neighbours, and the next list has them as before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "topology/base/ids.h"

namespace tranche {

using NodeId = Index<struct NodeIdTag>;
inline constexpr NodeId kNoNode{UINT32_MAX};

class NodeNames {
 public:
  // The id of the name, new if it was unknown.
  NodeId Intern(const NodeName& name) {
    const auto found = ids_.find(name.str());
    if (found != ids_.end()) return found->second;
    NodeId id = static_cast<NodeId>(names_.size());
    if (free_.empty()) {
      names_.push_back(name);
      next_.push_back({});
    } else {
      id = free_.back();
      free_.pop_back();
      names_[id] = name;
    }
    ids_.emplace(names_[id].str(), id);
    ranks_stale_ = true;
    return id;
  }

  void Forget(NodeId id) {
    ids_.erase(names_[id].str());
    names_[id] = NodeName();
    free_.push_back(id);
    ranks_stale_ = true;
  }

  NodeId Find(std::string_view name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? kNoNode : found->second;
  }

  // out[i] is the id of names[i], or kNoNode. Cost: about 5 ns a name when the order is familiar.
  void FindAll(std::span<const std::string_view> names, std::vector<NodeId>& out) {
    out.resize(names.size());
    Followers* hint = &first_;
    for (std::size_t i = 0; i < names.size(); ++i) {
      NodeId id = hint->last;
      if (id == kNoNode || names_[id].str() != names[i]) {
        id = hint->before;
        if (id == kNoNode || names_[id].str() != names[i]) id = Find(names[i]);
        if (id != kNoNode) *hint = {id, hint->last};
      }
      out[i] = id;
      if (id != kNoNode) hint = &next_[id];
    }
  }

  const NodeName& name(NodeId id) const { return names_[id]; }
  std::size_t size() const { return names_.size(); }

  // Position of the name among all names, ascending: the last tie breaker of every order.
  uint32_t rank(NodeId id) {
    if (ranks_stale_) RankAll();
    return ranks_[id];
  }
  void RankAll() {
    order_.resize(names_.size());
    std::iota(order_.begin(), order_.end(), NodeId{0});
    std::ranges::sort(order_, [this](NodeId left, NodeId right) {
      return std::tie(names_[left], left) < std::tie(names_[right], right);
    });
    ranks_.resize(names_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) ranks_[order_[i]] = i;
    ranks_stale_ = false;
  }
  // All ids by ascending name, forgotten ones (of empty name) first.
  const std::vector<NodeId>& ascending() {
    if (ranks_stale_) RankAll();
    return order_;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::string_view left, std::string_view right) const { return left == right; }
  };

  std::unordered_map<std::string, NodeId, Hash, Equal> ids_;  // looked up, never iterated
  std::vector<NodeName> names_;
  // The ids that followed one in the last lists, two different ones.
  struct Followers {
    NodeId last = kNoNode;
    NodeId before = kNoNode;
  };
  std::vector<Followers> next_;
  Followers first_;
  std::vector<NodeId> free_;
  std::vector<NodeId> order_;
  std::vector<uint32_t> ranks_;
  bool ranks_stale_ = true;
};

}  // namespace tranche
