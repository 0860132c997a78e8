#include "scheduler/controllers/self_check.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tranche {

void SelfCheck::Tick(Instant now) {
  if (now < due_) return;
  engine_.With(EngineCaller::kSelfCheck,
               [this](Engine& engine, Instant) { engine.AuditSlice(walk_, faults_); });
  if (walk_.done()) Finish(now);
}

void SelfCheck::Finish(Instant now) {
  const auto stuck = engine_.With(EngineCaller::kSelfCheck, [](Engine& engine, Instant at) {
    return engine.StuckReservations(at, kReservationIsStuck);
  });
  const std::vector<std::string> faults = std::exchange(faults_, {});
  walk_ = AuditWalk();
  due_ = now + kSelfCheckEvery;
  for (std::size_t i = 0; i < std::min(faults.size(), kMostLines); ++i) {
    spdlog::error("the books do not agree with themselves: {}", faults[i]);
  }
  if (faults.size() > kMostLines) {
    spdlog::error("the books do not agree with themselves in {} further places",
                  faults.size() - kMostLines);
  }
  for (std::size_t i = 0; i < std::min(stuck.size(), kMostLines); ++i) {
    spdlog::error("pod {} has been reserved on {} for more than {} minutes", stuck[i].first.str(),
                  stuck[i].second.str(),
                  std::chrono::floor<std::chrono::minutes>(kReservationIsStuck).count());
  }
  const absl::MutexLock lock(&mutex_);
  ++findings_.walks;
  findings_.faults = static_cast<int64_t>(faults.size());
  findings_.stuck_reservations = static_cast<int64_t>(stuck.size());
}

SelfCheck::Findings SelfCheck::findings() const {
  const absl::MutexLock lock(&mutex_);
  return findings_;
}

}  // namespace tranche
