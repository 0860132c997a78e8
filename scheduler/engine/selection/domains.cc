#include "scheduler/engine/selection/domains.h"

#include "scheduler/index/card_links.h"

namespace tranche {

std::string DomainOf(const ClusterState& cluster, NodeId id, GangLevel level,
                     const DomainLabels& labels) {
  const NodeFacts& facts = cluster.nodes[id]->state.facts();
  for (const std::string& label : labels.of_level[static_cast<std::size_t>(level)]) {
    const std::string_view value = facts.labels.Find(label);
    if (NamesDomain(value)) return std::string(value);
  }
  // A node alone is a fabric of its own.
  return level == GangLevel::kClique ? "node " + cluster.names.name(id).str() : "";
}

int DistanceTo(const ClusterState& cluster, const Neighbours& neighbours, NodeId id) {
  for (int level = 0; level < kGangLevels; ++level) {
    const std::string& domain = neighbours.domain[static_cast<std::size_t>(level)];
    if (domain.empty()) continue;
    if (DomainOf(cluster, id, static_cast<GangLevel>(level), *neighbours.labels) == domain)
      return level;
  }
  return kGangLevels;
}

}  // namespace tranche
