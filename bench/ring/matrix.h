// A machine as the benchmark knows it: bandwidths between GPUs, and rings through them.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/machine/gpu_set.h"
#include "topology/machine/machine.h"

namespace tranche::bench {

inline constexpr int kMostRingGpus = 16;
inline constexpr int kFewestJobGpus = 2;
inline constexpr int kMostJobGpus = 5;

// An order of GPUs; the last is followed by the first.
using RingOrder = std::vector<int>;

// Calls `visit` with each ring through the set, in both directions, starting at its lowest GPU.
template <typename Visit>
void ForEachRing(GpuSet set, const Visit& visit) {
  RingOrder order;
  for (const int gpu : set) order.push_back(gpu);
  do {
    visit(order);
  } while (std::next_permutation(order.begin() + 1, order.end()));
}

class RingMatrix {
 public:
  // N rows of N numbers in GB/s, separated by commas. Errors: InvalidArgument with line and column.
  static absl::StatusOr<RingMatrix> Read(const std::string& file);

  const std::string& name() const { return name_; }  // of the file, without folder and ".csv"
  int size() const { return size_; }
  double bandwidth(int left, int right) const {
    return cells_[static_cast<std::size_t>(left * size_ + right)];
  }
  // A link of this bandwidth is PCIe, not NVLink.
  static bool IsPcie(double bandwidth) { return bandwidth <= 10; }
  // The bandwidth of one NVLink: the smallest that occurs; 0: there is none.
  double one_nvlink() const { return one_nvlink_; }
  // Links instead of bandwidths, in units of one NVLink.
  std::shared_ptr<const Machine> AsMachine() const;

  // Over consecutive pairs, last and first included; two GPUs count their link twice.
  double RingBandwidth(const RingOrder& order) const;
  double Bottleneck(const RingOrder& order) const;
  // The ring of most bandwidth, of equal ones the one with the strongest weakest link.
  const RingOrder& BestRing(GpuSet set) const;
  // The most bandwidth a ring of so many GPUs can have on the idle machine.
  double Ideal(int count) const { return ideal_[static_cast<std::size_t>(count)]; }
  // Sets of so many GPUs of `free`, in ascending order.
  std::vector<GpuSet> Sets(GpuSet free, int count) const;

 private:
  void FindRings();

  std::string name_;
  int size_ = 0;
  std::vector<double> cells_;
  double one_nvlink_ = 0;
  std::vector<RingOrder> best_;  // by the bits of the set; empty: of no job's size
  std::vector<double> ideal_ = std::vector<double>(kMostJobGpus + 1);
};

}  // namespace tranche::bench
