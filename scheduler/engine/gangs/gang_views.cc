// What gangs tell people and the steps that choose nodes.
#include <fmt/format.h>

#include <string>

#include "scheduler/engine/gangs/gangs.h"
#include "scheduler/index/card_sets.h"

namespace tranche {

std::string Gangs::Describe(const PodRecord& record) const {
  if (record.gang.empty()) return "";
  const Gang& gang = books_.all.at(record.gang);
  const GangCount count = CountOf(record.gang, gang);
  if (IsVictim(gang, count)) {
    return fmt::format("expected gang {} to be there, found that its pods are being evicted",
                       record.request->gang);
  }
  if (IsLoose(record.gang, gang, count)) return "";
  if (record.earmark != nullptr && gang.seated) {
    return fmt::format("devices are kept on {} for this pod of gang {}", record.earmark->node.str(),
                       record.request->gang);
  }
  if (!count.complete() && count.gathered()) {
    return fmt::format(
        "expected the scheduling gates of gang {} to be gone, found {} pods with one",
        record.request->gang, count.gated);
  }
  if (!count.complete()) {
    return fmt::format("expected {} pods of gang {}, found {}", count.size, record.request->gang,
                       count.placed + count.waiting + count.gated + count.plain);
  }
  return gang.detail;
}

bool Gangs::NeighboursOf(const PodRecord& record, const GpuPolicy& policy,
                         Neighbours& found) const {
  found.labels = &policy.domains;
  const PodRequest& request = *record.request;
  if (request.gang_within) found.within = static_cast<int>(*request.gang_within);
  if (WishOf(request, policy) == TopologyWish::kRequired && books_.all.at(record.gang).started) {
    found.within = static_cast<int>(GangLevel::kClique);
  }
  for (const PodUid& uid : books_.all.at(record.gang).members) {
    const NodeName& node = cluster_.pods.at(uid).Place();
    const NodeId id = node.empty() ? kNoNode : cluster_.names.Find(node.str());
    if (id == kNoNode || cluster_.nodes[id] == nullptr || !cluster_.nodes[id]->state.present())
      continue;
    for (std::size_t level = 0; level < kGangLevels; ++level) {
      found.domain[level] = DomainOf(cluster_, id, static_cast<GangLevel>(level), policy.domains);
    }
    return true;
  }
  return false;
}

}  // namespace tranche
