// How far this machine's clock is from the API server's, as the Date of its answers shows.
//
// A Date is a whole second, and an answer takes time to come: what is told is what the two are
// apart at least. Thread rule: any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tranche::kube {

// "Mon, 23 Nov 2026 16:46:05 GMT". nullopt: it is not written so.
std::optional<std::chrono::sys_seconds> ParseDate(std::string_view text);

class ServerClock {
 public:
  using Wall = std::chrono::system_clock::time_point;
  // From here on it is logged, and that it is over; servers behind one address may differ, so
  // no more than once a minute.
  static constexpr std::chrono::seconds kTooFar{5};
  static constexpr std::chrono::minutes kLogGap{1};

  // One answer: what our clock said before its request and once its head was there, and its Date.
  void Note(Wall asked, Wall answered, std::chrono::sys_seconds date);
  // Ours ahead of theirs; negative: behind. nullopt: there was no answer with a Date yet.
  std::optional<std::chrono::milliseconds> ahead() const;

 private:
  mutable absl::Mutex mutex_;
  std::optional<std::chrono::milliseconds> ahead_ ABSL_GUARDED_BY(mutex_);
  bool too_far_ ABSL_GUARDED_BY(mutex_) = false;  // as logged
  std::optional<Wall> logged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche::kube
