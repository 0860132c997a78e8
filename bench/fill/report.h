// What the runs of a command showed, as lines for people and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/fill/churn.h"
#include "bench/fill/replay.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

// One policy on one variant; runs are parallel to the seeds.
struct FillResult {
  const Variant* variant = nullptr;
  std::string policy;
  std::vector<FillRun> runs;
};
struct ChurnResult {
  const Variant* variant = nullptr;
  double load = 0;
  std::string policy;
  std::vector<ChurnRun> runs;
};

// Results of one variant (and load) are compared with its result of policy "fgd", where there is
// one.
void PrintFill(const std::vector<FillResult>& results);
nlohmann::json FillJson(const std::vector<FillResult>& results, const std::vector<uint64_t>& seeds);
void PrintChurn(const std::vector<ChurnResult>& results);
nlohmann::json ChurnJson(const std::vector<ChurnResult>& results,
                         const std::vector<uint64_t>& seeds);

// What stands in every JSON run.
nlohmann::json RunHead(const Variant& variant, const std::string& policy,
                       const std::vector<uint64_t>& seeds);

}  // namespace tranche::bench::fill
