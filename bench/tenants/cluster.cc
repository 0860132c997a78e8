#include "bench/tenants/cluster.h"

namespace tranche::bench {

std::optional<Placement> FindPlace(std::span<const int> free, int gpus, int first, int last) {
  const auto free_of = [&](int node) { return free[static_cast<std::size_t>(node)]; };
  Placement placement;
  int next = first;  // nodes before it are taken whole, or not free
  while (gpus > kGpusPerNode) {
    while (next < last && free_of(next) < kGpusPerNode) ++next;
    if (next == last) return std::nullopt;
    placement.push_back({next++, kGpusPerNode});
    gpus -= kGpusPerNode;
  }
  std::optional<int> tightest;
  for (int node = first; node < last; ++node) {
    const bool taken = !placement.empty() && node < next && free_of(node) == kGpusPerNode;
    if (taken || free_of(node) < gpus) continue;
    if (!tightest || free_of(node) < free_of(*tightest)) tightest = node;
  }
  if (!tightest) return std::nullopt;
  placement.push_back({*tightest, gpus});
  return placement;
}

}  // namespace tranche::bench
