#include "scheduler/controllers/scaling/provisioning_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "topology/base/stable_hash.h"

namespace tranche {
namespace {

using State = ProvisioningState;
using FoundByName = std::map<NamespacedName, const ProvisioningFound*>;
using WishByName = std::map<NamespacedName, const RoomWish*>;

// Of all pods nobody but us says which request they are to use.
bool IsOursToAsk(const RoomWish& wish, const std::string& name) {
  return std::ranges::all_of(wish.members, [&name](const RoomWish::Member& member) {
    return member.provisioning.empty() || member.provisioning == name;
  });
}

// Its pods are to use it.
bool IsToBeUsed(const ProvisioningFound& found) {
  if (found.deleting) return false;
  const bool checks = found.provisioning_class == ProvisioningClassOf(Provisioning::kCheckCapacity);
  return checks ? found.state == State::kProvisioned : !HasEnded(found.state);
}

bool IsToGo(Provisioning mode, const ProvisioningFound& found, const RoomWish* wish, Instant now) {
  if (mode == Provisioning::kOff || wish == nullptr) return true;
  if (found.provisioning_class != ProvisioningClassOf(mode)) return true;
  if (HasEnded(found.state)) return !found.since || now - *found.since >= kProvisioningRest;
  // Pods that came since are not in it.
  return found.pods < static_cast<int64_t>(wish->members.size());
}

ProvisioningWrite WriteOf(Provisioning mode, const NamespacedName& name, const RoomWish& wish) {
  ProvisioningWrite write;
  write.name = name;
  write.gang = wish.gang;
  write.provisioning_class = ProvisioningClassOf(mode);
  for (const RoomKind& kind : wish.kinds) {
    const RoomWish::Member& example = wish.members[kind.example];
    write.sets.push_back({example.pod, example.uid, kind.count});
  }
  return write;
}

// Those that were asked for longest ago first: one that is refused keeps nobody else waiting.
void PlanMaking(Provisioning mode, const WishByName& wishes, const FoundByName& found,
                const std::map<NamespacedName, Instant>& asked, Instant now,
                ProvisioningPlan& plan) {
  const auto asked_at = [&asked](const NamespacedName& name) {
    const auto at = asked.find(name);
    return at == asked.end() ? std::optional<Instant>() : at->second;
  };
  const auto lately = std::ranges::count_if(
      asked, [now](const auto& entry) { return now - entry.second < kProvisioningRetry; });
  std::vector<std::pair<std::optional<Instant>, NamespacedName>> order;
  for (const auto& [name, wish] : wishes) {
    const std::optional<Instant> last = asked_at(name);
    if (found.contains(name) || now - wish->since < kProvisioningPatience) continue;
    if (last && now - *last < kProvisioningRetry) continue;
    order.emplace_back(last, name);
  }
  std::ranges::sort(order);
  int64_t left = kMostRequestsAMinute - lately;
  // Those that are about to go, as what others made with our label is, keep nobody out.
  auto there = static_cast<std::size_t>(
      std::ranges::count_if(found, [&](const auto& one) { return wishes.contains(one.first); }));
  for (const auto& [last, name] : order) {
    if (left-- <= 0 || there++ >= kMostRequests) return;
    plan.make.push_back(WriteOf(mode, name, *wishes.at(name)));
  }
}

// Each waiting pod of a gang says what it is to say of our request: its name, or nothing.
void PlanMarks(const AdviceCase& fleet, const FoundByName& found, const WishByName& wishes,
               ProvisioningPlan& plan) {
  for (const AdviceWaiter& waiter : fleet.waiting) {
    if (plan.marks.size() >= kMostMarks) return;
    if (waiter.request->gang.empty()) continue;
    const NamespacedName name{waiter.name.ns, ProvisioningNameOf(waiter.request->gang)};
    const auto at = found.find(name);
    const bool uses = at != found.end() && wishes.contains(name) && IsToBeUsed(*at->second);
    const bool says = waiter.provisioning == name.name;
    if (uses == says) continue;
    PodMark mark;
    mark.key = kConsumeProvisioning;
    (uses ? mark.after : mark.before) = name.name;
    plan.marks.push_back({waiter.name, waiter.uid, {std::move(mark)}});
  }
}

constexpr std::array<const char*, kProvisioningStates> kStateNames = {
    "asked", "accepted", "not_yet", "provisioned", "expired", "revoked", "failed"};

// What the state means for the gang.
const char* Meaning(State state) {
  switch (state) {
    case State::kAsked:
      return "no autoscaler has taken it up yet";
    case State::kAccepted:
      return "an autoscaler tries to find room for all of its pods";
    case State::kNotYet:
      return "the autoscaler found no room for all of its pods, and tries again";
    case State::kProvisioned:
      return "nodes for all of its pods are there or on their way";
    case State::kExpired:
      return "its nodes are no longer kept; it may be asked for again in half an hour";
    case State::kRevoked:
      return "its nodes were taken back; it may be asked for again in half an hour";
    case State::kFailed:
      return "the autoscaler gave up; it may be asked for again in half an hour";
  }
  return "";
}

}  // namespace

const char* NameOf(ProvisioningState state) { return kStateNames[static_cast<std::size_t>(state)]; }

std::string SaidOf(const ProvisioningFound& found) {
  const std::string meaning = Meaning(found.state);
  if (found.reason.empty()) return meaning;
  return fmt::format("{} ({}{}{})", meaning, found.reason, found.message.empty() ? "" : ": ",
                     found.message);
}

std::string ProvisioningNameOf(std::string_view gang) {
  return fmt::format("tranche-{:016x}", StableHash(gang));
}

std::string_view ProvisioningClassOf(Provisioning mode) {
  return mode == Provisioning::kCheckCapacity ? "check-capacity.autoscaling.x-k8s.io"
                                              : "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
}

ProvisioningPlan PlanProvisioning(Provisioning mode, const AdviceCase& fleet,
                                  const std::vector<ProvisioningFound>& found,
                                  const std::map<NamespacedName, Instant>& asked) {
  ProvisioningPlan plan;
  const std::vector<RoomWish> wished = GangsWithoutRoom(fleet);
  WishByName wishes;
  for (const RoomWish& wish : wished) {
    const NamespacedName name{wish.ns, ProvisioningNameOf(wish.gang)};
    if (mode != Provisioning::kOff && IsOursToAsk(wish, name.name)) wishes.emplace(name, &wish);
  }
  FoundByName there;
  for (const ProvisioningFound& one : found) there.emplace(one.name, &one);
  for (const ProvisioningFound& one : found) {
    const auto at = wishes.find(one.name);
    const RoomWish* const wish = at == wishes.end() ? nullptr : at->second;
    if (one.deleting) continue;
    if (IsToGo(mode, one, wish, fleet.now)) {
      if (plan.remove.size() < kMostRemoved) plan.remove.push_back(one);
      wishes.erase(one.name);
      continue;
    }
    plan.spokesmen.emplace(one.name, wish->members.front());
    if (one.state != State::kProvisioned) continue;
    for (const RoomWish::Member& member : wish->members) {
      plan.expected.push_back({member.uid, one.since.value_or(fleet.now)});
    }
  }
  PlanMaking(mode, wishes, there, asked, fleet.now, plan);
  PlanMarks(fleet, there, wishes, plan);
  return plan;
}

}  // namespace tranche
