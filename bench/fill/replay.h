// One run of the fill protocol: tasks arrive one after another at an empty cluster, none leaves,
// one that fits nowhere is dropped for good (USENIX ATC'23, artifact).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fill/books.h"
#include "bench/fill/fragmentation.h"
#include "bench/fill/placer.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

// What a seed fixes; equal for every policy.
struct Deal {
  std::vector<int> order;     // of the machines: node i is machine order[i]
  std::vector<int> arrivals;  // types
};

// `tune`: the tasks ask for this many times the cluster's GPUs. Tasks drawn from the file come
// behind the shuffled file until they do; what the file has too much is taken out of it.
Deal DealFill(const Fleet& fleet, const Variant& variant, double tune, uint64_t seed);

// Position p of a curve: the mean over the moments at which arrivals stood at p percent, of the
// cluster's GPUs. A percent that arrivals jumped over repeats the one before.
using Curve = std::vector<double>;

struct FillRun {
  Curve allocation;  // percent of all GPUs
  Curve ratio;       // fragmentation, percent of what is idle
  Curve amount;      // fragmentation, percent of all GPUs
  std::array<int64_t, kClasses> dropped{};
  int64_t arrived = 0;
  int nodes_at_50 = 0;  // that run something when arrivals reach 50 percent
  double seconds = 0;   // that the policy took
  int64_t looks = 0;    // Placer::looks
};

// Errors: the policy's own; Internal where a placement does not fit, or a task was refused that
// fits somewhere.
absl::StatusOr<FillRun> Replay(const Variant& variant, const TargetWorkload& target,
                               const Deal& deal, Books& books, Placer& placer);

// Asks the policy, checks what it says and takes it up. nullopt: the task is dropped.
absl::StatusOr<std::optional<Placement>> PlaceChecked(const Variant& variant,
                                                      const Arrival& arrival, Books& books,
                                                      Placer& placer, double& seconds);

}  // namespace tranche::bench::fill
