#include "scheduler/index/charge_of.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "scheduler/index/eligibility.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche {
namespace {

constexpr Charge kWhole{kQuantaPerGpu, kQuantaPerGpu};
constexpr int kSlicesOfUnknownBoard = 7;
constexpr int64_t kMostUnits = 1'000'000;  // far beyond any node; keeps sums small

Charge Plus(const Charge& left, const Charge& right) {
  return {left.compute + right.compute, left.memory + right.memory};
}
Charge Larger(const Charge& left, const Charge& right) {
  return {std::max(left.compute, right.compute), std::max(left.memory, right.memory)};
}

// One replica of one instance of the pool.
Charge OfPool(const Inventory& inventory, const MigPool& pool) {
  const Mebibytes memory =
      pool.slots.empty() ? Mebibytes::Zero()
                         : inventory.cards[static_cast<std::size_t>(pool.slots[0].card)].memory;
  Charge charge;
  const MigBoard* board = FindMigBoard(inventory.product, memory);
  const MigProfile* profile = board == nullptr ? nullptr : FindMigProfile(*board, pool.profile);
  if (profile != nullptr) {
    charge = ChargeOfMig(*board, *profile);
  } else {
    // The node's labels gave slices and memory of a profile the catalogue lacks.
    const int64_t slices = pool.slots.empty() ? kSlicesOfUnknownBoard : pool.slots[0].size;
    charge.compute = kQuantaPerGpu * slices / kSlicesOfUnknownBoard;
    charge.memory = ChargeOfShare(MilliGpu::Zero(), pool.memory * pool.replicas, memory).memory;
  }
  charge = {charge.compute / pool.replicas, charge.memory / pool.replicas};
  return pool.slots.empty()
             ? charge
             : ChargeOfPart(charge,
                            inventory.cards[static_cast<std::size_t>(pool.slots[0].card)].part);
}

Charge OfInstance(const MigSpace& space, int profile) {
  const MigBoard& board = space.board();
  return ChargeOfMig(board, board.profiles[static_cast<std::size_t>(profile)]);
}

// As if the device were a whole GPU.
Charge OfDevice(const Inventory& inventory, const Ask& ask, const Card& card, MilliGpu milli,
                Mebibytes memory) {
  if (ask.resource != Resource::kShare) {
    if (card.mode != CardMode::kReplicated) return kWhole;
    return inventory.sharing == SharingMethod::kMps ? ChargeOfMpsReplica(inventory.replicas)
                                                    : ChargeOfReplica(inventory.replicas);
  }
  Charge charge = ChargeOfShare(std::min(milli, kWholeGpu), memory, card.memory);
  if (charge.compute == 0) charge.compute = charge.memory;
  return charge;
}

Charge OfCard(const Inventory& inventory, const Ask& ask, const Card& card, MilliGpu milli,
              Mebibytes memory) {
  return ChargeOfPart(OfDevice(inventory, ask, card, milli, memory), card.part);
}

Charge OfPick(const Inventory& inventory, const PodRequest& request, const Pick& pick) {
  if (pick.pool >= 0) {
    return OfPool(inventory, inventory.pools[static_cast<std::size_t>(pick.pool)]);
  }
  if (pick.place.space != nullptr) return OfInstance(*pick.place.space, pick.place.profile);
  return OfCard(inventory, request.asks[static_cast<std::size_t>(pick.ask)],
                inventory.cards[static_cast<std::size_t>(pick.card)], pick.milli, pick.memory);
}

// The most that is held at any time, given what each container holds.
Charge OverLife(const PodRequest& request, const std::vector<Charge>& by_container) {
  Charge running, sidecars, most_init;
  for (std::size_t c = 0; c < by_container.size(); ++c) {
    switch (request.containers[c].role) {
      case ContainerRole::kApp:
        running = Plus(running, by_container[c]);
        break;
      case ContainerRole::kSidecar:
        running = Plus(running, by_container[c]);
        sidecars = Plus(sidecars, by_container[c]);
        break;
      case ContainerRole::kInit:
        most_init = Larger(most_init, Plus(sidecars, by_container[c]));
        break;
    }
  }
  return Larger(running, most_init);
}

std::size_t ContainerOf(const PodRequest& request, const Pick& pick) {
  return static_cast<std::size_t>(request.asks[static_cast<std::size_t>(pick.ask)].container);
}

}  // namespace

std::string ModelOf(const Inventory& inventory, const Card& card) {
  const bool mixed = std::ranges::any_of(
      inventory.cards, [&card](const Card& other) { return other.product != card.product; });
  return mixed ? GpuModelName(BaseProduct(card.product)) : inventory.model;
}

std::vector<ModelCharge> ChargeOfPicks(const Inventory& inventory, const PodRequest& request,
                                       const Picks& picks) {
  // By device: card and, on MIG, instance; those of a cut card by their start.
  std::map<std::tuple<int, int, int>, std::vector<Charge>> devices;
  for (const Pick& pick : picks) {
    int instance = pick.pool >= 0 ? pick.slot : 0;
    if (pick.place.space != nullptr) instance = pick.place.start;
    auto& held = devices[{pick.card, pick.pool, instance}];
    held.resize(request.containers.size());
    Charge& charge = held[ContainerOf(request, pick)];
    charge = Plus(charge, OfPick(inventory, request, pick));
  }
  std::map<std::string, Charge> models;
  for (const auto& [device, held] : devices) {
    const Card& card = inventory.cards[static_cast<std::size_t>(std::get<0>(device))];
    Charge& model = models[LineName(ModelOf(inventory, card), inventory.metered_pool)];
    model = Plus(model, OverLife(request, held));
  }
  std::vector<ModelCharge> parts;
  for (const auto& [model, charge] : models) parts.push_back({model, charge});
  return parts;
}

void ChargeAtMost(const Inventory& inventory, const PodRequest& request,
                  std::vector<ModelCharge>& out) {
  out.clear();
  std::vector<Charge> by_container(request.containers.size());
  for (const Ask& ask : request.asks) {
    Charge unit;
    if (const int pool = PoolFor(inventory, ask); pool >= 0) {
      unit = OfPool(inventory, inventory.pools[static_cast<std::size_t>(pool)]);
    } else {
      const Card* last = nullptr;
      for (const Card& card : inventory.cards) {
        if (!IsRightKind(inventory, ask, card) || !MatchesModels(request, card)) continue;
        // Most nodes have cards of one kind: one of them stands for all. (Of several modes are only
        // those of a node with MIG instances, which are no cards here.)
        const bool alike = last != nullptr && last->memory == card.memory &&
                           last->cut == card.cut && last->part == card.part;
        if (alike) continue;
        const CardNeed need = NeedOn(inventory, ask, card);
        unit = Larger(unit, need.instance == nullptr
                                ? OfCard(inventory, ask, card, need.milli, need.memory)
                                : OfInstance(*card.cut->space, need.instance->profile));
        last = &card;
      }
      if (last == nullptr) return;
    }
    Charge& held = by_container[static_cast<std::size_t>(ask.container)];
    const int64_t count = std::min(ask.count, kMostUnits);
    held = Plus(held, {unit.compute * count, unit.memory * count});
  }
  const Charge most = OverLife(request, by_container);
  if (most == Charge{}) return;
  out.push_back({LineName(inventory.model, inventory.metered_pool), most});
}

}  // namespace tranche
