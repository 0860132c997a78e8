// Which nodes a pod's spec lets it go to: node selector, required node affinity, tolerations.
//
// Lists are kept for constraints that are equal, for the first kMost of them. Nodes have numbers in
// the order in which they came first, and keep them. Externally synchronised. Cost: a list O(nodes)
// after nodes came or went, else a look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_request.h"

namespace tranche {

class AllowedNodes {
 public:
  static constexpr std::size_t kMost = 64;
  struct List {
    std::vector<std::string_view> nodes;  // ascending number
    std::vector<bool> allows;             // by number
  };

  AllowedNodes() { lists_.reserve(kMost); }
  // The node has come, or is another one.
  void Put(const NodeFacts& node);
  void Remove(const NodeName& node);
  // nullopt: it never came.
  std::optional<std::size_t> NumberOf(const NodeName& node) const;
  std::string_view NameOf(std::size_t number) const { return nodes_[number].name; }
  // The place of the list for the request's constraints; kMost: too many others are kept.
  std::size_t PlaceOf(const PodRequest& request);
  // Good until the next call. `place` as PlaceOf said; `constraints` null: the pod has none, and
  // tolerates no taint.
  const List& ListOf(std::size_t place, const NodeConstraints* constraints);

 private:
  struct Node {
    std::string_view name;  // of its key
    LabelText labels;
    std::vector<Taint> taints;
    bool there = false;
  };
  struct Kept {
    std::shared_ptr<const NodeConstraints> constraints;
    List list;
    int64_t seen = 0;  // the change of nodes it was made after
  };

  std::unordered_map<std::string, std::size_t> numbers_;  // looked up only
  std::vector<Node> nodes_;                               // by number
  int64_t changes_ = 1;
  std::vector<Kept> lists_;
  Kept other_;  // of constraints that are not kept
};

}  // namespace tranche
