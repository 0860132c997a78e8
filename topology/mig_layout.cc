// The search behind LayOutMig: depth first over the instances, largest first, with every state that
// once failed remembered.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "topology/base/check.h"
#include "topology/mig.h"

namespace tranche {
namespace {

// A bound on time: that no layout exists on many GPUs is not proven by trying everything; the
// caller then takes it that there is none.
constexpr int kMaxPlacementsTried = 100'000;

uint64_t RangeOf(const MigProfile& profile, int start) {
  return ((uint64_t{1} << profile.size) - 1) << start;
}

// A board's profiles in search order, each with its starts, the least harmful first.
class SearchOrder {
 public:
  explicit SearchOrder(const MigBoard& board) : profiles_(board.profiles.size()) {
    std::iota(profiles_.begin(), profiles_.end(), size_t{0});
    std::stable_sort(profiles_.begin(), profiles_.end(), [&](size_t left, size_t right) {
      return Weight(board.profiles[left]) > Weight(board.profiles[right]);
    });
    for (const MigProfile& profile : board.profiles) {
      std::vector<int> starts = profile.starts;
      std::stable_sort(starts.begin(), starts.end(), [&](int left, int right) {
        return Harm(board, RangeOf(profile, left)) < Harm(board, RangeOf(profile, right));
      });
      starts_.push_back(std::move(starts));
    }
  }

  const std::vector<size_t>& profiles() const { return profiles_; }
  const std::vector<int>& starts(size_t profile) const { return starts_[profile]; }

 private:
  static std::array<int, 4> Weight(const MigProfile& profile) {
    return {profile.size, profile.compute_slices, profile.media_engines, profile.codec_engines};
  }

  // Units of all the placements that an instance on `range` rules out: a 3g at 4 leaves the 4g its
  // only place, a 3g at 0 does not.
  static int Harm(const MigBoard& board, uint64_t range) {
    int harm = 0;
    for (const MigProfile& profile : board.profiles) {
      for (const int start : profile.starts) {
        if ((RangeOf(profile, start) & range) != 0) harm += profile.size;
      }
    }
    return harm;
  }

  std::vector<size_t> profiles_;
  std::vector<std::vector<int>> starts_;
};

class Search {
 public:
  Search(const MigBoard& board, std::span<const int> counts, int gpus)
      : board_(board), order_(board), gpus_(static_cast<size_t>(gpus)) {
    for (const size_t profile : order_.profiles()) {
      queue_.insert(queue_.end(), static_cast<size_t>(counts[profile]), profile);
    }
  }

  bool Run() { return Place(0); }

  std::vector<std::vector<MigInstance>> TakeResult() {
    std::vector<std::vector<MigInstance>> result;
    for (Gpu& gpu : gpus_) {
      std::sort(gpu.instances.begin(), gpu.instances.end(),
                [](const auto& left, const auto& right) { return left.start < right.start; });
      result.push_back(std::move(gpu.instances));
    }
    return result;
  }

 private:
  struct Gpu {
    std::vector<MigInstance> instances;
    uint64_t taken = 0;
    int media = 0;
    int codecs = 0;

    int CountOf(const MigProfile& profile) const {
      return static_cast<int>(
          std::count_if(instances.begin(), instances.end(),
                        [&](const MigInstance& instance) { return instance.profile == &profile; }));
    }
  };

  // All that the rest of the search can see of a GPU, in one word: units, media, codecs, count.
  // Instances of one profile are placed in a row, so of the profile maxima only the current one's
  // matters.
  using GpuState = uint64_t;
  static GpuState StateOf(const Gpu& gpu, const MigProfile& profile) {
    return gpu.taken | static_cast<uint64_t>(gpu.media) << 32 |
           static_cast<uint64_t>(gpu.codecs) << 40 |
           static_cast<uint64_t>(gpu.CountOf(profile)) << 48;
  }

  bool Fits(const Gpu& gpu, const MigProfile& profile) const {
    return gpu.media + profile.media_engines <= board_.media_engines &&
           gpu.codecs + profile.codec_engines <= board_.codec_engines &&
           gpu.CountOf(profile) < profile.max_instances;
  }

  static void Add(Gpu& gpu, const MigProfile& profile, int start) {
    gpu.instances.push_back({&profile, start});
    gpu.taken |= RangeOf(profile, start);
    gpu.media += profile.media_engines;
    gpu.codecs += profile.codec_engines;
  }

  static void RemoveLast(Gpu& gpu) {
    const MigInstance& last = gpu.instances.back();
    gpu.taken &= ~RangeOf(*last.profile, last.start);
    gpu.media -= last.profile->media_engines;
    gpu.codecs -= last.profile->codec_engines;
    gpu.instances.pop_back();
  }

  // The emptiest GPU first: nodes are mostly cut alike, so an even spread is mostly the layout.
  std::vector<size_t> GpusToTry(const MigProfile& profile) const {
    std::vector<size_t> gpus(gpus_.size());
    std::iota(gpus.begin(), gpus.end(), size_t{0});
    std::stable_sort(gpus.begin(), gpus.end(), [&](size_t left, size_t right) {
      return std::popcount(gpus_[left].taken) < std::popcount(gpus_[right].taken);
    });
    std::set<GpuState> seen;
    std::erase_if(gpus, [&](size_t gpu) {
      return !Fits(gpus_[gpu], profile) || !seen.insert(StateOf(gpus_[gpu], profile)).second;
    });
    return gpus;
  }

  bool Place(size_t next) {
    if (next == queue_.size()) return true;
    const MigProfile& profile = board_.profiles[queue_[next]];
    std::vector<GpuState> state;
    for (const Gpu& gpu : gpus_) state.push_back(StateOf(gpu, profile));
    std::sort(state.begin(), state.end());
    if (failed_.contains({next, state})) return false;

    for (const size_t index : GpusToTry(profile)) {
      Gpu& gpu = gpus_[index];
      for (const int start : order_.starts(queue_[next])) {
        if ((gpu.taken & RangeOf(profile, start)) != 0) continue;
        if (++tried_ > kMaxPlacementsTried) return false;
        Add(gpu, profile, start);
        if (Place(next + 1)) return true;
        RemoveLast(gpu);
      }
    }
    failed_.emplace(next, std::move(state));
    return false;
  }

  const MigBoard& board_;
  const SearchOrder order_;
  std::vector<size_t> queue_;  // profile of every instance still to place, in search order
  std::vector<Gpu> gpus_;
  std::set<std::pair<size_t, std::vector<GpuState>>> failed_;
  int tried_ = 0;
};

// Counts no layout can hold by sums alone; answered before anything is allocated for them.
bool ExceedsTotals(const MigBoard& board, std::span<const int> counts, int64_t gpus) {
  int64_t units = 0;
  int64_t slices = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const MigProfile& profile = board.profiles[i];
    if (counts[i] < 0 || counts[i] > gpus * profile.max_instances) return true;
    units += int64_t{counts[i]} * profile.size;
    slices += int64_t{counts[i]} * profile.compute_slices;
  }
  return units > gpus * board.units || slices > gpus * board.compute_slices;
}

}  // namespace

std::optional<std::vector<std::vector<MigInstance>>> LayOutMig(const MigBoard& board,
                                                               std::span<const int> counts,
                                                               int gpus) {
  TRANCHE_CHECK_EQ(counts.size(), board.profiles.size());
  if (gpus < 0 || ExceedsTotals(board, counts, gpus)) return std::nullopt;
  Search search(board, counts, gpus);
  if (!search.Run()) return std::nullopt;
  return search.TakeResult();
}

}  // namespace tranche
