#include "scheduler/engine/gangs/gang_backfill.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Between two looks at when a gang can start.
constexpr Millis kLookGap{10'000};
// Moments tried: the first of so many ends of running work.
constexpr std::size_t kMostMoments = 256;
// Nodes are not kept for what begins later: what people declare of work is their word alone.
constexpr Millis kMostAhead = std::chrono::hours(24);

}  // namespace

// The gang to hold for: of those that have waited long enough the highest class, then the longest
// wait.
std::optional<std::string> GangBackfill::GangToHoldFor(Instant now) const {
  std::optional<std::tuple<int, Instant, std::string>> first;
  for (const std::string& key : cluster_.open_gangs) {
    const Gang& gang = gangs_.books().all.at(key);
    if (gang.seated || gang.reason != Reason::kGangNoRoom) continue;
    if (const auto rest = rests_.find(key); rest != rests_.end() && now < rest->second) continue;
    if (!gangs_.CountOf(key, gang).complete()) continue;
    const PodRecord* const waiting = FirstWaiting(cluster_, gang);
    if (waiting == nullptr || gang.waits_since.empty()) continue;
    const Instant since = *gang.waits_since.rbegin();
    if (now - since < cluster_.options.gang_hold_after) continue;
    const PodRequest& request = *waiting->request;
    const GpuClass* gpu_class =
        cluster_.book.MembershipOf(request.name.ns, request.priority_class).gpu_class;
    std::tuple turn(-(gpu_class == nullptr ? GpuClass().rank : gpu_class->rank), since, key);
    if (!first || turn < *first) first = std::move(turn);
  }
  return first ? std::optional(std::get<std::string>(*first)) : std::nullopt;
}

void GangBackfill::Tend(Instant now) {
  GangHold& hold = held_nodes_.hold;
  std::erase_if(rests_, [now](const auto& rest) { return rest.second <= now; });
  const bool held = !hold.nodes.empty();
  // What was to have ended by then has not, so there is nothing to wait for at these nodes.
  if (hold.due && *hold.due <= now) {
    TRANCHE_MARK(gang_hold_dropped);
    rests_[hold.gang] = now + cluster_.options.gang_hold_after;
    hold = GangHold();
  }
  const std::optional<std::string> key = GangToHoldFor(now);
  const bool same = key && *key == hold.gang;
  if (same && now < hold.looked_at + kLookGap && (hold.nodes.empty() || hold.start > now)) return;
  const std::optional<Instant> due = same ? hold.due : std::nullopt;
  hold = GangHold();
  if (key) {
    hold.gang = *key;
    hold.looked_at = now;
    PlanHold(gangs_.books().all.at(*key), now);
    if (!hold.nodes.empty()) hold.due = due ? std::min(*due, hold.start) : hold.start;
  }
  // What was kept may let others in, who hear of it from nobody.
  if (held && hold.nodes.empty()) cluster_.NoteChange();
}

// Nothing is kept from others for what would only be borrowed.
bool GangBackfill::IsEntitled(const QuotaMembership& membership, std::vector<ModelCharge> parts,
                              Instant start, Instant now) const {
  if (cluster_.set->quotas.empty()) return true;
  if (membership.leaf == kNoQuota) return false;
  // Beside what its team holds that will not have ended.
  for (const auto& [uid, work] : cluster_.book.holdings()) {
    if (work.quota != membership.leaf || work.released) continue;
    const std::optional<Instant> end = held_nodes_.EndOf(uid, now);
    if (end && *end <= start) continue;
    for (const ModelCharge& part : work.parts) Add(parts, part);
  }
  const QuotaTree& tree = cluster_.book.tree();
  return tree.Nominal(membership.leaf, kAnyLine).Allows(TotalOf(parts)) &&
         std::ranges::all_of(parts, [&](const ModelCharge& part) {
           const LineId line = tree.LineOf(membership.leaf, part.model);
           return tree.Nominal(membership.leaf, line).Allows(part.charge);
         });
}

// The more has ended, the more room there is: the first moment that will do is found by halving.
void GangBackfill::PlanHold(const Gang& gang, Instant now) {
  std::vector<Instant> moments;
  for (const auto& [uid, work] : cluster_.book.holdings()) {
    const std::optional<Instant> end = held_nodes_.EndOf(uid, now);
    if (end && *end <= now + kMostAhead) moments.push_back(*end);
  }
  if (moments.empty()) return;
  std::ranges::sort(moments);
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  if (moments.size() > kMostMoments) moments.resize(kMostMoments);
  std::vector<std::shared_ptr<const PodRequest>> members;
  for (const PodEntry* member : WaitingMembers(cluster_, gang)) {
    members.push_back(member->second.request);
  }
  const std::vector<NodeName> placed = PlacesOf(cluster_, gang);
  GangHold& hold = held_nodes_.hold;
  if (members.empty()) return;
  const QuotaMembership membership = parts_.rules.ContextOf(*members.front()).membership;
  hold.rank = RankOf(membership.gpu_class);
  if (membership.leaf != kNoQuota) hold.leaf = cluster_.book.tree().name(membership.leaf);
  std::vector<ModelCharge> charge;  // of its members there
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
    charge.clear();
    const std::vector<GangSites::Seat> seats = sites.SeatsOf(*plan);
    for (std::size_t i = 0; i < seats.size(); ++i) {
      hold.nodes.insert(cluster_.names.name(seats[i].node));
      const Inventory& inventory = cluster_.nodes[seats[i].node]->state.inventory();
      for (const ModelCharge& part : ChargeOfPicks(inventory, *members[i], seats[i].picks)) {
        Add(charge, part);
      }
    }
  }
  if (!hold.nodes.empty() && !IsEntitled(membership, std::move(charge), hold.start, now)) {
    TRANCHE_MARK(gang_hold_would_borrow);
    hold.nodes.clear();
  }
}

}  // namespace tranche
