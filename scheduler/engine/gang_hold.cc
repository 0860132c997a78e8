// Backfill: nodes are kept for a gang that has waited long, until work there has ended as it
// declared; who ends before may use them meanwhile. Source: quota-model section 4, "Starvation".
#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/engine/gang_sites.h"
#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

// Between two looks at when a gang can start.
constexpr Millis kLookGap{10'000};
// Moments tried: the first of so many ends of running work.
constexpr std::size_t kMostMoments = 256;

}  // namespace

std::optional<Instant> Engine::Impl::EndOf(const PodUid& uid, Instant now) const {
  const auto found = pods.find(uid);
  if (found == pods.end()) return std::nullopt;
  const PodRecord& record = found->second;
  if (record.traits.leaves_at) return std::max(now, *record.traits.leaves_at);
  const HeldWork* work = book.Find(uid);
  if (work == nullptr || record.node.empty() || !record.request->expected_runtime) {
    return std::nullopt;
  }
  const Instant end = work->running.value_or(work->since) + *record.request->expected_runtime;
  return end > now ? std::optional(end) : std::nullopt;
}

// The gang to hold for: of those that have waited long enough the highest class, then the longest
// wait.
std::optional<std::string> Engine::Impl::GangToHoldFor(Instant now) const {
  std::optional<std::tuple<int, Instant, std::string>> first;
  for (const std::string& key : gangs.open) {
    const Gang& gang = gangs.all.at(key);
    if (gang.seated || gang.reason != Reason::kGangNoRoom) continue;
    const std::vector<PodUid> waiting = WaitingMembers(gang);
    if (waiting.empty() || !CountOf(key, gang).complete()) continue;
    Instant since = pods.at(waiting.front()).waits_since;
    for (const PodUid& uid : waiting) since = std::max(since, pods.at(uid).waits_since);
    if (now - since < options.gang_hold_after) continue;
    const PodRequest& request = *pods.at(waiting.front()).request;
    const GpuClass* gpu_class = book.StandingOf(request.name.ns, request.priority_class).gpu_class;
    std::tuple turn(-(gpu_class == nullptr ? GpuClass().rank : gpu_class->rank), since, key);
    if (!first || turn < *first) first = std::move(turn);
  }
  return first ? std::optional(std::get<std::string>(*first)) : std::nullopt;
}

void Engine::Impl::TendHold(Instant now) {
  GangHold& hold = gangs.hold;
  const std::optional<std::string> key = GangToHoldFor(now);
  const bool same = key && *key == hold.gang;
  if (same && now < hold.looked_at + kLookGap && hold.start > now) return;
  const bool held = !hold.nodes.empty();
  hold = GangHold();
  if (key) {
    hold.gang = *key;
    hold.looked_at = now;
    PlanHold(gangs.all.at(*key), now);
  }
  // What was kept may let others in, who hear of it from nobody.
  if (held && hold.nodes.empty()) NoteChange();
}

// The more has ended, the more room there is: the first moment that will do is found by halving.
void Engine::Impl::PlanHold(const Gang& gang, Instant now) {
  std::vector<Instant> moments;
  for (const auto& [uid, work] : book.holdings()) {
    if (const std::optional<Instant> end = EndOf(uid, now)) moments.push_back(*end);
  }
  std::ranges::sort(moments);
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  if (moments.size() > kMostMoments) moments.resize(kMostMoments);
  std::vector<std::shared_ptr<const PodRequest>> members;
  for (const PodUid& uid : WaitingMembers(gang)) members.push_back(pods.at(uid).request);
  std::vector<NodeName> placed;
  for (const PodUid& uid : gang.members) {
    if (!pods.at(uid).Place().empty()) placed.push_back(pods.at(uid).Place());
  }
  GangHold& hold = gangs.hold;
  std::size_t low = 0, high = moments.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    GangSites sites(*this, members, gang.avoided, now, moments[middle]);
    const std::optional<GangPlan> plan = PlanGang(sites.Ask(placed), sites);
    if (!plan) {
      low = middle + 1;
      continue;
    }
    high = middle;
    hold.start = moments[middle];
    hold.nodes.clear();
    for (const GangSites::Seat& seat : sites.SeatsOf(*plan)) {
      hold.nodes.insert(names.name(seat.node));
    }
  }
}

bool Engine::Impl::IsHeldFrom(const PodRequest& request, NodeId id, Instant now) const {
  const GangHold& hold = gangs.hold;
  if (hold.nodes.empty() || hold.start <= now || !hold.nodes.contains(names.name(id))) return false;
  if (GangKey(request) == hold.gang) return false;
  return !request.expected_runtime || now + *request.expected_runtime > hold.start;
}

}  // namespace tranche
