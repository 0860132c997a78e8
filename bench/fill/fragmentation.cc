#include "bench/fill/fragmentation.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tranche::bench::fill {

TargetWorkload::TargetWorkload(const Variant& variant) {
  for (const int task : variant.tasks) {
    const TaskType& type = variant.types[static_cast<std::size_t>(task)];
    const auto same = [&](const Kind& kind) {
      return kind.cpu == type.cpu && kind.milli == type.milli && kind.gpus == type.gpus &&
             kind.models == type.models;
    };
    const auto found = std::ranges::find_if(kinds_, same);
    if (found != kinds_.end()) {
      ++found->count;
    } else {
      kinds_.push_back({type.cpu, type.milli, type.gpus, type.models, 1});
    }
  }
  std::ranges::stable_sort(kinds_, std::ranges::greater(), &Kind::count);
  constexpr int64_t kPercent = 95;
  const auto all = static_cast<int64_t>(variant.tasks.size());
  std::size_t kept = 0;
  while (100 * scale_ < kPercent * all) scale_ += kinds_[kept++].count;
  kinds_.resize(kept);
}

int64_t TargetWorkload::Fragmentation(int model, int64_t cpu,
                                      std::span<const int16_t> ascending) const {
  const auto gpus = static_cast<int>(ascending.size());
  std::array<int64_t, kMaxGpus + 1> below{};  // below[i]: sum of the i smallest
  for (std::size_t i = 0; i < ascending.size(); ++i) below[i + 1] = below[i] + ascending[i];
  const int64_t idle = below[ascending.size()];
  if (idle == 0) return 0;
  int64_t sum = 0;
  for (const Kind& kind : kinds_) {
    const bool may = kind.gpus > 0 && kind.cpu <= cpu && (kind.models >> model & 1) != 0;
    int small = 0;
    while (may && small < gpus && ascending[static_cast<std::size_t>(small)] < kind.milli) ++small;
    const bool fits = may && gpus - small >= kind.gpus;
    sum += kind.count * (fits ? below[static_cast<std::size_t>(small)] : idle);
  }
  return sum;
}

int64_t TargetWorkload::Fragmentation(const NodeBook& node) const {
  std::array<int16_t, kMaxGpus> levels = node.free;
  const std::span<int16_t> used(levels.data(), static_cast<std::size_t>(node.gpus));
  std::ranges::sort(used);
  return Fragmentation(node.model, node.cpu, used);
}

}  // namespace tranche::bench::fill
