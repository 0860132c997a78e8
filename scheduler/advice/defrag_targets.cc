#include "scheduler/advice/defrag_targets.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "quota/tree/limits.h"
#include "topology/base/int128.h"
#include "topology/gpu_model.h"

namespace tranche {
namespace {

constexpr std::size_t kMostDemands = 8;

std::vector<std::string> SplitModels(std::string_view text) {
  std::vector<std::string> models;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    models.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return models;
}

bool WantsRoom(const DemandKind& kind) {
  return kind.mig_profile.empty() && kind.devices >= 2 && kind.devices <= kMaxCards &&
         kind.milli == kWholeGpu.count();
}

// Which card a replica is on is the device plugin's choice, which it tells nobody: only all
// replicated GPUs of such a node are free for certain, once all their pods are gone.
bool CardsUncertain(const Inventory& inventory) {
  return inventory.gpu_unit == GpuUnit::kReplica && inventory.knowledge == Knowledge::kCounts;
}

// The plain profiles that take half of a board or more, of those that the node advertises.
std::vector<int> LargeProfiles(const Inventory& inventory) {
  const MigBoard& board = inventory.cards.front().space->board();
  std::vector<int> large;
  for (std::size_t p = 0; p < board.profiles.size(); ++p) {
    const MigProfile& profile = board.profiles[p];
    const bool plain = profile.name.find_first_of("+-") == std::string_view::npos;
    const bool advertised = std::ranges::find(inventory.pools, static_cast<int>(p),
                                              &MigPool::planned_profile) != inventory.pools.end();
    if (plain && advertised && profile.size * 2 >= board.units) {
      large.push_back(static_cast<int>(p));
    }
  }
  return large;
}

}  // namespace

std::vector<RoomDemand> RoomDemands(const AdviceCase& fleet) {
  struct Wanted {
    int64_t by_pods = 0;
    int64_t by_rows = 0;
  };
  std::map<std::pair<int64_t, std::string>, Wanted> wanted;  // negative GPUs: most first
  for (const AdviceWaiter& waiter : fleet.waiting) {
    if (!waiter.quota_allows) continue;
    for (const DemandKind& kind : KindsOf(*waiter.request, waiter.workload_class)) {
      if (WantsRoom(kind)) ++wanted[{-kind.devices, kind.models}].by_pods;
    }
  }
  for (const DemandRow& row : fleet.demand) {
    if (!WantsRoom(row.kind)) continue;
    const int64_t running = row.now - row.waiting;
    wanted[{-row.kind.devices, row.kind.models}].by_rows +=
        std::max<int64_t>(row.peak - running, 0);
  }
  std::vector<RoomDemand> demands;
  for (const auto& [key, amounts] : wanted) {
    const int64_t missing = std::max(amounts.by_pods, amounts.by_rows);
    if (missing == 0 || demands.size() == kMostDemands) continue;
    demands.push_back({static_cast<int>(-key.first), SplitModels(key.second), missing});
  }
  return demands;
}

bool IsBetter(const DefragCandidate& left, const DefragCandidate& right) {
  const Int128 ours = Int128{left.freed_milli} * right.lost_gpu_ms;
  const Int128 theirs = Int128{right.freed_milli} * left.lost_gpu_ms;
  if (ours != theirs) return ours > theirs;
  const auto rest = [](const DefragCandidate& candidate) {
    return std::tuple(candidate.moves, candidate.node, candidate.card, candidate.kind,
                      candidate.profile);
  };
  return rest(left) < rest(right);
}

CardSet DefragTargets::Matching(std::size_t node, const RoomDemand& demand) const {
  const AdviceNode& host = books_.node(node);
  if (host.inventory.gpu_unit != GpuUnit::kCard) return 0;
  CardSet matching = 0;
  for (std::size_t c = 0; c < host.inventory.cards.size(); ++c) {
    const std::string& product = host.inventory.cards[c].product;
    const bool matches =
        demand.models.empty() || std::ranges::any_of(demand.models, [&](const std::string& model) {
          return MatchesModel(model, product);
        });
    if (matches) matching |= OneCard(c);
  }
  return matching & books_.usable(node);
}

std::string DefragTargets::WhyFixed(std::size_t at) const {
  const AdvicePod& pod = fleet_.pods[at];
  if (!pod.known) return "its devices are unknown";
  if (!pod.evictable) return "it is not to be evicted";
  if (!pod.request->gang.empty()) return "its gang " + pod.request->gang + " would go with it";
  if (pod.picks.empty()) return "its devices are unknown";
  return "";
}

bool DefragTargets::AllMove(const std::vector<std::size_t>& pods) const {
  return pods.size() <= static_cast<std::size_t>(limits_.most_moves_per_entry) &&
         std::ranges::all_of(pods, [this](std::size_t pod) { return WhyFixed(pod).empty(); });
}

std::vector<std::size_t> DefragTargets::PodsOn(std::size_t node, CardSet cards) const {
  std::vector<std::size_t> pods;
  const Inventory& inventory = books_.node(node).inventory;
  const auto [first, last] = books_.pods_of(node);
  for (std::size_t p = first; p < last; ++p) {
    if (books_.moved(p)) continue;
    const PodUse& use = fleet_.pods[p].use;
    CardSet used = 0;
    for (const CardUse& card : use.cards) used |= OneCard(static_cast<std::size_t>(card.card));
    for (const InstanceUse& instance : use.instances) {
      const MigPool& pool = inventory.pools[static_cast<std::size_t>(instance.pool)];
      const MigSlot& slot = pool.slots[static_cast<std::size_t>(instance.slot)];
      used |= OneCard(static_cast<std::size_t>(slot.card));
    }
    if ((used & cards) != 0) pods.push_back(p);
  }
  return pods;
}

int64_t DefragTargets::Lost(const std::vector<std::size_t>& pods) const {
  int64_t lost = 0;
  for (const std::size_t pod : pods) lost = AddSaturating(lost, fleet_.pods[pod].lost_gpu_ms);
  return lost;
}

CardSet DefragTargets::FreedBy(std::size_t node, const std::vector<std::size_t>& movers) const {
  return books_.IdleIn(node, books_.LoadWithout(node, movers)) & ~books_.Idle(node);
}

DefragTargets::Plan DefragTargets::Finish(Plan plan) const {
  plan.lost_gpu_ms = Lost(plan.movers);
  const Inventory& inventory = books_.node(plan.target.node).inventory;
  std::ranges::stable_sort(plan.movers, std::greater<>(),
                           [&](std::size_t pod) { return MilliOf(fleet_.pods[pod], inventory); });
  return plan;
}

void DefragTargets::List(std::size_t node, std::vector<DefragCandidate>& out) const {
  using Kind = DefragCandidate::Kind;
  const Inventory& inventory = books_.node(node).inventory;
  const CardSet partly = books_.PartlyUsed(node) & ~books_.promised(node);
  for (CardSet left = partly; left != 0; left &= left - 1) {
    out.push_back({.kind = Kind::kGpu,
                   .node = node,
                   .card = static_cast<std::size_t>(std::countr_zero(left))});
    if (CardsUncertain(inventory)) break;
  }
  for (std::size_t d = 0; d < demands_.size() && books_.usable(node) != 0; ++d) {
    out.push_back({.kind = Kind::kRoom, .node = node, .card = d});
  }
  if (!inventory.planned() || !books_.node(node).open) return;
  const std::vector<int> large = LargeProfiles(inventory);
  for (std::size_t c = 0; c < inventory.cards.size(); ++c) {
    for (const int profile : large) {
      out.push_back({.kind = Kind::kSlice, .node = node, .card = c, .profile = profile});
    }
  }
}

std::optional<DefragTargets::Plan> DefragTargets::Build(const DefragCandidate& candidate) const {
  switch (candidate.kind) {
    case DefragCandidate::Kind::kGpu:
      return BuildGpu(candidate);
    case DefragCandidate::Kind::kRoom:
      return BuildRoom(candidate);
    case DefragCandidate::Kind::kSlice:
      return BuildSlice(candidate);
  }
  return std::nullopt;
}

std::optional<DefragTargets::Plan> DefragTargets::BuildGpu(const DefragCandidate& candidate) const {
  const std::size_t node = candidate.node;
  Plan plan;
  plan.target = {node, OneCard(candidate.card), std::nullopt};
  if (CardsUncertain(books_.node(node).inventory)) {
    plan.target.cards = books_.usable(node) & ~books_.Idle(node);
  }
  const bool partly = (books_.PartlyUsed(node) & OneCard(candidate.card)) != 0;
  if (!partly || (plan.target.cards & books_.promised(node)) != 0) return std::nullopt;
  plan.movers = PodsOn(node, plan.target.cards);
  if (plan.movers.empty() || !AllMove(plan.movers)) return std::nullopt;
  const CardSet freed = FreedBy(node, plan.movers);
  // Somebody else is there: moved in by an entry, or an earmark.
  if ((plan.target.cards & ~freed) != 0) return std::nullopt;
  plan.freed_milli = kWholeGpu.count() * std::popcount(freed);
  return Finish(std::move(plan));
}

// Adds the cheapest card after the other; then leaves out pods that turn out not to be needed.
std::optional<DefragTargets::Plan> DefragTargets::BuildRoom(
    const DefragCandidate& candidate) const {
  const RoomDemand& demand = demands_[candidate.card];
  const std::size_t node = candidate.node;
  const CardSet cards = Matching(node, demand) & ~books_.promised(node);
  const CardSet idle = books_.Idle(node) & cards;
  if (demand.missing <= 0 || std::popcount(idle) >= demand.gpus ||
      std::popcount(cards) < demand.gpus) {
    return std::nullopt;
  }
  std::vector<std::tuple<int64_t, std::size_t, std::size_t>> order;  // lost, pods, card
  for (CardSet left = cards & ~idle; left != 0; left &= left - 1) {
    const auto card = static_cast<std::size_t>(std::countr_zero(left));
    const std::vector<std::size_t> pods = PodsOn(node, OneCard(card));
    if (!pods.empty() && AllMove(pods)) order.emplace_back(Lost(pods), pods.size(), card);
  }
  std::ranges::sort(order);
  Plan plan;
  CardSet chosen = 0;
  const auto enough = [&](const std::vector<std::size_t>& movers) {
    return std::popcount(idle | (FreedBy(node, movers) & cards)) >= demand.gpus;
  };
  for (const auto& [lost, pods, card] : order) {
    chosen |= OneCard(card);
    plan.movers = PodsOn(node, chosen);
    if (!AllMove(plan.movers) || enough(plan.movers)) break;
  }
  if (!AllMove(plan.movers) || !enough(plan.movers)) return std::nullopt;
  std::vector<std::size_t> dearest = plan.movers;
  std::ranges::stable_sort(dearest, std::greater<>(),
                           [this](std::size_t pod) { return fleet_.pods[pod].lost_gpu_ms; });
  for (const std::size_t pod : dearest) {
    std::vector<std::size_t> fewer = plan.movers;
    std::erase(fewer, pod);
    if (enough(fewer)) plan.movers = std::move(fewer);
  }
  plan.target = {node, idle | (FreedBy(node, plan.movers) & cards), std::nullopt};
  plan.freed_milli = kWholeGpu.count() * demand.gpus;
  return Finish(std::move(plan));
}

// The pods whose instances lie on the units of the profile put at `start`.
std::optional<DefragSlice> DefragTargets::SliceFreedBy(const DefragCandidate& candidate, int start,
                                                       std::vector<std::size_t>& movers) const {
  const Inventory& inventory = books_.node(candidate.node).inventory;
  const MigSpace& space = *inventory.cards[candidate.card].space;
  const int size = space.board().profiles[static_cast<std::size_t>(candidate.profile)].size;
  movers = PodsOn(candidate.node, OneCard(candidate.card));
  std::erase_if(movers, [&](std::size_t pod) {
    return std::ranges::none_of(fleet_.pods[pod].use.instances, [&](const InstanceUse& use) {
      const MigSlot& slot = inventory.pools[static_cast<std::size_t>(use.pool)]
                                .slots[static_cast<std::size_t>(use.slot)];
      return slot.card == static_cast<int>(candidate.card) && slot.start < start + size &&
             start < slot.start + slot.size;
    });
  });
  if (movers.empty() || !AllMove(movers)) return std::nullopt;
  const Load after = books_.LoadWithout(candidate.node, movers);
  if (!space.With(after.cards[candidate.card].layout, candidate.profile, start)) {
    return std::nullopt;
  }
  return DefragSlice{candidate.profile, start};
}

std::optional<DefragTargets::Plan> DefragTargets::BuildSlice(
    const DefragCandidate& candidate) const {
  const std::size_t node = candidate.node;
  const Card& card = books_.node(node).inventory.cards[candidate.card];
  const CardLoad& load = books_.load(node).cards[candidate.card];
  const bool closed = !card.healthy || card.cordoned || load.layout_broken ||
                      books_.load(node).devices_unknown ||
                      (books_.promised(node) & OneCard(candidate.card)) != 0;
  if (closed || !card.space->steps(load.layout, candidate.profile).empty()) return std::nullopt;
  const MigBoard& board = card.space->board();
  const MigProfile& profile = board.profiles[static_cast<std::size_t>(candidate.profile)];
  std::optional<Plan> best;
  for (const int start : profile.starts) {
    Plan plan;
    plan.target = {node, OneCard(candidate.card), SliceFreedBy(candidate, start, plan.movers)};
    if (!plan.target.slice) continue;
    plan.freed_milli = kWholeGpu.count() * profile.compute_slices / board.compute_slices;
    plan = Finish(std::move(plan));
    const auto rank = [](const Plan& some) {
      return std::pair(some.lost_gpu_ms, some.movers.size());
    };
    if (!best || rank(plan) < rank(*best)) best = std::move(plan);
  }
  return best;
}

}  // namespace tranche
