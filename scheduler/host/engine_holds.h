// How long callers held the engine: while one does, every other one waits.
//
// A plain value, externally synchronised (EngineHost keeps one under its lock). Cost: a few
// additions a hold.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "scheduler/metrics/metrics.h"

namespace tranche {

// On whose behalf the engine is held.
enum class EngineCaller : uint8_t {
  kFilter,
  kPrioritize,
  kPreempt,
  kBind,
  kAdmission,
  kEvents,    // nodes, pods, claims: what the cluster tells
  kPolicies,  // what administrators declare
  kTick,      // what time makes due
  kPlan,
  kLearn,
  kStatus,  // what is written into objects
  kMetrics,
  kPages,  // what people ask
  kWhatIf,
  kAdvice,
  kForesight,  // copies for forecasts and plans
  kLedger,
  kSelfCheck,
  kStart,  // taking up the past, before anybody is served
  kOther,
  kCount
};
std::string_view EngineCallerName(EngineCaller caller);  // "filter", ...
// The API server or kube-scheduler waits for the answer, and a pod behind it.
constexpr bool IsVerb(EngineCaller caller) { return caller <= EngineCaller::kAdmission; }

class EngineHolds {
 public:
  // Nothing the engine does may take longer: kube-scheduler asks about one pod after another.
  static constexpr std::chrono::milliseconds kLong{20};
  static constexpr std::chrono::minutes kLogGap{1};
  // A filter call that waits for such a hold takes about five times as long as one that does not.
  static constexpr std::chrono::microseconds kFelt{300};
  using Moment = std::chrono::steady_clock::time_point;

  // True: it was long, and is to be told of; at most once in kLogGap.
  bool Note(EngineCaller caller, Moment from, Moment until);
  // One for each caller that held it.
  std::vector<metrics::HoldRow> Rows() const;

 private:
  struct Sum {
    int64_t holds = 0;
    int64_t felt_holds = 0;
    int64_t long_holds = 0;
    std::chrono::nanoseconds total{0};
    std::chrono::nanoseconds longest{0};
  };
  std::array<Sum, static_cast<std::size_t>(EngineCaller::kCount)> sums_;
  Moment told_ = Moment::min();
};

}  // namespace tranche
