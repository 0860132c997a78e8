// How often each caller may ask: a steady rate with room for a burst of two seconds of it.
//
// Thread rule: any thread. Cost: one uncontended lock and a look-up.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tranche {

class CallerRates {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kBurst{2};
  // Callers that are told from each other; all others are one.
  static constexpr std::size_t kMostCallers = 4'096;

  // `per_second` 0: everybody may.
  explicit CallerRates(int per_second,
                       std::function<TimePoint()> time = std::chrono::steady_clock::now)
      : per_second_(per_second), time_(std::move(time)) {}

  // nullopt: the caller may, and has used up `cost` questions. Else after how long it may.
  std::optional<std::chrono::seconds> Take(const std::string& caller, int cost);

 private:
  const int per_second_;
  const std::function<TimePoint()> time_;
  absl::Mutex mutex_;
  // When what each has asked is worked off at the steady rate; one in the past says nothing.
  std::map<std::string, TimePoint> done_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
