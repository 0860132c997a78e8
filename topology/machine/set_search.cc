#include "topology/machine/set_search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "topology/machine/ring_table.h"

namespace tranche {
namespace {

// Each round exchanges one GPU for another that makes the set better; the bound keeps the cost of a
// call known.
constexpr int kMostExchanges = 8;

// What is compared, most important first; larger is better.
using Worth = std::array<uint64_t, 3>;

struct Ranking {
  GpuSet set;
  Worth worth{};
};

// The first alone decides most comparisons.
uint64_t FirstWorth(const SetQuestion& question, GpuSet set) {
  return question.goal == SetGoal::kConnected ? question.values.ToTake(set)
                                              : question.values.ToKeep(question.free, set).first;
}

Worth WorthOf(const SetQuestion& question, GpuSet set) {
  const uint64_t take = question.values.ToTake(set);
  const KeepValue keep = question.values.ToKeep(question.free, set);
  return question.goal == SetGoal::kConnected ? Worth{take, keep.first, keep.second}
                                              : Worth{keep.first, keep.second, take};
}

int BreachesOf(const Admitted& admitted, GpuSet set) {
  int breaches = (set - admitted.gpus).size();
  for (const int gpu : set) {
    const GpuSet above = set - GpuSet::FirstOf(gpu + 1);
    breaches += (above - admitted.mates[static_cast<std::size_t>(gpu)]).size();
  }
  return breaches;
}

// Calls `visit` for every set of `left` more GPUs of `from` that goes with `chosen`, in the order
// of their lowest GPUs.
template <typename Visit>
void ForEachSet(const std::vector<GpuSet>& mates, GpuSet chosen, GpuSet from, int left,
                const Visit& visit) {
  if (left == 0) {
    visit(chosen);
    return;
  }
  while (from.size() >= left) {
    const int gpu = from.first();
    from.Remove(gpu);
    GpuSet grown = chosen;
    grown.Add(gpu);
    ForEachSet(mates, grown, from & mates[static_cast<std::size_t>(gpu)], left - 1, visit);
  }
}

std::vector<Ranking> EverySet(const SetQuestion& question, const Admitted& admitted,
                              std::size_t most) {
  std::vector<Ranking> best;
  const auto visit = [&](GpuSet set) {
    const bool full = best.size() == most;
    if (full && FirstWorth(question, set) < best.back().worth[0]) return;
    const Worth worth = WorthOf(question, set);
    if (full && worth <= best.back().worth) return;
    if (full) best.pop_back();
    const auto place = std::find_if(best.begin(), best.end(),
                                    [&](const Ranking& ranking) { return ranking.worth < worth; });
    best.insert(place, {set, worth});
  };
  ForEachSet(admitted.mates, GpuSet(), question.free & admitted.gpus, question.count, visit);
  return best;
}

// Adds the GPU with most NVLinks to the set, then with the best paths, each time; nullopt: it came
// to an end too early.
std::optional<GpuSet> Grow(const SetQuestion& question, const Admitted& admitted, int seed) {
  GpuSet set;
  set.Add(seed);
  GpuSet from = question.free & admitted.gpus & admitted.mates[static_cast<std::size_t>(seed)];
  while (set.size() < question.count) {
    std::pair<int, int> most = {-1, -1};
    int next = -1;
    for (const int gpu : from) {
      std::pair<int, int> links = {0, 0};
      for (const int member : set) {
        links.first += question.machine.link(gpu, member).nvlinks;
        links.second += static_cast<int>(question.machine.link(gpu, member).path);
      }
      if (links <= most) continue;
      most = links;
      next = gpu;
    }
    if (next < 0) return std::nullopt;
    set.Add(next);
    from.Remove(next);
    from = from & admitted.mates[static_cast<std::size_t>(next)];
  }
  return set;
}

Ranking BestExchange(const SetQuestion& question, const Admitted& admitted, Ranking best) {
  const GpuSet set = best.set;
  for (const int out : set) {
    for (const int in : (question.free & admitted.gpus) - set) {
      GpuSet changed = set;
      changed.Remove(out);
      changed.Add(in);
      if (BreachesOf(admitted, changed) > 0) continue;
      const Worth worth = WorthOf(question, changed);
      if (worth > best.worth) best = {changed, worth};
    }
  }
  return best;
}

std::optional<GpuSet> BoundedSearch(const SetQuestion& question, const Admitted& admitted) {
  std::optional<Ranking> best;
  for (const int seed : question.free& admitted.gpus) {
    const std::optional<GpuSet> set = Grow(question, admitted, seed);
    if (!set) continue;
    const Worth worth = WorthOf(question, *set);
    if (!best || worth > best->worth) best = Ranking{*set, worth};
    if (question.machine.uniform()) return best->set;
  }
  if (!best) return std::nullopt;
  for (int round = 0; round < kMostExchanges; ++round) {
    const Ranking next = BestExchange(question, admitted, *best);
    if (next.set == best->set) break;
    best = next;
  }
  return best->set;
}

}  // namespace

Admitted AdmittedBy(const Machine& machine, const SetRules& rules) {
  Admitted admitted;
  admitted.mates.resize(static_cast<std::size_t>(machine.size()));
  for (int gpu = 0; gpu < machine.size(); ++gpu) {
    const std::optional<PathClass> nic = NearestNic(machine, gpu);
    const bool near_nic = !rules.nic_floor || (nic && *nic >= *rules.nic_floor);
    if (near_nic && (!rules.one_numa || machine.gpu(gpu).numa)) admitted.gpus.Add(gpu);
    for (int other = 0; other < machine.size(); ++other) {
      if (other == gpu) continue;
      const Link link = machine.link(gpu, other);
      const bool connected = !rules.require_nvlink || link.nvlinks > 0;
      const bool above_floor = !rules.floor || rules.floor->Admits(link);
      const bool together = !rules.one_numa || machine.gpu(gpu).numa == machine.gpu(other).numa;
      if (connected && above_floor && together) {
        admitted.mates[static_cast<std::size_t>(gpu)].Add(other);
      }
    }
  }
  return admitted;
}

std::optional<MissingLink> FirstBreach(const Machine& machine, const Admitted& admitted,
                                       GpuSet set) {
  for (const int gpu : set) {
    if (!admitted.gpus.Has(gpu)) return MissingLink{gpu, gpu, {}};
    for (const int other : set - GpuSet::FirstOf(gpu + 1)) {
      if (admitted.mates[static_cast<std::size_t>(gpu)].Has(other)) continue;
      return MissingLink{gpu, other, machine.link(gpu, other)};
    }
  }
  return std::nullopt;
}

std::vector<GpuSet> BestSets(const SetQuestion& question, const Admitted& admitted,
                             std::size_t most) {
  std::vector<GpuSet> sets;
  if (question.machine.size() > kMostTabledGpus) {
    const std::optional<GpuSet> set = BoundedSearch(question, admitted);
    if (set && most > 0) sets.push_back(*set);
    return sets;
  }
  for (const Ranking& ranking : EverySet(question, admitted, most)) sets.push_back(ranking.set);
  return sets;
}

GpuSet ClosestSet(const SetQuestion& question, const Admitted& admitted) {
  const Admitted everything = AdmittedBy(question.machine, {});
  if (question.machine.size() > kMostTabledGpus) return *BoundedSearch(question, everything);
  std::optional<Ranking> best;
  int fewest = 0;
  const auto visit = [&](GpuSet set) {
    const int breaches = BreachesOf(admitted, set);
    if (best && breaches > fewest) return;
    const Worth worth = WorthOf(question, set);
    if (best && breaches == fewest && worth <= best->worth) return;
    best = Ranking{set, worth};
    fewest = breaches;
  };
  ForEachSet(everything.mates, GpuSet(), question.free, question.count, visit);
  return best->set;
}

}  // namespace tranche
