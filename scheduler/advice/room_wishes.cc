#include "scheduler/advice/room_wishes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tranche {
namespace {

using Waiters = std::vector<const AdviceWaiter*>;

// What pods of one kind have in common: their controller, without one the pod itself.
auto KindKeyOf(const AdviceWaiter& waiter) {
  std::vector<std::pair<std::string, int64_t>> needs;
  for (const PoolNeed& need : waiter.request->pool_needs) needs.emplace_back(need.key, need.count);
  return std::tuple(waiter.maker.empty() ? waiter.uid.str() : waiter.maker, std::move(needs),
                    waiter.request->cpu);
}

bool IsKnownToAutoscalers(const PodRequest& request) {
  return request.style == RequestStyle::kNative && !request.pool_needs.empty();
}

bool LacksRoomAlone(const AdviceWaiter& waiter) {
  return waiter.quota_allows && !waiter.gated && !waiter.request->refusal &&
         IsKnownToAutoscalers(*waiter.request) &&
         (waiter.last_reason == Reason::kNone || NodesWouldHelp(waiter.last_reason));
}

std::optional<RoomWish> WishOf(const Waiters& waiters) {
  RoomWish wish;
  wish.ns = waiters.front()->name.ns;
  wish.gang = waiters.front()->request->gang;
  wish.since = waiters.front()->since;
  bool tried = false;
  std::map<decltype(KindKeyOf(*waiters.front())), std::size_t> kinds;
  for (const AdviceWaiter* const waiter : waiters) {
    if (!LacksRoomAlone(*waiter)) return std::nullopt;
    tried = tried || waiter->last_reason != Reason::kNone;
    wish.since = std::max(wish.since, waiter->since);
    const auto [at, fresh] = kinds.try_emplace(KindKeyOf(*waiter), wish.kinds.size());
    if (fresh) wish.kinds.push_back({wish.members.size(), 0});
    ++wish.kinds[at->second].count;
    wish.members.push_back({waiter->name, waiter->uid, waiter->provisioning});
  }
  if (!tried || wish.kinds.size() > kMostRoomKinds) return std::nullopt;
  return wish;
}

}  // namespace

bool NodesWouldHelp(Reason reason) {
  switch (reason) {
    case Reason::kNoRoom:
    case Reason::kGangNoRoom:
    case Reason::kNodeExpected:
    case Reason::kNoNodeOffered:
    case Reason::kNodeNotReady:
    case Reason::kNodeCordoned:
    case Reason::kInterrupted:
    case Reason::kNotSelected:
    case Reason::kTainted:
    case Reason::kNoGpu:
    case Reason::kWrongModel:
    case Reason::kOneReplica:
    case Reason::kTooManyPerNode:
    case Reason::kTooLarge:
    case Reason::kUnhealthy:
    case Reason::kMaintenance:
    case Reason::kNumaMismatch:
    case Reason::kBrokenSet:
      return true;
    default:
      return false;
  }
}

std::vector<RoomWish> GangsWithoutRoom(const AdviceCase& fleet) {
  std::map<std::pair<std::string, std::string>, Waiters> gangs;
  for (const AdviceWaiter& waiter : fleet.waiting) {
    if (waiter.request->gang.empty()) continue;
    gangs[{waiter.name.ns, waiter.request->gang}].push_back(&waiter);
  }
  std::vector<RoomWish> wishes;
  for (auto& [name, waiters] : gangs) {
    std::ranges::sort(waiters, {}, [](const AdviceWaiter* waiter) { return waiter->uid; });
    if (std::optional<RoomWish> wish = WishOf(waiters)) wishes.push_back(*std::move(wish));
  }
  return wishes;
}

}  // namespace tranche
