#include "scheduler/engine/placeholders/placeholders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tranche {
namespace {

// The devices of a pod that follows a placeholder, pick by pick: it has one container with devices.
const std::vector<Device>* DevicesOf(const Holding& holding) {
  if (!holding.allocation || holding.allocation->containers.size() != 1) return nullptr;
  const std::vector<Device>& devices = holding.allocation->containers.front().devices;
  return devices.size() == holding.picks.size() ? &devices : nullptr;
}

bool IsHeld(const Holding& holding) {
  return holding.kind == HoldingKind::kReservation || holding.kind == HoldingKind::kAllocation;
}

Allocation RecordOf(const Card& card, int index, int64_t epoch) {
  Allocation record;
  record.epoch = epoch;
  for (const char* container : {kPlaceholderTeller, kPlaceholderHolder}) {
    Device device;
    device.card = index;
    device.milli = kWholeGpu;
    device.memory = card.memory;
    record.containers.push_back({container, {device}});
  }
  return record;
}

}  // namespace

int64_t Placeholders::NextStamp(Instant now) {
  constexpr int64_t kNanosPerMilli = 1'000'000;
  stamp_ = std::max(stamp_ + 1, now.time_since_epoch().count() * kNanosPerMilli);
  return stamp_;
}

bool Placeholders::Concerns(const NodeName& node, const NodeState& state) const {
  return books_.On(node) || (!state.inventory().has_agent() &&
                             std::ranges::any_of(state.holdings(), [](const Holding& holding) {
                               return IsHeld(holding) && holding.request->follows_placeholder;
                             }));
}

PlaceholderTending Placeholders::Tend(const NodeName& node, NodeState& state, Instant now) {
  PlaceholderTending tending;
  // A node that shows no cards for a moment says nothing about who is where.
  bool certain = state.present() && !state.inventory().cards.empty();
  std::map<int, FollowedCard> followed;
  for (const Holding& holding : state.holdings()) {
    if (!IsHeld(holding) || !holding.request->follows_placeholder) continue;
    const std::vector<Device>* devices = holding.known ? DevicesOf(holding) : nullptr;
    certain &= devices != nullptr || !holding.allocation;
    if (devices == nullptr) continue;
    const bool waits = waits_.contains(holding.uid);
    for (std::size_t i = 0; i < devices->size(); ++i) {
      const Device& device = (*devices)[i];
      // Somebody else bound it: it was shown no card.
      if (device.uuid.empty() && !waits) continue;
      FollowedCard& card = followed[holding.picks[i].card];
      card.card = holding.picks[i].card;
      if (!device.uuid.empty()) card.uuid = device.uuid;
    }
  }
  std::vector<FollowedCard> cards;
  for (const auto& [index, card] : followed) cards.push_back(card);
  const PlaceholderAnswer answer = books_.Tend(node, cards, certain, now);
  for (const auto& [uid, role] : answer.roles) state.SetPlaceholderRole(uid, role);
  state.SetNoNewPlaceholder(answer.paused);
  if (answer.unkept) {
    tending.unkept = fmt::format("expected a pod in {} that holds {}, found none",
                                 kPlaceholderNamespace, answer.unkept->uuid.str());
  }
  for (const int card : answer.orders) {
    tending.orders.push_back(Order(node, state.inventory(), card, now));
  }
  TellFollowers(state, answer, tending);
  tending.due = answer.due;
  return tending;
}

PlaceholderOrder Placeholders::Order(const NodeName& node, const Inventory& inventory, int card,
                                     Instant now) {
  // Fixed width: names ascend with age.
  PodName name{kPlaceholderNamespace, fmt::format("reserve-{:016x}", NextStamp(now))};
  const Card& like = inventory.cards[static_cast<std::size_t>(card)];
  books_.Ordered(name, node, card, now);
  return {std::move(name), node, RecordOf(like, card, epoch_)};
}

// Pods that wait on the node may be bound when all their cards are known; when one of them will not
// be known, they go elsewhere.
void Placeholders::TellFollowers(NodeState& state, const PlaceholderAnswer& answer,
                                 PlaceholderTending& tending) {
  std::vector<PodUid> waiting;
  for (const Holding& holding : state.holdings()) {
    if (waits_.contains(holding.uid)) waiting.push_back(holding.uid);
  }
  for (const PodUid& uid : waiting) {
    Holding holding = *state.Find(uid);
    const bool gone = !state.present();
    const bool refused =
        gone || std::ranges::any_of(holding.picks, [&answer](const Pick& pick) {
          return std::ranges::find(answer.refused, pick.card) != answer.refused.end();
        });
    if (refused) {
      waits_.erase(uid);
      tending.ended.emplace_back(uid, std::nullopt);
      continue;
    }
    if (DevicesOf(holding) == nullptr) continue;
    std::vector<Device>& devices = holding.allocation->containers.front().devices;
    std::size_t known = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto told =
          std::ranges::find(answer.told, holding.picks[i].card, &std::pair<int, GpuUuid>::first);
      if (told == answer.told.end()) break;
      devices[i].uuid = told->second;
      devices[i].slot = true;
      ++known;
    }
    if (known < devices.size()) continue;
    holding.allocation->knowledge = Knowledge::kExact;
    waits_.erase(uid);
    tending.ended.emplace_back(uid, holding.allocation);
    state.Hold(std::move(holding));
  }
}

}  // namespace tranche
