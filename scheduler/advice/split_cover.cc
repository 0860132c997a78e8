#include "scheduler/advice/split_cover.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "topology/base/check.h"

namespace tranche {
namespace {

// Counts of more combinations are made smaller first; what was found is kept up to here.
constexpr int64_t kMostCombinations = 4'000;
constexpr std::size_t kMostKept = 50'000;

int64_t Combinations(const std::vector<int64_t>& counts) {
  int64_t product = 1;
  for (const int64_t count : counts) {
    product *= count + 1;
    if (product > kMostCombinations) break;
  }
  return product;
}

std::vector<int64_t> Less(const std::vector<int64_t>& counts, const std::vector<int>& cut) {
  std::vector<int64_t> rest = counts;
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = std::max<int64_t>(rest[i] - cut[i], 0);
  return rest;
}

bool IsNothing(const std::vector<int64_t>& counts) {
  return std::ranges::all_of(counts, [](int64_t count) { return count == 0; });
}

int64_t CeilOf(int64_t amount, int64_t by) { return (amount + by - 1) / by; }

}  // namespace

CoverFinder::Found& CoverFinder::FoundFor(const Counts& counts) {
  std::vector<bool> wanted;
  std::vector<int> profiles;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    wanted.push_back(counts[i] > 0);
    if (counts[i] > 0) profiles.push_back(static_cast<int>(i));
  }
  const auto [at, is_new] = found_.try_emplace(std::move(wanted));
  Found& found = at->second;
  if (is_new) {
    found.choices = GeometryChoices(*board_, profiles);
    found.order.assign(profiles.begin(), profiles.end());
    std::ranges::stable_sort(found.order, std::greater(), [this](std::size_t profile) {
      const MigProfile& known = board_->profiles[profile];
      return std::pair(known.size, known.compute_slices);
    });
  }
  if (found.best.size() > kMostKept) found.best.clear();
  return found;
}

// Some GPU has to hold an instance of it: only such GPUs need be tried next.
std::size_t CoverFinder::Largest(const Found& found, const Counts& counts) {
  for (const std::size_t profile : found.order) {
    if (counts[profile] > 0) return profile;
  }
  return found.order.front();
}

// Among the choices with the largest profile, the one that leaves least of the GPU unused.
std::size_t CoverFinder::Fullest(const Found& found, const Counts& counts) const {
  const std::size_t largest = Largest(found, counts);
  std::size_t best = found.choices.size();
  int64_t most = 0;
  for (std::size_t choice = 0; choice < found.choices.size(); ++choice) {
    const std::vector<int>& cut = found.choices[choice].counts;
    if (cut[largest] == 0) continue;
    int64_t used = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const MigProfile& profile = board_->profiles[i];
      used += std::min<int64_t>(cut[i], counts[i]) * (profile.size + profile.compute_slices);
    }
    if (used <= most) continue;
    most = used;
    best = choice;
  }
  TRANCHE_CHECK_LT(best, found.choices.size());
  return best;
}

int64_t CoverFinder::LowerBound(const Counts& counts) const {
  int64_t units = 0;
  int64_t compute = 0;
  int64_t bound = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const MigProfile& profile = board_->profiles[i];
    units += counts[i] * profile.size;
    compute += counts[i] * profile.compute_slices;
    bound = std::max(bound, CeilOf(counts[i], profile.max_instances));
  }
  return std::max({bound, CeilOf(units, board_->units), CeilOf(compute, board_->compute_slices)});
}

const CoverFinder::Best& CoverFinder::Exact(Found& found, const Counts& counts) {
  if (const auto known = found.best.find(counts); known != found.best.end()) return known->second;
  Best best;
  if (!IsNothing(counts)) {
    const std::size_t largest = Largest(found, counts);
    for (std::size_t choice = 0; choice < found.choices.size(); ++choice) {
      const std::vector<int>& cut = found.choices[choice].counts;
      if (cut[largest] == 0) continue;
      const int64_t gpus = Exact(found, Less(counts, cut)).gpus + 1;
      if (best.gpus == 0 || gpus < best.gpus) best = {gpus, choice};
    }
    TRANCHE_CHECK_GT(best.gpus, 0);
  }
  return found.best.emplace(counts, best).first->second;
}

InstanceCover CoverFinder::Find(std::span<const int64_t> wanted) {
  Counts counts(wanted.begin(), wanted.end());
  InstanceCover cover;
  if (IsNothing(counts)) return cover;
  cover.at_least = LowerBound(counts);
  Found& found = FoundFor(counts);
  std::map<std::vector<int>, int64_t> cuts;
  while (Combinations(counts) > kMostCombinations) {
    const std::vector<int>& cut = found.choices[Fullest(found, counts)].counts;
    // Half of those it could be used for in full at a time, lest it eats what others need.
    int64_t times = INT64_MAX;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (cut[i] > 0 && counts[i] > 0) times = std::min(times, counts[i] / cut[i] / 2);
    }
    times = std::max<int64_t>(times, 1);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = std::max<int64_t>(counts[i] - cut[i] * times, 0);
    }
    cuts[cut] += times;
  }
  while (!IsNothing(counts)) {
    const std::vector<int>& cut = found.choices[Exact(found, counts).choice].counts;
    ++cuts[cut];
    counts = Less(counts, cut);
  }
  cover.cuts.assign(cuts.begin(), cuts.end());
  for (const auto& [cut, gpus] : cover.cuts) cover.gpus += gpus;
  return cover;
}

}  // namespace tranche
