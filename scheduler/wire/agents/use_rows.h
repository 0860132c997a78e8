// What Prometheus answers when it is asked how much GPUs are used.
//
// An instant query (`/api/v1/query`) whose rows have the labels of dcgm-exporter: UUID; GPU_I_ID
// where it is of a MIG instance; namespace and pod of the pod that the kubelet says has the GPU, or
// exported_namespace and exported_pod where Prometheus renamed them. What a row measures stands in
// the label `measure`: without it the busiest moment of the GPU, "own" that of the pod alone,
// whoever else uses the GPU, "mean" the whole time, all fractions of 1; "memory" MiB that are in
// use, "temperature" degrees Celsius, "power" watts. Source: facts/node-inventory, Prometheus HTTP
// API v1.
//
// Plain values and pure functions; any thread. Cost: O(text).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/base/ids.h"

namespace tranche::wire {

enum class UseMeasure : uint8_t { kBusiest, kOwn, kMean, kMemory, kCelsius, kWatts };

struct UseRow {
  GpuUuid uuid;          // empty: not told
  std::string instance;  // of MIG; empty: the whole card
  PodName pod;           // empty: not told
  // Permille, 0..1000, more is written as 1000; of memory MiB, degrees, watts: rounded up.
  int64_t amount = 0;
  UseMeasure measure = UseMeasure::kBusiest;
  friend bool operator==(const UseRow&, const UseRow&) = default;
};

inline constexpr std::size_t kMostUseRows = 600'000;

struct UseRows {
  std::vector<UseRow> rows;
  // Rows that say nothing of a GPU or pod, measure something else, or whose value is no number:
  // they are left out.
  int64_t unreadable = 0;
};

// Errors: InvalidArgument with what was expected and found: not the answer of Prometheus, its own
// error, another type than a vector, more than kMostUseRows rows.
absl::StatusOr<UseRows> DecodeUseRows(std::string_view json);

}  // namespace tranche::wire
