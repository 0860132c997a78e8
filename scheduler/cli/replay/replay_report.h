// What came of a past that was lived again, beside what happened.
//
// Pure. GPU-hours are decimals of three digits in JSON, money is a decimal of two.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/terminal.h"
#include "scheduler/foresight/replay.h"

namespace tranche::replay {

// One way things went: as they did, again, or again with edits.
struct Course {
  std::string name;  // "happened", "replayed", "edited"
  const LivedPast* lived = nullptr;
  // What nodes offered and cost; of what happened that of the replay.
  const LivedPast* offered = nullptr;
};

struct ReplayReport {
  Instant from;
  Instant until;
  std::vector<Course> courses;  // "happened" and "replayed" first
  int64_t guesses = 0;
  int64_t budgets = 0;
};

// {"from","until","complete","guesses","agreement":{"pods","sameStart","sameNode"},
//  "happened":{...},"replayed":{...},"edited":{...}|null,"currency":"USD"|null,
//  "teams":[{"team","happened":{...},"replayed":{...},"edited":{...}|null}]}, with
// {"pods","started","waitMeanSeconds","waitMedianSeconds","waitP90Seconds","evictions",
//  "lostGpuHours","gpuHours","cost"} of each, and "offeredGpuHours" of all together.
// Errors: as of a bill.
absl::StatusOr<Json> ReportJson(const ReplayReport& report);
// The same for people, from that JSON.
std::string ReportText(const Json& report, const Terminal& terminal);

}  // namespace tranche::replay
