#include "scheduler/foresight/allowed_nodes.h"

#include <algorithm>

namespace tranche {

void AllowedNodes::Put(const NodeFacts& node) {
  ++changes_;
  const auto [at, is_new] = numbers_.try_emplace(node.name.str(), nodes_.size());
  if (is_new) nodes_.emplace_back();
  nodes_[at->second] = Node{at->first, node.labels, node.taints, true};
}

void AllowedNodes::Remove(const NodeName& node) {
  ++changes_;
  if (const auto number = NumberOf(node)) nodes_[*number].there = false;
}

std::optional<std::size_t> AllowedNodes::NumberOf(const NodeName& node) const {
  const auto found = numbers_.find(node.str());
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t AllowedNodes::PlaceOf(const PodRequest& request) {
  const NodeConstraints* const wanted = request.constraints.get();
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    const NodeConstraints* const known = lists_[i].constraints.get();
    const bool equal = wanted == nullptr || known == nullptr ? wanted == known : *wanted == *known;
    if (equal) return i;
  }
  if (lists_.size() == kMost) return kMost;
  lists_.push_back({request.constraints, List(), 0});
  return lists_.size() - 1;
}

const AllowedNodes::List& AllowedNodes::ListOf(std::size_t place,
                                               const NodeConstraints* constraints) {
  const bool is_kept = place < lists_.size();
  Kept& kept = is_kept ? lists_[place] : other_;
  List& list = kept.list;
  if (is_kept && kept.seen == changes_) return list;
  kept.seen = changes_;
  list.nodes.clear();
  list.allows.assign(nodes_.size(), false);
  for (std::size_t number = 0; number < nodes_.size(); ++number) {
    const Node& node = nodes_[number];
    list.allows[number] = node.there && (constraints == nullptr ? Tolerates({}, node.taints)
                                                                : Suits(*constraints, node.name,
                                                                        node.labels, node.taints));
    if (list.allows[number]) list.nodes.push_back(node.name);
  }
  return list;
}

}  // namespace tranche
