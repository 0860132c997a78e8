// Which nodes a pod's spec lets it go to: node selector, required node affinity, tolerations.
//
// Lists are kept for constraints that are equal, for the first kMost of them. Externally
// synchronised. Cost: a list O(nodes) after nodes came or went, else a look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

  AllowedNodes() { lists_.reserve(kMost); }
  // The node has come, or is another one. True: it is new.
  bool Put(const NodeFacts& node);
  void Remove(const NodeName& node);
  // The place of the list for the request's constraints; kMost: too many others are kept.
  std::size_t PlaceOf(const PodRequest& request);
  // `constraints` null: the pod has none, and tolerates no taint.
  bool Allows(const NodeConstraints* constraints, const std::string& node) const;
  // In the order in which nodes came; good until the next call. `place` as PlaceOf said.
  const std::vector<std::string_view>& ListOf(std::size_t place,
                                              const NodeConstraints* constraints);

 private:
  struct Node {
    LabelText labels;
    std::vector<Taint> taints;
  };
  struct List {
    std::shared_ptr<const NodeConstraints> constraints;
    std::vector<std::string_view> nodes;
    int64_t seen = 0;  // the change of nodes it was made after
  };

  std::vector<std::string> names_;
  std::unordered_map<std::string, Node> nodes_;  // looked up only
  int64_t changes_ = 1;
  std::vector<List> lists_;
  List other_;  // of constraints that are not kept
};

}  // namespace tranche
