#include "scheduler/engine/gangs/gang_backfill.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tranche {
namespace {

// Between two looks at when a gang can start.
constexpr Millis kLookGap{10'000};
// Moments tried: the first of so many ends of running work.
constexpr std::size_t kMostMoments = 256;

}  // namespace

// The gang to hold for: of those that have waited long enough the highest class, then the longest
// wait.
std::optional<std::string> GangBackfill::GangToHoldFor(Instant now) const {
  std::optional<std::tuple<int, Instant, std::string>> first;
  for (const std::string& key : cluster_.open_gangs) {
    const Gang& gang = gangs_.books().all.at(key);
    if (gang.seated || gang.reason != Reason::kGangNoRoom) continue;
    const std::vector<PodUid> waiting = gangs_.WaitingMembers(gang);
    if (waiting.empty() || !gangs_.CountOf(key, gang).complete()) continue;
    Instant since = cluster_.pods.at(waiting.front()).waits_since;
    for (const PodUid& uid : waiting) since = std::max(since, cluster_.pods.at(uid).waits_since);
    if (now - since < cluster_.options.gang_hold_after) continue;
    const PodRequest& request = *cluster_.pods.at(waiting.front()).request;
    const GpuClass* gpu_class =
        cluster_.book.MembershipOf(request.name.ns, request.priority_class).gpu_class;
    std::tuple turn(-(gpu_class == nullptr ? GpuClass().rank : gpu_class->rank), since, key);
    if (!first || turn < *first) first = std::move(turn);
  }
  return first ? std::optional(std::get<std::string>(*first)) : std::nullopt;
}

void GangBackfill::Tend(Instant now) {
  GangHold& hold = held_nodes_.hold;
  const std::optional<std::string> key = GangToHoldFor(now);
  const bool same = key && *key == hold.gang;
  if (same && now < hold.looked_at + kLookGap && hold.start > now) return;
  const bool held = !hold.nodes.empty();
  hold = GangHold();
  if (key) {
    hold.gang = *key;
    hold.looked_at = now;
    PlanHold(gangs_.books().all.at(*key), now);
  }
  // What was kept may let others in, who hear of it from nobody.
  if (held && hold.nodes.empty()) cluster_.NoteChange();
}

// The more has ended, the more room there is: the first moment that will do is found by halving.
void GangBackfill::PlanHold(const Gang& gang, Instant now) {
  std::vector<Instant> moments;
  for (const auto& [uid, work] : cluster_.book.holdings()) {
    if (const std::optional<Instant> end = held_nodes_.EndOf(uid, now)) moments.push_back(*end);
  }
  std::ranges::sort(moments);
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  if (moments.size() > kMostMoments) moments.resize(kMostMoments);
  std::vector<std::shared_ptr<const PodRequest>> members;
  for (const PodUid& uid : gangs_.WaitingMembers(gang))
    members.push_back(cluster_.pods.at(uid).request);
  std::vector<NodeName> placed;
  for (const PodUid& uid : gang.members) {
    if (!cluster_.pods.at(uid).Place().empty()) placed.push_back(cluster_.pods.at(uid).Place());
  }
  GangHold& hold = held_nodes_.hold;
  std::size_t low = 0, high = moments.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    GangSites sites(parts_, members, gang.avoided, now, moments[middle]);
    const std::optional<GangPlan> plan = PlanGang(sites.Ask(placed), sites);
    if (!plan) {
      low = middle + 1;
      continue;
    }
    high = middle;
    hold.start = moments[middle];
    hold.nodes.clear();
    for (const GangSites::Seat& seat : sites.SeatsOf(*plan)) {
      hold.nodes.insert(cluster_.names.name(seat.node));
    }
  }
}

}  // namespace tranche
