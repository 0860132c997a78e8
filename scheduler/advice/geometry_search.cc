#include "scheduler/advice/geometry_search.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace tranche {
namespace {

bool IsPlain(std::string_view profile) { return profile.find_first_of("+-") == profile.npos; }

// Some waiter wants several devices at once.
bool WantSeveral(const AdviceCase& fleet, std::span<const std::size_t> waiters) {
  return std::ranges::any_of(waiters, [&fleet](std::size_t waiter) {
    const std::vector<Ask>& asks = fleet.waiting[waiter].request->asks;
    return asks.size() > 1 || asks.front().count > 1;
  });
}

void Remove(std::vector<std::size_t>& from, const std::vector<std::size_t>& these) {
  std::erase_if(from, [&these](std::size_t waiter) {
    return std::ranges::find(these, waiter) != these.end();
  });
}

}  // namespace

GeometrySearch::GeometrySearch(const AdviceCase& fleet, TrialPlacer& placer,
                               const ExpectedDemand& expected, std::span<const std::size_t> waiters)
    : fleet_(&fleet),
      placer_(&placer),
      expected_(&expected),
      waiters_(waiters.begin(), waiters.end()) {}

// Whole first, then cuts into plain profiles and those that somebody asks for.
const std::vector<GeometryChoice>& GeometrySearch::ChoicesFor(const MigBoard& board) {
  const auto [at, is_new] = choices_.try_emplace(&board);
  if (!is_new) return at->second;
  std::vector<bool> wanted(board.profiles.size(), false);
  const auto want = [&](const std::string& name) {
    const MigProfile* profile = FindMigProfile(board, name);
    if (profile != nullptr)
      wanted[static_cast<std::size_t>(profile - board.profiles.data())] = true;
  };
  for (const std::size_t waiter : waiters_) {
    for (const Ask& ask : fleet_->waiting[waiter].request->asks) want(ask.mig.profile);
  }
  for (const DemandRow& row : fleet_->demand) want(row.kind.mig_profile);
  std::vector<int> profiles;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] || IsPlain(board.profiles[i].name)) profiles.push_back(static_cast<int>(i));
  }
  at->second = GeometryChoices(board, profiles);
  // Of equals, what is cut besides is what people ask for.
  std::ranges::stable_sort(at->second, {}, [&wanted](const GeometryChoice& choice) {
    int unwanted = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) unwanted += choice.counts[i];
    }
    return unwanted;
  });
  at->second.insert(at->second.begin(), GeometryChoice{});
  return at->second;
}

std::vector<GeometrySearch::Group> GeometrySearch::GroupsOf(const TrialNode& node,
                                                            std::span<const int> cards) const {
  std::vector<Group> groups;
  for (const int card : cards) {
    const Card& at = node.inventory.cards[static_cast<std::size_t>(card)];
    const MigBoard* board = FindMigBoard(at.product, at.memory);
    const Geometry geometry = GeometryOfCard(node.inventory, card);
    const auto known = std::ranges::find_if(groups, [&](const Group& group) {
      return group.board == board && group.product == at.product && group.geometry == geometry;
    });
    if (known != groups.end()) {
      known->cards.push_back(card);
    } else {
      groups.push_back({board, at.product, geometry, {card}});
    }
  }
  return groups;
}

bool GeometrySearch::IsWorthIt(const Option& option) const {
  if (!option.served.empty()) return true;
  return option.expected_milli > 0 &&
         !expected_->WasWanted(option.group->product, option.group->geometry);
}

std::optional<GeometrySearch::Option> GeometrySearch::BestOption(
    const TrialNode& origin, const TrialNode& node, std::span<const Group> groups,
    std::span<const std::size_t> waiters, int most, std::optional<std::size_t> first) {
  const bool several = WantSeveral(*fleet_, waiters);
  const int64_t served_before = expected_->Gain(origin, node);
  std::optional<Option> best;
  // Served pods a GPU, then expected milli a GPU, then fewer GPUs; of equals the earlier.
  const auto is_better = [&best](const Option& option) {
    if (!best) return true;
    const auto per_gpu = [](int64_t amount, int other_cards) { return amount * other_cards; };
    const int64_t served = per_gpu(std::ssize(option.served), best->cards);
    const int64_t best_served = per_gpu(std::ssize(best->served), option.cards);
    if (served != best_served) return served > best_served;
    const int64_t milli = per_gpu(option.expected_milli, best->cards);
    const int64_t best_milli = per_gpu(best->expected_milli, option.cards);
    if (milli != best_milli) return milli > best_milli;
    return option.cards < best->cards;
  };
  for (const Group& group : groups) {
    const std::vector<int> present = CountsOf(*group.board, group.geometry);
    const int together = several ? std::min(most, static_cast<int>(group.cards.size())) : 1;
    for (const GeometryChoice& choice : ChoicesFor(*group.board)) {
      const bool to_replicas =
          choice.counts.empty() && node.inventory.gpu_unit == GpuUnit::kReplica;
      if (choice.counts == present || to_replicas) continue;
      Option option{&group, &choice, 0, node, {}, 0};
      TrialNode cut = node;
      for (int count = 1; count <= together; ++count) {
        CutCard(*group.board, choice, group.cards[static_cast<std::size_t>(count - 1)], cut);
        option.cards = count;
        option.after = cut;
        option.served.clear();
        std::vector<std::size_t> others(waiters.begin(), waiters.end());
        if (first) {
          if (!placer_->Place(*first, option.after)) continue;
          option.served.push_back(*first);
          std::erase(others, *first);
        }
        const auto placed = placer_->PlaceAll(others, option.after);
        option.served.insert(option.served.end(), placed.begin(), placed.end());
        option.expected_milli = expected_->Gain(origin, option.after) - served_before;
        if (IsWorthIt(option) && is_better(option)) best = option;
      }
    }
  }
  return best;
}

NodeChanges GeometrySearch::Search(const TrialNode& node, std::span<const int> cards,
                                   std::span<const std::size_t> waiters, int most,
                                   std::optional<std::size_t> first) {
  NodeChanges changes{node, {}, {}, 0};
  std::vector<int> left(cards.begin(), cards.end());
  std::vector<std::size_t> waiting(waiters.begin(), waiters.end());
  while (std::ssize(changes.cards) < most) {
    const std::vector<Group> groups = GroupsOf(changes.after, left);
    const int moves = most - static_cast<int>(changes.cards.size());
    auto best = BestOption(node, changes.after, groups, waiting, moves, first);
    if (!best) break;
    first.reset();
    for (int i = 0; i < best->cards; ++i) {
      const int card = best->group->cards[static_cast<std::size_t>(i)];
      changes.cards.push_back({card, best->group->geometry, best->choice->geometry});
      std::erase(left, card);
    }
    Remove(waiting, best->served);
    changes.served.insert(changes.served.end(), best->served.begin(), best->served.end());
    changes.after = std::move(best->after);
  }
  changes.expected_milli = expected_->Gain(node, changes.after);
  std::ranges::sort(changes.cards, {}, &CardChange::card);
  return changes;
}

}  // namespace tranche
