// Mixes of requests for tests of scoring: what arrives, and how often.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/scoring/mix.h"

namespace tranche::test {

// `parts`: a request of one ask and its part of all arrivals, in any unit.
inline Mix MixOf(const std::vector<std::pair<PodRequest, int64_t>>& parts) {
  int64_t all = 0;
  for (const auto& [request, part] : parts) all += part;
  Mix mix;
  mix.version = 1;
  for (const auto& [request, part] : parts) {
    MixType type;
    AppendTypeKey(request, request.asks.front(), request.cpu, type.key);
    type.request = request;
    type.recent = type.lasting = MixLearner::kAll * part / all;
    mix.types.push_back(std::move(type));
  }
  return mix;
}

inline PodRequest WithCpu(PodRequest request, int64_t cpu_milli) {
  request.cpu = MilliCpu::Of(cpu_milli);
  return request;
}

inline PodRequest OnModels(PodRequest request, std::vector<std::string> models) {
  request.models_any = std::move(models);
  return request;
}

// Load of a stock node whose cards have the given milli free, in both dimensions.
inline Load LoadWithFree(const Inventory& inventory, const std::vector<int64_t>& free) {
  Load load;
  load.Reset(inventory);
  for (std::size_t i = 0; i < free.size(); ++i) {
    const int64_t memory = inventory.cards[i].memory.count();
    load.cards[i].milli = MilliGpu::Of(1000 - free[i]);
    load.cards[i].memory = Mebibytes::Of(memory * (1000 - free[i]) / 1000);
    load.cards[i].slots = free[i] < 1000 ? 1 : 0;
  }
  return load;
}

}  // namespace tranche::test
