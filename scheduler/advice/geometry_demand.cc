#include "scheduler/advice/geometry_demand.h"

#include <algorithm>

#include "topology/gpu_model.h"

namespace tranche {
namespace {

// Units of the node that nobody holds.
int64_t FreeUnits(const std::string& models, const std::string& profile, const TrialNode& node) {
  if (!node.origin->open) return 0;
  const Inventory& inventory = node.inventory;
  int64_t units = 0;
  for (std::size_t card = 0; profile.empty() && card < inventory.cards.size(); ++card) {
    units += inventory.cards[card].mode == CardMode::kWhole &&
             AcceptsModel(models, inventory.cards[card].product) &&
             IsIdle(inventory, node.load, static_cast<int>(card));
  }
  for (std::size_t i = 0; i < inventory.pools.size(); ++i) {
    const MigPool& pool = inventory.pools[i];
    if (pool.profile != profile) continue;
    for (std::size_t slot = 0; slot < pool.slots.size(); ++slot) {
      const Card& card = inventory.cards[static_cast<std::size_t>(pool.slots[slot].card)];
      if (card.planned() || !AcceptsModel(models, card.product)) continue;
      units += std::max<int64_t>(pool.replicas - node.load.slots[i][slot], 0);
    }
  }
  return units;
}

// Of one instance, on the first board of the fleet that has the profile; 0: none has.
int64_t MilliOfProfile(const AdviceCase& fleet, const std::string& profile) {
  for (const AdviceNode& node : fleet.nodes) {
    for (const Card& card : node.inventory.cards) {
      const MigBoard* board = FindMigBoard(card.product, card.memory);
      const MigProfile* found = board == nullptr ? nullptr : FindMigProfile(*board, profile);
      if (found != nullptr) return int64_t{1000} * found->compute_slices / board->compute_slices;
      if (&card == &node.inventory.cards.front() && node.inventory.knowledge != Knowledge::kExact) {
        break;  // cards of one product
      }
    }
  }
  return 0;
}

}  // namespace

bool AcceptsModel(std::string_view models, std::string_view product) {
  if (models.empty()) return true;
  while (!models.empty()) {
    const std::size_t comma = std::min(models.find(','), models.size());
    if (MatchesModel(models.substr(0, comma), product)) return true;
    models.remove_prefix(std::min(comma + 1, models.size()));
  }
  return false;
}

ExpectedDemand::ExpectedDemand(const AdviceCase& fleet, const std::vector<TrialNode>& nodes)
    : fleet_(&fleet) {
  for (const DemandRow& row : fleet.demand) {
    const DemandKind& kind = row.kind;
    const bool whole = kind.mig_profile.empty();
    if (whole && kind.milli != kWholeGpu.count()) continue;
    const int64_t pods = (row.mean_milli + row.peak * 1000 + 1999) / 2000 - row.now;
    if (pods <= 0) continue;
    Need need{kind.models, kind.mig_profile, pods * kind.devices, 0, 0};
    need.milli = whole ? kWholeGpu.count() : MilliOfProfile(fleet, kind.mig_profile);
    for (const TrialNode& node : nodes) need.free += FreeUnits(need.models, need.profile, node);
    needs_.push_back(std::move(need));
  }
}

int64_t ExpectedDemand::Gain(const TrialNode& before, const TrialNode& after) const {
  int64_t milli = 0;
  for (const Need& need : needs_) {
    const int64_t more =
        FreeUnits(need.models, need.profile, after) - FreeUnits(need.models, need.profile, before);
    const int64_t served = std::min(need.free, need.units);
    milli += (std::min(need.free + more, need.units) - served) * need.milli;
  }
  return milli;
}

void ExpectedDemand::Commit(const TrialNode& before, const TrialNode& after) {
  for (Need& need : needs_) {
    need.free +=
        FreeUnits(need.models, need.profile, after) - FreeUnits(need.models, need.profile, before);
  }
}

bool ExpectedDemand::WasWanted(std::string_view product, const Geometry& geometry) const {
  return std::ranges::any_of(fleet_->demand, [&](const DemandRow& row) {
    if (row.peak == 0 || !AcceptsModel(row.kind.models, product)) return false;
    if (geometry.profiles.empty()) return row.kind.mig_profile.empty();
    return std::ranges::any_of(geometry.profiles, [&row](const auto& entry) {
      return entry.first == row.kind.mig_profile;
    });
  });
}

}  // namespace tranche
