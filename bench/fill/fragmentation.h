// Fragmentation of a node against a target workload, as FGD defines it (USENIX ATC'23): the GPU
// milli that a task drawn from the workload cannot use here, on average.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/fill/books.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

class TargetWorkload {
 public:
  // The most frequent types of the file, memory apart, that together are at least 95 % of its
  // tasks.
  explicit TargetWorkload(const Variant& variant);

  // Milli times scale(). `ascending`: the free milli of the node's GPUs.
  int64_t Fragmentation(int model, int64_t cpu, std::span<const int16_t> ascending) const;
  int64_t Fragmentation(const NodeBook& node) const;
  int64_t scale() const { return scale_; }

 private:
  struct Kind {
    int64_t cpu = 0;
    int64_t milli = 0;
    int gpus = 0;
    ModelSet models = kAnyOfThem;
    int64_t count = 0;
  };
  std::vector<Kind> kinds_;  // descending count
  int64_t scale_ = 0;        // sum of their counts
};

}  // namespace tranche::bench::fill
