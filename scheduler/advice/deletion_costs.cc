#include "scheduler/advice/deletion_costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "scheduler/advice/defrag_books.h"
#include "scheduler/advice/emptying.h"

namespace tranche {
namespace {

constexpr int32_t kLeaves = -1000;
constexpr int32_t kEmptied = -500;
constexpr int32_t kLittleOfOne = -300;
constexpr int32_t kLittle = -200;
constexpr int32_t kBorrowed = -20;
constexpr int32_t kWholeGpus = -10;

using By = DeletionCostMark::By;

// What the nodes look like to their pods.
class Nodes {
 public:
  explicit Nodes(const AdviceCase& fleet) : states_(fleet.nodes.size()) {
    for (const AdvicePod& pod : fleet.pods) {
      State& state = states_[pod.node];
      const Inventory& inventory = fleet.nodes[pod.node].inventory;
      state.used += MilliOf(pod, inventory);
      state.of_one = state.of_one && !pod.replica_set.empty() &&
                     (state.replica_set.empty() || state.replica_set == pod.replica_set);
      state.replica_set = pod.replica_set;
      state.users.resize(inventory.cards.size());
      for (const std::size_t card : CardsOf(pod)) {
        if (card < state.users.size()) ++state.users[card];
      }
    }
    for (std::size_t n = 0; n < states_.size(); ++n) {
      for (const Card& card : fleet.nodes[n].inventory.cards) {
        states_[n].capacity += card.capacity.count();
      }
      states_[n].emptied = !fleet.nodes[n].open;
    }
    for (const EmptiedNode& entry : PlanConsolidation(fleet, {})) {
      const auto at = std::ranges::lower_bound(fleet.nodes, entry.node, {}, &AdviceNode::name);
      states_[static_cast<std::size_t>(at - fleet.nodes.begin())].emptied = true;
    }
  }

  int32_t CostOf(const AdvicePod& pod) const {
    const State& state = states_[pod.node];
    int32_t cost = pod.borrowed ? kBorrowed : 0;
    const std::set<std::size_t> cards = CardsOf(pod);
    const bool alone = std::ranges::all_of(cards, [&](std::size_t card) {
      return card < state.users.size() && state.users[card] == 1;
    });
    if (alone && !cards.empty() && pod.known) cost += kWholeGpus;
    if (pod.leaves) return cost + kLeaves;
    if (state.emptied) return cost + kEmptied;
    if (state.used * 2 > state.capacity) return cost;
    return cost + (state.of_one ? kLittleOfOne : kLittle);
  }

 private:
  struct State {
    int64_t used = 0;      // milli-GPU
    int64_t capacity = 0;  // milli-GPU
    bool emptied = false;
    bool of_one = true;  // all pods are of one ReplicaSet: the last that was seen
    std::string replica_set;
    std::vector<int> users;  // by card
  };

  static std::set<std::size_t> CardsOf(const AdvicePod& pod) {
    std::set<std::size_t> cards;
    for (const Pick& pick : pod.picks) cards.insert(static_cast<std::size_t>(pick.card));
    return cards;
  }

  std::vector<State> states_;
};

struct Judged {
  const AdvicePod* pod = nullptr;
  int32_t wanted = 0;
  int32_t has() const { return pod->deletion_cost.cost; }
};

// Those that are to go before others do, by what they cost now.
bool OrderHolds(const std::vector<Judged>& ascending) {
  std::optional<int32_t> before;  // the highest cost of those that are to go earlier
  for (std::size_t first = 0; first < ascending.size();) {
    std::size_t last = first;
    int32_t highest = ascending[first].has();
    int32_t lowest = highest;
    for (; last < ascending.size() && ascending[last].wanted == ascending[first].wanted; ++last) {
      highest = std::max(highest, ascending[last].has());
      lowest = std::min(lowest, ascending[last].has());
    }
    if (before && *before >= lowest) return false;
    before = highest;
    first = last;
  }
  return true;
}

CostChange TakenBack(const AdvicePod& pod) {
  return {pod.name, pod.uid, pod.deletion_cost, std::nullopt};
}

std::vector<CostChange> ChangesOf(const std::vector<const AdvicePod*>& pods, const Nodes& nodes) {
  std::vector<CostChange> changes;
  const auto is_theirs = [](const AdvicePod* pod) { return pod->deletion_cost.by == By::kOthers; };
  if (std::ranges::any_of(pods, is_theirs)) {
    for (const AdvicePod* const pod : pods) {
      if (pod->deletion_cost.by == By::kUs) changes.push_back(TakenBack(*pod));
    }
    return changes;
  }
  std::vector<Judged> judged;
  for (const AdvicePod* const pod : pods) judged.push_back({pod, nodes.CostOf(*pod)});
  std::ranges::sort(judged, {},
                    [](const Judged& one) { return std::tuple(one.wanted, one.pod->uid); });
  if (OrderHolds(judged)) return changes;
  for (const Judged& one : judged) {
    if (one.has() == one.wanted) continue;
    CostChange change = TakenBack(*one.pod);
    if (one.wanted != 0) change.cost = one.wanted;
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

std::vector<ReplicaSetCosts> PlanDeletionCosts(const AdviceCase& fleet) {
  std::map<std::string, std::vector<const AdvicePod*>> sets;
  for (const AdvicePod& pod : fleet.pods) {
    if (!pod.replica_set.empty()) sets[pod.replica_set].push_back(&pod);
  }
  // Of one pod there is no order.
  std::erase_if(sets, [](const auto& entry) { return entry.second.size() < 2; });
  std::vector<ReplicaSetCosts> plan;
  if (sets.empty()) return plan;
  const Nodes nodes(fleet);
  for (const auto& [replica_set, pods] : sets) {
    std::vector<CostChange> changes = ChangesOf(pods, nodes);
    if (!changes.empty()) plan.push_back({replica_set, std::move(changes)});
  }
  return plan;
}

std::vector<CostChange> OurDeletionCosts(const AdviceCase& fleet) {
  std::vector<CostChange> changes;
  for (const AdvicePod& pod : fleet.pods) {
    if (pod.deletion_cost.by == By::kUs) changes.push_back(TakenBack(pod));
  }
  return changes;
}

}  // namespace tranche
