// What gangs tell people.
#include <fmt/format.h>

#include <set>
#include <string>

#include "scheduler/engine/gangs/gangs.h"

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

GangView Gangs::ViewOf(const std::string& key) const {
  const Gang& gang = books_.all.at(key);
  const GangCount count = CountOf(key, gang);
  GangView view;
  const std::size_t slash = key.find('/');
  view.name = {key.substr(0, slash), key.substr(slash + 1)};
  view.size = count.size;
  view.bound = count.bound;
  view.binding = count.placed - count.bound;
  view.waiting = count.waiting;
  view.gated = count.gated;
  view.plain = count.plain;
  if (!gang.waits_since.empty()) view.waits_since = *gang.waits_since.begin();
  std::set<NodeName> nodes;
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = cluster_.pods.at(uid);
    const NodeName& place =
        record.Place().empty() && record.earmark != nullptr ? record.earmark->node : record.Place();
    if (!place.empty()) nodes.insert(place);
    if (view.detail.empty() && record.Place().empty()) view.detail = Describe(record);
  }
  view.nodes.assign(nodes.begin(), nodes.end());
  if (!gang.members.empty()) {
    const PodRecord& first = cluster_.pods.at(*gang.members.begin());
    const QuotaId leaf = rules_.ContextOf(*first.request).membership.leaf;
    if (leaf != kNoQuota) view.leaf = cluster_.book.tree().name(leaf);
  }
  if (IsVictim(gang, count)) {
    view.state = GangView::State::kLeaving;
  } else if (gang.seated) {
    view.state = GangView::State::kSeated;
  } else if (gang.started || (IsLoose(key, gang, count) && count.placed > 0)) {
    view.state = GangView::State::kRunning;
  } else if (IsLoose(key, gang, count) || count.complete()) {
    view.state = GangView::State::kWaiting;
  }
  return view;
}

}  // namespace tranche
