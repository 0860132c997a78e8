#include "scheduler/foresight/allowed_nodes.h"

#include <algorithm>

namespace tranche {

bool AllowedNodes::Put(const NodeFacts& node) {
  ++changes_;
  const auto [at, is_new] =
      nodes_.insert_or_assign(node.name.str(), Node{node.labels, node.taints});
  if (is_new) names_.push_back(at->first);
  return is_new;
}

void AllowedNodes::Remove(const NodeName& node) {
  ++changes_;
  nodes_.erase(node.str());
  std::erase(names_, node.str());
}

std::size_t AllowedNodes::PlaceOf(const PodRequest& request) {
  const NodeConstraints* const wanted = request.constraints.get();
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    const NodeConstraints* const known = lists_[i].constraints.get();
    const bool equal = wanted == nullptr || known == nullptr ? wanted == known : *wanted == *known;
    if (equal) return i;
  }
  if (lists_.size() == kMost) return kMost;
  lists_.push_back({request.constraints, {}, 0});
  return lists_.size() - 1;
}

bool AllowedNodes::Allows(const NodeConstraints* constraints, const std::string& node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  const Node& known = found->second;
  return constraints == nullptr ? Tolerates({}, known.taints)
                                : Suits(*constraints, node, known.labels, known.taints);
}

const std::vector<std::string_view>& AllowedNodes::ListOf(std::size_t place,
                                                          const NodeConstraints* constraints) {
  const bool kept = place < lists_.size();
  List& list = kept ? lists_[place] : other_;
  if (kept && list.seen == changes_) return list.nodes;
  list.seen = changes_;
  list.nodes.clear();
  for (const std::string& name : names_) {
    if (Allows(constraints, name)) list.nodes.push_back(name);
  }
  return list.nodes;
}

}  // namespace tranche
