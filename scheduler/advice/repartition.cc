// Algorithm: what waits is placed on the room there is; for the rest, nodes are searched one by one
// (geometry_search.h) and the best is taken, until a limit is reached. Nodes where nothing stands
// in the way come first; only where they serve nobody that waits, the others are looked at, as
// advice. A waiting large profile that had a way and would lose it is served first instead.
#include "scheduler/advice/repartition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "scheduler/advice/geometry_config.h"
#include "scheduler/advice/geometry_demand.h"
#include "scheduler/advice/geometry_search.h"
#include "scheduler/advice/geometry_trial.h"
#include "scheduler/index/eligibility.h"

namespace tranche {
namespace {

// Bounds of the search; a plan changes a few GPUs, which serve far fewer.
constexpr std::size_t kMostWaiters = 256;
constexpr std::size_t kMostNodes = 32;

// A node some of whose GPUs may be cut anew.
struct Candidate {
  std::size_t node = 0;
  std::vector<int> cards;
  std::vector<std::string> guards;
};

// Why the node's layout is left alone; empty: it may be changed.
std::string LeftAlone(const TrialNode& node) {
  const AdviceNode& origin = *node.origin;
  if (!origin.has_mig_manager) return "has no mig-manager (label nvidia.com/mig.config)";
  if (!origin.open) return "takes no new pods";
  if (origin.mig_config_state == "pending") {
    return "is being changed (nvidia.com/mig.config.state is pending)";
  }
  if (origin.mig_strategy == MigStrategy::kSingle) {
    return "has nvidia.com/mig.strategy single, where all GPUs are cut alike";
  }
  if (origin.mig_strategy == MigStrategy::kNone) {
    return "has nvidia.com/mig.strategy none, where instances are not offered";
  }
  if (HasUnseenUse(node.load)) return "has pods whose GPUs are not known";
  return "";
}

// Cards that could be cut anew: nobody uses them, and their board and layout are known.
std::vector<int> IdleCards(const TrialNode& node) {
  std::vector<int> cards;
  const Inventory& inventory = node.inventory;
  if (inventory.planned() || inventory.gpu_unit == GpuUnit::kMigDevice) return cards;
  const Card* known = nullptr;  // whose board this is: a search by name, so not for each card
  const MigBoard* board = nullptr;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    const Card& card = inventory.cards[i];
    const int at = static_cast<int>(i);
    if (card.mode != CardMode::kWhole && card.mode != CardMode::kMig) continue;
    if (!IsIdle(inventory, node.load, at)) continue;
    if (known == nullptr || known->product != card.product || known->memory != card.memory) {
      known = &card;
      board = FindMigBoard(card.product, card.memory);
    }
    if (board == nullptr) continue;
    const Geometry geometry = GeometryOfCard(inventory, at);
    if (!geometry.profiles.empty() && CountsOf(*board, geometry).empty()) continue;
    cards.push_back(at);
  }
  return cards;
}

// What forbids carrying the change out, though it would be right.
std::vector<std::string> GuardsOf(const TrialNode& node) {
  std::vector<std::string> guards;
  const Inventory& inventory = node.inventory;
  const Load& load = node.origin->load;
  int64_t busy = 0;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    busy += !IsIdle(inventory, load, static_cast<int>(i));
  }
  if (busy > 0 && inventory.knowledge == Knowledge::kCounts) {
    guards.push_back(
        fmt::format("which {} of the {} GPUs are in use or ill only the device plugin knows", busy,
                    inventory.cards.size()));
  }
  if (node.origin->mig_config_state == "failed") {
    guards.push_back("the last change failed (nvidia.com/mig.config.state)");
  }
  return guards;
}

class Planner {
 public:
  Planner(const AdviceCase& fleet, const RepartitionLimits& limits)
      : fleet_(fleet), limits_(limits), placer_(fleet) {
    for (const AdviceNode& node : fleet.nodes) nodes_.push_back(TrialOf(node));
  }

  RepartitionPlan Plan();

 private:
  struct Chosen {
    std::map<std::size_t, NodeChanges> nodes;  // by node
    int64_t served = 0;
    int64_t expected_milli = 0;
  };

  // Nodes of which something forbids to change the layout now, or the others.
  enum class Guarded : uint8_t { kNo, kYes };

  void PlaceOnFreeRoom();
  void FindCandidates();
  Chosen Choose(Guarded guarded, std::optional<std::size_t> first);
  std::optional<NodeChanges> BestNode(const Chosen& so_far, Guarded guarded,
                                      const std::vector<std::size_t>& waiters,
                                      const ExpectedDemand& expected, int moves,
                                      std::optional<std::size_t> first);
  // A waiting pod of a large profile to which the choice leaves no way, though there was one.
  std::optional<std::size_t> Stranded(const Chosen& chosen, Guarded guarded);
  bool HasWay(std::size_t waiter, const Chosen& chosen, Guarded guarded);
  NodeRepartition StepsOf(const Candidate& candidate, const NodeChanges& changes) const;

  const AdviceCase& fleet_;
  const RepartitionLimits limits_;
  TrialPlacer placer_;
  std::vector<TrialNode> nodes_;  // parallel to fleet_.nodes
  std::vector<std::size_t> unserved_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> notes_;
};

// Everything that quota lets in takes room, however short it has waited. Nodes that could be cut
// come last, so that their GPUs stay idle. Room only shrinks: each kind goes on where it was.
void Planner::PlaceOnFreeRoom() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (fleet_.nodes[i].open) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [this](std::size_t node) {
    return LeftAlone(nodes_[node]).empty() && !IdleCards(nodes_[node]).empty();
  });
  std::vector<std::size_t> reached(placer_.kinds(), 0);
  for (std::size_t waiter = 0; waiter < fleet_.waiting.size(); ++waiter) {
    const AdviceWaiter& pod = fleet_.waiting[waiter];
    if (!pod.quota_allows || pod.request->refusal || pod.request->asks.empty()) continue;
    std::size_t& at = reached[placer_.kind(waiter)];
    while (at < order.size() && !placer_.Place(waiter, nodes_[order[at]])) ++at;
    if (at < order.size() || fleet_.now - pod.since < limits_.patience) continue;
    unserved_.push_back(waiter);
  }
  if (unserved_.size() > kMostWaiters) unserved_.resize(kMostWaiters);
}

void Planner::FindCandidates() {
  std::map<std::string, std::pair<int64_t, NodeName>> left_alone;  // reason -> nodes, the first
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<int> cards = IdleCards(nodes_[i]);
    if (cards.empty()) continue;
    const std::string reason = LeftAlone(nodes_[i]);
    if (reason.empty()) {
      candidates_.push_back({i, std::move(cards), GuardsOf(nodes_[i])});
    } else if (left_alone[reason].first++ == 0) {
      left_alone[reason].second = fleet_.nodes[i].name;
    }
  }
  for (const auto& [reason, nodes] : left_alone) {
    const auto& [count, name] = nodes;
    notes_.push_back(count == 1 ? fmt::format("{} has idle GPUs and {}", name.str(), reason)
                                : fmt::format("{} and {} more have idle GPUs; each {}", name.str(),
                                              count - 1, reason));
  }
  // Those that may serve most kinds of what waits, then with most to choose from.
  std::map<std::size_t, int64_t> suited;
  for (const Candidate& candidate : candidates_) {
    suited[candidate.node] = std::ranges::count_if(unserved_, [&](std::size_t waiter) {
      const Inventory& inventory = nodes_[candidate.node].inventory;
      return placer_.Suited(waiter, fleet_.nodes[candidate.node]) &&
             std::ranges::any_of(candidate.cards, [&](int card) {
               return MatchesModels(*fleet_.waiting[waiter].request,
                                    inventory.cards[static_cast<std::size_t>(card)]);
             });
    });
  }
  std::ranges::stable_sort(candidates_, {}, [&suited](const Candidate& candidate) {
    return std::tuple(!candidate.guards.empty(), -suited[candidate.node],
                      -std::ssize(candidate.cards));
  });
}

std::optional<NodeChanges> Planner::BestNode(const Chosen& so_far, Guarded guarded,
                                             const std::vector<std::size_t>& waiters,
                                             const ExpectedDemand& expected, int moves,
                                             std::optional<std::size_t> first) {
  GeometrySearch search(fleet_, placer_, expected, unserved_);
  std::optional<NodeChanges> best;
  std::size_t looked_at = 0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.guards.empty() == (guarded == Guarded::kYes) ||
        so_far.nodes.contains(candidate.node))
      continue;
    if (++looked_at > kMostNodes) break;
    NodeChanges found =
        search.Search(nodes_[candidate.node], candidate.cards, waiters, moves, first);
    if (found.cards.empty()) continue;
    const auto rank = [](const NodeChanges& changes) {
      return std::tuple(-std::ssize(changes.served), -changes.expected_milli,
                        std::ssize(changes.cards), changes.after.origin->name);
    };
    if (!best || rank(found) < rank(*best)) best = std::move(found);
  }
  return best;
}

Planner::Chosen Planner::Choose(Guarded guarded, std::optional<std::size_t> first) {
  Chosen chosen;
  ExpectedDemand expected(fleet_, nodes_);
  std::vector<std::size_t> waiters = unserved_;
  int moves = limits_.most_moves;
  while (std::ssize(chosen.nodes) < limits_.most_nodes && moves > 0) {
    auto best = BestNode(chosen, guarded, waiters, expected, moves, first);
    if (!best) break;
    first.reset();
    const auto node = static_cast<std::size_t>(best->after.origin - fleet_.nodes.data());
    expected.Commit(nodes_[node], best->after);
    for (const std::size_t waiter : best->served) std::erase(waiters, waiter);
    moves -= static_cast<int>(best->cards.size());
    chosen.served += std::ssize(best->served);
    chosen.expected_milli += best->expected_milli;
    chosen.nodes.emplace(node, std::move(*best));
  }
  return chosen;
}

bool Planner::HasWay(std::size_t waiter, const Chosen& chosen, Guarded guarded) {
  const AdviceCase no_demand;
  const ExpectedDemand nothing(no_demand, {});
  GeometrySearch search(fleet_, placer_, nothing, unserved_);
  const std::vector<std::size_t> alone{waiter};
  return std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
    if (candidate.guards.empty() == (guarded == Guarded::kYes)) return false;
    const auto changed = chosen.nodes.find(candidate.node);
    std::vector<int> cards = candidate.cards;
    if (changed != chosen.nodes.end()) {
      for (const CardChange& change : changed->second.cards) std::erase(cards, change.card);
    }
    const TrialNode& node =
        changed == chosen.nodes.end() ? nodes_[candidate.node] : changed->second.after;
    return !search.Search(node, cards, alone, limits_.most_moves).served.empty();
  });
}

std::optional<std::size_t> Planner::Stranded(const Chosen& chosen, Guarded guarded) {
  std::vector<bool> looked_at(placer_.kinds(), false);
  for (const std::size_t waiter : unserved_) {
    const bool served = std::ranges::any_of(chosen.nodes, [waiter](const auto& entry) {
      return std::ranges::find(entry.second.served, waiter) != entry.second.served.end();
    });
    const bool large =
        std::ranges::any_of(fleet_.waiting[waiter].request->asks, [](const Ask& ask) {
          return std::ranges::any_of(MigBoards(), [&ask](const MigBoard& board) {
            const MigProfile* profile = FindMigProfile(board, ask.mig.profile);
            return profile != nullptr && profile->size * 2 >= board.units;
          });
        });
    if (served || !large || looked_at[placer_.kind(waiter)]) continue;
    looked_at[placer_.kind(waiter)] = true;
    if (HasWay(waiter, Chosen(), guarded) && !HasWay(waiter, chosen, guarded)) return waiter;
  }
  return std::nullopt;
}

NodeRepartition Planner::StepsOf(const Candidate& candidate, const NodeChanges& changes) const {
  NodeRepartition result;
  const Inventory& before = nodes_[candidate.node].inventory;
  result.node = fleet_.nodes[candidate.node].name;
  result.guards = candidate.guards;
  std::vector<Geometry> gpus;
  for (std::size_t card = 0; card < before.cards.size(); ++card) {
    gpus.push_back(GeometryOfCard(before, static_cast<int>(card)));
  }
  for (const CardChange& change : changes.cards) {
    const auto card = static_cast<std::size_t>(change.card);
    gpus[card] = change.to;
    result.steps.push_back({result.node, before.cards[card].index, change.from, change.to});
  }
  NodeConfig config = MigPartedConfig(gpus);
  result.config_name = std::move(config.name);
  result.config_yaml = std::move(config.yaml);
  return result;
}

RepartitionPlan Planner::Plan() {
  PlaceOnFreeRoom();
  FindCandidates();
  const auto choose = [this](Guarded guarded) {
    Chosen chosen = Choose(guarded, std::nullopt);
    if (const auto stranded = Stranded(chosen, guarded)) {
      notes_.push_back(fmt::format("{} goes first: no other GPU could be cut for it",
                                   fleet_.waiting[*stranded].name.str()));
      chosen = Choose(guarded, stranded);
    }
    return chosen;
  };
  Chosen chosen = choose(Guarded::kNo);
  if (chosen.served == 0 && !unserved_.empty()) {
    if (Chosen advice = choose(Guarded::kYes); advice.served > 0) chosen = std::move(advice);
  }
  RepartitionPlan plan;
  plan.waiting_served = chosen.served;
  plan.expected_milli = chosen.expected_milli;
  for (const auto& [node, changes] : chosen.nodes) {
    const auto candidate = std::ranges::find(candidates_, node, &Candidate::node);
    plan.nodes.push_back(StepsOf(*candidate, changes));
  }
  const int64_t unserved = std::ssize(unserved_) - chosen.served;
  if (unserved > 0) {
    notes_.push_back(fmt::format("waiting pods that this plan does not serve: {}", unserved));
  }
  plan.notes = std::move(notes_);
  return plan;
}

}  // namespace

RepartitionPlan PlanRepartition(const AdviceCase& fleet, const RepartitionLimits& limits) {
  return Planner(fleet, limits).Plan();
}

}  // namespace tranche
