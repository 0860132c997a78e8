// The policy "tranche": the engine that answers kube-scheduler, called as the server calls it, with
// the cluster told to it as a watch would.
//
// Nodes with CPU and memory for the task are the candidates, as behind kube-scheduler's own
// filters. The first of filter's answer is taken; pods without GPUs go where prioritize ranks best.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fill/books.h"
#include "bench/fill/placer.h"
#include "bench/fill/trace.h"
#include "policy/spec.h"

namespace tranche::bench::fill {

// Money that counts: GPUPrices, and placement.money (absent: Auto).
struct MoneyRules {
  std::vector<GpuPrice> prices;
  std::optional<int> rate = {};
};

// `books` of an empty cluster. Keeps the variant's reference.
absl::StatusOr<std::unique_ptr<Placer>> MakeEnginePlacer(const Variant& variant, const Books& books,
                                                         const MoneyRules& money = {});

// GPUPrices by model, from a CSV file: model,per_gpu_hour (a decimal with at most six places).
// Errors: NotFound; InvalidArgument naming file and line.
absl::StatusOr<std::vector<GpuPrice>> ReadModelPrices(const std::string& path);

}  // namespace tranche::bench::fill
