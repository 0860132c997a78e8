// What keeps a request off a node before room on single cards is looked at.
#include "scheduler/index/eligibility.h"

#include <algorithm>
#include <string>

#include "scheduler/index/agent_cards.h"
#include "topology/gpu_model.h"

namespace tranche {

bool MatchesModels(const PodRequest& request, const Card& card) {
  const auto names = [&card](const std::string& pattern) {
    return MatchesModel(pattern, card.product);
  };
  if (!request.models_any.empty() && std::ranges::none_of(request.models_any, names)) return false;
  return std::ranges::none_of(request.models_none, names);
}

bool IsSelected(const PodRequest& request, const Ask& ask, const Card& card) {
  const std::string& uuid = card.uuid.str();
  if (!request.uuids_any.empty() &&
      std::ranges::find(request.uuids_any, uuid) == request.uuids_any.end()) {
    return false;
  }
  if (std::ranges::find(request.uuids_none, uuid) != request.uuids_none.end()) return false;
  if (card.mode == CardMode::kAgent && card.vgpu_mode == "mig") {
    if (card.cut == nullptr || ask.resource != Resource::kShare) return false;
    // A process sees one instance: several devices are meant to be instances only where it says so.
    if (ask.count > 1 && request.vgpu_mode.empty()) return false;
  }
  return request.vgpu_mode.empty() || card.vgpu_mode.find(request.vgpu_mode) != std::string::npos;
}

bool IsRightKind(const Inventory& inventory, const Ask& ask, const Card& card) {
  if (card.mode == CardMode::kMig) return false;
  switch (ask.resource) {
    case Resource::kGpu:
      return true;
    case Resource::kGpuShared:
      return card.mode == CardMode::kReplicated;
    case Resource::kMig:
      return false;
    case Resource::kShare:
      return inventory.gpu_unit != GpuUnit::kMigDevice;
  }
  return false;
}

namespace {

// Can this node hold the pod's share to its size, or may it be a promise only?
bool ShareAllowed(const Inventory& inventory, const PodRequest& request, const Ask& ask,
                  const GpuPolicy& policy) {
  if (ask.compute < kWholeGpu) {
    if (ServesWholeCardsOnly(inventory)) return false;
    // It is held to its part by what the agent gives it when the kubelet asks.
    const bool own = inventory.agent == AgentKind::kTranche;
    if (own && !CallsAgent(inventory.agent, request)) return false;
  }
  if (request.follows_placeholder) {
    if (inventory.placeholders) return true;
    // It sees what we name, and would see nothing where we cannot.
    const bool named =
        inventory.knowledge == Knowledge::kExact &&
        std::ranges::none_of(inventory.cards, [](const Card& card) { return card.uuid.empty(); });
    if (!named) return false;
  }
  // Styles made for an agent run nowhere else (see IsServed); the agent acts when it is called.
  const bool for_stock_nodes = Serves(AgentKind::kNone, request.style);
  if (!for_stock_nodes || CallsAgent(inventory.agent, request)) return true;
  if (inventory.sharing == SharingMethod::kMps) return true;
  const Permission own = inventory.rules.unenforced_sharing.value_or(policy.unenforced_sharing);
  return policy.takes_all || own == Permission::kAllow;
}

// Has the node an agent that knows the pod's style, or none where none is needed? A node with no
// GPU at all is another reason.
bool IsServed(const Inventory& inventory, const PodRequest& request) {
  return request.asks.empty() || (inventory.cards.empty() && inventory.pools.empty()) ||
         Serves(inventory.agent, request.style);
}

// The counted keys first: they are what kubelet will check.
Reason CheckKeys(const Inventory& inventory, const Load& load, const PodRequest& request) {
  Reason reason = Reason::kNone;
  for (const PoolNeed& need : request.pool_needs) {
    const CountedKey* key = inventory.FindKey(need.key);
    if (key == nullptr || key->capacity == 0) return Reason::kNoGpu;
    const int64_t used = load.keys[static_cast<std::size_t>(key - inventory.keys.data())];
    Reason found = Reason::kNone;
    if (need.count > key->capacity) {
      found = Reason::kTooManyPerNode;
    } else if (need.count > key->allocatable) {
      found = Reason::kUnhealthy;
    } else if (used + need.count > key->allocatable) {
      found = Reason::kNoRoom;
    }
    if (found != Reason::kNone && (reason == Reason::kNone || found < reason)) reason = found;
  }
  return reason;
}

bool MayShare(const Inventory& inventory, const Ask& ask, const Card& card,
              const PlaceRules& rules) {
  return PreferenceOf(inventory, ask, card, rules.sharing).has_value();
}

Reason MissingInPool(const Inventory& inventory, const PodRequest& request, const Ask& ask,
                     const MigPool& pool, const PlaceRules& rules) {
  bool selected = pool.slots.empty();
  for (const MigSlot& slot : pool.slots) {
    const Card& card = inventory.cards[static_cast<std::size_t>(slot.card)];
    if (!MayShare(inventory, ask, card, rules)) return Reason::kSharingMode;
    if (!MatchesModels(request, card)) return Reason::kWrongModel;
    selected = selected || card.uuid.empty() || IsSelected(request, ask, card);
  }
  if (!selected) return Reason::kWrongDevice;
  return pool.memory * pool.replicas < request.min_gpu_memory ? Reason::kTooLarge : Reason::kNoRoom;
}

// Several units of the ask may be instances of one card.
bool MayRepeat(const Inventory& inventory, const PodRequest& request, const Ask& ask) {
  return std::ranges::any_of(inventory.cards, [&](const Card& card) {
    return card.cut != nullptr && IsSelected(request, ask, card);
  });
}

// The most fundamental thing that is missing for one ask, room aside; kNoRoom when nothing is.
Reason Missing(const Inventory& inventory, const PodRequest& request, const Ask& ask,
               const PlaceRules& rules) {
  if (const int pool = PoolFor(inventory, ask); pool >= 0) {
    return MissingInPool(inventory, request, ask, inventory.pools[static_cast<std::size_t>(pool)],
                         rules);
  }
  const Mebibytes beside =
      TakesBeside(ask) ? LimitsOf(*rules.policy, inventory).beside : Mebibytes::Zero();
  int64_t kind = 0, mode = 0, model = 0, device = 0, size = 0, healthy = 0;
  for (const Card& card : inventory.cards) {
    if (!IsRightKind(inventory, ask, card)) continue;
    ++kind;
    if (!MayShare(inventory, ask, card, rules)) continue;
    ++mode;
    if (!MatchesModels(request, card)) continue;
    ++model;
    if (!IsSelected(request, ask, card)) continue;
    ++device;
    const CardNeed need = NeedOn(inventory, ask, card);
    if (card.memory < request.min_gpu_memory || !need.fits) continue;
    if (card.cut == nullptr && need.memory + beside > card.memory) continue;
    ++size;
    if (card.healthy && !card.cordoned) ++healthy;
  }
  // Replicas of one card may serve one container twice, and so may instances.
  const bool spread = !MayRepeat(inventory, request, ask) &&
                      (ask.resource == Resource::kShare || inventory.gpu_unit == GpuUnit::kCard);
  const int64_t wanted = spread ? ask.count : 1;
  if (kind == 0) return Reason::kNoGpu;
  if (mode == 0) return Reason::kSharingMode;
  if (model == 0) return Reason::kWrongModel;
  if (kind < wanted) return Reason::kTooManyPerNode;
  if (mode < wanted) return Reason::kSharingMode;
  if (model < wanted) return Reason::kWrongModel;
  if (device < wanted) return Reason::kWrongDevice;
  if (size < wanted) return Reason::kTooLarge;
  if (healthy < wanted) return Reason::kUnhealthy;
  return Reason::kNoRoom;
}

// A device plugin may refuse a container that asks for more than one replica at the node's door
// (failRequestsGreaterThanOne, which no label tells): by itself under MPS alone. So do we.
bool BreaksReplicaRule(const Inventory& inventory, const Ask& ask, const GpuPolicy& policy) {
  if (ask.count <= 1 || ask.resource == Resource::kShare || inventory.has_agent()) return false;
  const int pool = PoolFor(inventory, ask);
  const bool shared = pool >= 0 ? inventory.pools[static_cast<std::size_t>(pool)].replicas > 1
                                : inventory.gpu_unit == GpuUnit::kReplica;
  if (!shared) return false;
  const bool mps = pool < 0 && inventory.sharing == SharingMethod::kMps;
  const std::optional<Permission>& own = inventory.rules.several_replicas;
  return (own ? own : policy.several_replicas)
             .value_or(mps ? Permission::kRefuse : Permission::kAllow) == Permission::kRefuse;
}

// Its agent gives the container the limits of its record in these variables, and refuses one that
// sets them itself.
bool SetsItsOwnPart(const Inventory& inventory, const PodRequest& request, const Ask& ask) {
  const bool part = ask.resource == Resource::kShare && ask.compute < kWholeGpu;
  return part && inventory.agent == AgentKind::kTranche &&
         std::ranges::count(request.own_limits, ask.container, &OwnLimits::container) > 0;
}

// The pod alone has more containers on cards at one moment than all cards of the node take.
bool ExceedsUserLimits(const Inventory& inventory, const PodRequest& request) {
  int64_t most = 0;
  for (const Card& card : inventory.cards) {
    if (card.mode == CardMode::kMig) continue;
    if (card.MostUsers() == 0) return false;
    most += card.MostUsers();
  }
  Picks on_one_card;
  for (std::size_t i = 0; i < request.asks.size(); ++i) {
    if (PoolFor(inventory, request.asks[i]) >= 0) continue;
    if (request.asks[i].count > most) return true;
    Pick pick;
    pick.ask = static_cast<int>(i);
    on_one_card.insert(on_one_card.end(), static_cast<std::size_t>(request.asks[i].count), pick);
  }
  if (static_cast<int64_t>(on_one_card.size()) <= most) return false;
  return UseOf(request, on_one_card).cards.front().slots > most;
}

}  // namespace

Reason Obstacle(const Inventory& inventory, const Load& load, const PodRequest& request,
                const PlaceRules& rules) {
  if (!IsServed(inventory, request)) return Reason::kNoAgent;
  Reason reason = CheckKeys(inventory, load, request);
  for (const Ask& ask : request.asks) {
    Reason found = Missing(inventory, request, ask, rules);
    const bool share = ask.resource == Resource::kShare;
    if (share && found != Reason::kNoGpu && !ShareAllowed(inventory, request, ask, *rules.policy)) {
      found = Reason::kNoAgent;
    }
    if (BreaksReplicaRule(inventory, ask, *rules.policy)) {
      found = std::min(found, Reason::kOneReplica);
    }
    if (SetsItsOwnPart(inventory, request, ask)) found = std::min(found, Reason::kAgentCannotServe);
    if (found == Reason::kNoRoom) continue;
    if (reason == Reason::kNone || found < reason) reason = found;
  }
  if ((reason == Reason::kNone || reason > Reason::kTooManyPerNode) &&
      ExceedsUserLimits(inventory, request)) {
    return Reason::kTooManyPerNode;
  }
  return reason;
}

}  // namespace tranche
