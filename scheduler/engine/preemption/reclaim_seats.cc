// Where the members of a preemptor go once some units are gone.
#include <algorithm>
#include <utility>

#include "scheduler/engine/preemption/reclaim_case.h"

namespace tranche {

const ReclaimCase::Site& ReclaimCase::SiteOf(NodeId id) {
  const auto [at, fresh] = sites_.try_emplace(id);
  Site& site = at->second;
  if (!fresh) return site;
  site.id = id;
  for (const Holding& holding : cluster_.nodes[id]->state.holdings()) {
    int holder = kStays;
    const bool own = std::ranges::any_of(preemptor_.members, [&](const auto& member) {
      return !member->uid.empty() && member->uid == holding.uid;
    });
    if (own || leaving_.contains(holding.uid)) {
      holder = kGone;
    } else if (const auto number = numbers_.find(holding.uid); number != numbers_.end()) {
      holder = number->second;
    } else if (holding.kind == HoldingKind::kAllocation &&
               leaving_uncounted_.contains(holding.uid)) {
      holder = kGone;
    }
    site.holders.push_back(holder);
  }
  return site;
}

void ReclaimCase::LoadOf(const Site& site, Load& load) const {
  cluster_.nodes[site.id]->state.LoadWhere(
      [&](std::size_t i) {
        const int holder = site.holders[i];
        return holder == kStays || (holder >= 0 && gone_[static_cast<std::size_t>(holder)] == 0);
      },
      load);
}

bool ReclaimCase::Place(std::size_t region, std::vector<Seat>* seats) {
  const std::vector<NodeId>& nodes = regions_[region];
  const RequestContext& context = preemptor_.context;
  PlaceRules rules{context.policy, preemptor_.members.front()->card_choice, -1, context.sharing};
  if (rules.choice == CardChoice::kStrategy) rules.choice = CardChoice::kTightest;
  loads_.resize(std::max(loads_.size(), nodes.size()));
  std::size_t loaded = 0;
  // Where the last member of this shape went: those before were full for it.
  std::size_t from = 0;
  for (std::size_t m = 0; m < preemptor_.members.size(); ++m) {
    const auto& member = preemptor_.members[m];
    if (changes_[m] != 0) from = 0;
    bool seated = false;
    for (std::size_t i = from; i < nodes.size() && !seated; ++i) {
      if (i >= loaded) {
        LoadOf(SiteOf(nodes[i]), loads_[i]);
        loaded = i + 1;
      }
      const NodeState& state = cluster_.nodes[nodes[i]]->state;
      seated = placer_.Place(state.inventory(), loads_[i], *member, rules, picks_) == Reason::kNone;
      if (!seated) continue;
      from = i;
      if (preemptor_.members.size() > 1) state.AddRequest(*member, picks_, loads_[i]);
      if (seats != nullptr) seats->push_back({nodes[i], picks_});
    }
    if (!seated) return false;
  }
  return true;
}

bool ReclaimCase::Fits(std::size_t region, std::span<const int> gone) {
  return WithGone(gone, [&] { return Place(region, nullptr); });
}

std::vector<ReclaimCase::Seat> ReclaimCase::Seats(std::size_t region, std::span<const int> gone) {
  std::vector<Seat> seats;
  WithGone(gone, [&] { return Place(region, &seats); });
  return seats;
}

}  // namespace tranche
