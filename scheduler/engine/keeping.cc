// Keepers in the engine's books: their pods, and who waits for the card they were given.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

// The devices of a pod that follows a keeper, pick by pick: it has one container with devices.
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
  for (const char* container : {kKeeperTeller, kKeeperHolder}) {
    Device device;
    device.card = index;
    device.milli = kWholeGpu;
    device.memory = card.memory;
    record.containers.push_back({container, {device}});
  }
  return record;
}

}  // namespace

void Engine::Impl::UpsertKeeper(PodFacts pod, Instant now) {
  if (pod.node.empty()) return;  // it holds nothing, and we make them with a node
  const PodUid uid = pod.request.uid;
  KeeperSighting sighting{pod.request.name,    uid, pod.node, -1, pod.keeper->told, pod.terminating,
                          !pod.holds_devices()};
  const bool known = keepers.Knows(uid);
  if (sighting.ended) {
    keepers.See(sighting, now);
    if (known) {
      ReleaseOn(pod.node, uid, now);
    } else if (const NodeId id = names.Find(pod.node.str()); id != kNoNode && nodes[id]) {
      Refresh(id, now);
    }
    return;
  }
  const NodeId id = InternNode(pod.node);
  NodeState& state = nodes[id]->state;
  Holding holding;
  holding.uid = uid;
  holding.request = std::make_shared<const PodRequest>(std::move(pod.request));
  holding.allocation = std::move(pod.allocation);
  holding.told = pod.keeper->told;
  const Holding* before = state.Find(uid);
  holding.keeper = before != nullptr ? before->keeper : KeeperRole::kLingering;
  state.Hold(std::move(holding));
  const Holding& after = *state.Find(uid);
  if (after.known) sighting.card = after.picks.front().card;
  keepers.See(sighting, now);
  Refresh(id, now);
}

bool Engine::Impl::DropKeeper(const PodUid& uid, Instant now) {
  const std::optional<NodeName> node = keepers.Gone(uid);
  if (!node) return false;
  ReleaseOn(*node, uid, now);
  return true;
}

void Engine::Impl::TendKeepers(NodeId id, Instant now) {
  NodeEntry& entry = *nodes[id];
  NodeState& state = entry.state;
  const NodeName& node = names.name(id);
  const bool concerns =
      keepers.On(node) || (!state.inventory().has_agent() &&
                           std::ranges::any_of(state.holdings(), [](const Holding& holding) {
                             return IsHeld(holding) && holding.request->follows_keeper;
                           }));
  if (!concerns) return;
  // A node that shows no cards for a moment says nothing about who is where.
  bool certain = state.present() && !state.inventory().cards.empty();
  std::map<int, FollowedCard> followed;
  for (const Holding& holding : state.holdings()) {
    if (!IsHeld(holding) || !holding.request->follows_keeper) continue;
    const std::vector<Device>* devices = holding.known ? DevicesOf(holding) : nullptr;
    certain &= devices != nullptr || !holding.allocation;
    if (devices == nullptr) continue;
    const bool waits = keeper_waits.contains(holding.uid);
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
  const KeeperAnswer answer = keepers.Tend(node, cards, certain, now);
  for (const auto& [uid, role] : answer.roles) state.SetKeeperRole(uid, role);
  state.SetNoNewKeeper(answer.paused);
  entry.unkept.clear();
  if (answer.unkept) {
    entry.unkept = fmt::format("expected a pod in {} that holds {}, found none", kKeeperNamespace,
                               answer.unkept->uuid.str());
  }
  for (const int card : answer.orders) OrderKeeper(id, card, now);
  TellFollowers(state, answer);
  if (answer.due && answer.due != entry.keepers_due) reopenings.emplace(*answer.due, id);
  entry.keepers_due = answer.due;
}

void Engine::Impl::OrderKeeper(NodeId id, int card, Instant now) {
  const NodeName& node = names.name(id);
  const Inventory& inventory = nodes[id]->state.inventory();
  // Fixed width: names ascend with age.
  const PodName name{kKeeperNamespace, fmt::format("reserve-{:016x}", NextStamp(now))};
  const Card& like = inventory.cards[static_cast<std::size_t>(card)];
  keepers.Ordered(name, node, card, now);
  keeper_orders.push_back({name, node, RecordOf(like, card, options.epoch)});
  reopenings.emplace(now + options.keeper_times.patience, id);
}

// Those who wait on the node and whose cards are all known may be bound; those one of whose cards
// will not be known go elsewhere.
void Engine::Impl::TellFollowers(NodeState& state, const KeeperAnswer& answer) {
  std::vector<PodUid> waiting;
  for (const Holding& holding : state.holdings()) {
    if (keeper_waits.contains(holding.uid)) waiting.push_back(holding.uid);
  }
  for (const PodUid& uid : waiting) {
    Holding holding = *state.Find(uid);
    const bool gone = !state.present();
    const bool refused =
        gone || std::ranges::any_of(holding.picks, [&answer](const Pick& pick) {
          return std::ranges::find(answer.refused, pick.card) != answer.refused.end();
        });
    if (refused) {
      keeper_waits.erase(uid);
      keeper_turns.push_back({uid, false});
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
    keeper_waits.erase(uid);
    keeper_turns.push_back({uid, true, holding.allocation});
    state.Hold(std::move(holding));
  }
}

void Engine::Impl::StartKeepers(Instant now) {
  keepers.Complete(now);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (nodes[id] != nullptr) Refresh(id, now);
  }
}

void Engine::SettleKeeper(const PodName& keeper, const NodeName& node, Instant now) {
  impl_->Advance(now);
  impl_->keepers.NotMade(keeper, now);
  const NodeId id = impl_->names.Find(node.str());
  if (id != kNoNode && impl_->nodes[id] != nullptr) impl_->Refresh(id, now);
}

}  // namespace tranche
