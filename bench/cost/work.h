// Work that comes and ends, from the traces or drawn at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::bench::cost {

inline constexpr int64_t kWholeMilli = 1'000;

// One pod, or several that start together and end together where it is larger than a machine.
struct Task {
  int64_t submit = 0;    // s
  int64_t duration = 0;  // s of work
  int gpus = 0;
  int64_t milli = kWholeMilli;  // of each GPU
  int64_t cpu = 0;              // milli, of all of it
  bool interruptible = false;   // bears spot, and writes checkpoints
  std::string models = {};      // it may run on, by tranche.dev/model; empty: any

  double gpu_hours() const {
    return static_cast<double>(gpus * milli) / kWholeMilli * static_cast<double>(duration) / 3600;
  }
};

struct Workload {
  std::string name;
  std::vector<Task> tasks;  // ascending submit
};

// The OpenB list: tasks with GPUs that ever ran. BE and Burstable bear spot.
// Errors: NotFound; InvalidArgument naming file and line.
absl::StatusOr<Workload> ReadOpenb(const std::string& path);
// The Philly extract (bench/tenants/trace.h), on V100. Each job bears spot with a chance of a half.
absl::StatusOr<Workload> ReadPhilly(const std::string& jobs, const std::string& tenants,
                                    uint64_t seed);
// Jobs of 0.25 to 8 GPUs with lives around two hours.
Workload Synthetic(uint64_t seed, int tasks);

}  // namespace tranche::bench::cost
