// Algorithm: every target is valued by what it would free at most for what is lost at least, which
// needs no placement. The best is tried on the working copy: if every pod finds a place it becomes
// an entry, and what it changed is valued anew; if it frees less than thought it is put back with
// what it does free; else it is dropped. So the first entry is the best there is, and each further
// one the best of what is left.
#include "scheduler/advice/defragment.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>
#include <utility>

#include "policy/prices.h"
#include "scheduler/advice/defrag_books.h"
#include "scheduler/advice/defrag_targets.h"
#include "scheduler/advice/rules.h"

namespace tranche {
namespace {

// Bounds what a fleet full of dead ends costs: about a tenth of a second.
constexpr int64_t kMostTrials = 50'000;
constexpr std::size_t kMostNotes = 10;
// Waiting pods looked at for one entry.
constexpr int kMostWaiters = 64;

std::vector<int> SizesOf(const std::vector<RoomDemand>& demands) {
  std::vector<int> sizes;
  for (const RoomDemand& demand : demands) sizes.push_back(demand.gpus);
  return sizes;
}

class Adviser {
 public:
  Adviser(const AdviceCase& fleet, const DefragLimits& limits)
      : fleet_(fleet),
        limits_(limits),
        demands_(RoomDemands(fleet)),
        books_(fleet, SizesOf(demands_)),
        targets_(fleet, books_, demands_, limits),
        served_(fleet.waiting.size(), 0) {}

  DefragAdvice Run() {
    for (RoomDemand& demand : demands_) {
      for (std::size_t n = 0; n < fleet_.nodes.size(); ++n) {
        const CardSet idle = books_.Idle(n) & targets_.Matching(n, demand);
        demand.missing -= std::popcount(idle) / demand.gpus;
      }
    }
    Survey();
    for (std::size_t n = 0; n < fleet_.nodes.size(); ++n) Push(n);
    Choose();
    return std::move(advice_);
  }

 private:
  using Plan = DefragTargets::Plan;
  struct Worse {
    bool operator()(const DefragCandidate& left, const DefragCandidate& right) const {
      return IsBetter(right, left);
    }
  };

  // Fills in what the candidate would free and cost now; false: nothing.
  std::optional<Plan> Value(DefragCandidate& candidate) const {
    std::optional<Plan> plan = targets_.Build(candidate);
    if (!plan) return plan;
    candidate.freed_milli = plan->freed_milli;
    candidate.lost_gpu_ms = plan->lost_gpu_ms;
    candidate.moves = plan->movers.size();
    return plan;
  }

  void Push(std::size_t node) {
    listed_.clear();
    targets_.List(node, listed_);
    for (DefragCandidate& candidate : listed_) {
      if (Value(candidate)) queue_.push(candidate);
    }
  }

  void Choose() {
    while (!queue_.empty() && std::ssize(advice_.entries) < limits_.most_entries) {
      if (books_.trials() > kMostTrials) {
        advice_.notes.push_back(
            fmt::format("the search ended with {} targets not looked at", queue_.size()));
        return;
      }
      DefragCandidate candidate = queue_.top();
      queue_.pop();
      const DefragCandidate before = candidate;
      const std::optional<Plan> plan = Value(candidate);
      if (!plan) continue;
      // Tried before: it is known to free less.
      candidate.freed_milli = std::min(candidate.freed_milli, before.freed_milli);
      if (IsBetter(before, candidate) || IsBetter(candidate, before)) {
        queue_.push(candidate);
        continue;
      }
      Try(candidate, *plan);
    }
  }

  void Try(DefragCandidate candidate, const Plan& plan) {
    const std::size_t node = plan.target.node;
    DefragEntry entry;
    for (const std::size_t pod : plan.movers) {
      const std::optional<std::size_t> to = books_.Move(pod, plan.target);
      if (!to) return books_.Undo();
      const AdvicePod& mover = fleet_.pods[pod];
      entry.moves.push_back(
          {mover.name, mover.uid, mover.leaf, fleet_.nodes[*to].name, mover.lost_gpu_ms});
    }
    const CardSet freed = books_.Idle(node) & ~books_.IdleIn(node, books_.LoadBefore(node));
    const int64_t net = std::popcount(freed) - books_.taken();
    const int64_t gained = candidate.kind == DefragCandidate::Kind::kGpu
                               ? std::min(kWholeGpu.count() * net, candidate.freed_milli)
                               : candidate.freed_milli;
    if (gained <= 0 || net < 0) return books_.Undo();
    if (gained < candidate.freed_milli) {
      books_.Undo();
      candidate.freed_milli = gained;
      return queue_.push(candidate);
    }
    advice_.whole_gpus_possible += net;
    entry.freed_milli = gained;
    entry.lost_gpu_ms = plan.lost_gpu_ms;
    Describe(plan, freed, entry);
    entry.waiting_served = CountServed(node);
    advice_.entries.push_back(std::move(entry));
    if (candidate.kind == DefragCandidate::Kind::kRoom) --demands_[candidate.card].missing;
    books_.Keep(node, plan.target.cards | freed);
    Push(node);
  }

  void Describe(const Plan& plan, CardSet freed, DefragEntry& entry) const {
    const AdviceNode& node = fleet_.nodes[plan.target.node];
    entry.node = node.name;
    if (plan.target.slice) {
      const auto card = static_cast<std::size_t>(std::countr_zero(plan.target.cards));
      const MigBoard& board = node.inventory.cards[card].space->board();
      entry.profile = board.profiles[static_cast<std::size_t>(plan.target.slice->profile)].name;
      entry.gpu = GpuNumber(node, card);
      return;
    }
    for (CardSet left = freed; left != 0; left &= left - 1) {
      entry.gpus.push_back(GpuNumber(node, static_cast<std::size_t>(std::countr_zero(left))));
    }
  }

  // As people see it where it is exact, else as in our books.
  static int GpuNumber(const AdviceNode& node, std::size_t card) {
    const bool exact = node.inventory.knowledge == Knowledge::kExact;
    return exact ? node.inventory.cards[card].index : static_cast<int>(card);
  }

  // Waiting pods that fit the node now and did not before, one after another.
  int64_t CountServed(std::size_t node) {
    const AdviceNode& host = fleet_.nodes[node];
    Load after = books_.load(node);
    int64_t served = 0;
    int looked_at = 0;
    for (std::size_t w = 0; w < fleet_.waiting.size() && looked_at < kMostWaiters; ++w) {
      const AdviceWaiter& waiter = fleet_.waiting[w];
      if (served_[w] != 0 || !waiter.quota_allows) continue;
      ++looked_at;
      const PlaceRules rules = RulesIn(fleet_, *waiter.request, waiter.workload_class);
      if (!books_.MayHost(node, *waiter.request) ||
          placer_.Place(host.inventory, books_.LoadBefore(node), *waiter.request, rules, picks_) ==
              Reason::kNone ||
          placer_.Place(host.inventory, after, *waiter.request, rules, picks_) != Reason::kNone) {
        continue;
      }
      DefragBooks::Add(after, host.inventory, *waiter.request, picks_);
      served_[w] = 1;
      ++served;
    }
    return served;
  }

  // What is free now, and what is nearly so but held by pods that have to stay.
  void Survey() {
    std::vector<std::tuple<int64_t, std::size_t, std::size_t>> held;  // -free, node, card
    for (std::size_t n = 0; n < fleet_.nodes.size(); ++n) {
      advice_.whole_gpus_free += std::popcount(books_.Idle(n));
      for (CardSet left = books_.PartlyUsed(n); left != 0; left &= left - 1) {
        const auto c = static_cast<std::size_t>(std::countr_zero(left));
        const MilliGpu capacity = fleet_.nodes[n].inventory.cards[c].capacity;
        const int64_t free = (capacity - books_.load(n).cards[c].milli).count();
        advice_.stranded_milli += free;
        if (free * 4 >= capacity.count() * 3) held.emplace_back(-free, n, c);
      }
    }
    advice_.whole_gpus_possible = advice_.whole_gpus_free;
    std::ranges::sort(held);
    for (const auto& [free, n, c] : held) {
      if (advice_.notes.size() == kMostNotes) return;
      for (const std::size_t pod : targets_.PodsOn(n, OneCard(c))) {
        const std::string why = targets_.WhyFixed(pod);
        if (why.empty()) continue;
        advice_.notes.push_back(
            fmt::format("{} GPU {}: {} of {} are free, held by {}: {}", fleet_.nodes[n].name.str(),
                        GpuNumber(fleet_.nodes[n], c), FormatMicros(-free * 1000),
                        FormatMicros(fleet_.nodes[n].inventory.cards[c].capacity.count() * 1000),
                        fleet_.pods[pod].name.str(), why));
        break;
      }
    }
  }

  const AdviceCase& fleet_;
  const DefragLimits limits_;
  std::vector<RoomDemand> demands_;
  DefragBooks books_;
  DefragTargets targets_;
  std::vector<char> served_;  // waiting pods that an entry serves
  std::priority_queue<DefragCandidate, std::vector<DefragCandidate>, Worse> queue_;
  std::vector<DefragCandidate> listed_;
  DefragAdvice advice_;
  Placer placer_;
  Picks picks_;
};

}  // namespace

DefragAdvice AdviseDefragmentation(const AdviceCase& fleet, const DefragLimits& limits) {
  return Adviser(fleet, limits).Run();
}

}  // namespace tranche
