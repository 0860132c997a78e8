#include "scheduler/controllers/self_check.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace tranche {

void SelfCheck::Tick(Instant now) {
  if (now < due_) return;
  const bool among_nodes = walk_.stage == AuditWalk::Stage::kNodes;
  host_.engine.With(EngineCaller::kSelfCheck,
                    [this](Engine& engine, Instant) { engine.AuditSlice(walk_, faults_); });
  if (among_nodes && walk_.stage == AuditWalk::Stage::kPods) {
    std::ranges::copy_if(walk_.pods, std::back_inserter(unshown_),
                         [this](const PodUid& uid) { return !host_.cluster.Shows(uid); });
  }
  if (walk_.done()) Finish(now);
}

void SelfCheck::Finish(Instant now) {
  const auto stuck = host_.engine.With(EngineCaller::kSelfCheck, [](Engine& engine, Instant at) {
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
  {
    const absl::MutexLock lock(&shared_->mutex);
    ++shared_->findings.walks;
    shared_->findings.faults = static_cast<int64_t>(faults.size());
    shared_->findings.stuck_reservations = static_cast<int64_t>(stuck.size());
  }
  LookUp();
}

void SelfCheck::LookUp() {
  std::vector<std::pair<PodUid, PodName>> asked;
  const std::vector<PodUid> unshown = std::exchange(unshown_, {});
  if (unshown.empty()) return;
  const auto waiting = host_.engine.Waiting(EngineCaller::kSelfCheck).TakeRefused();
  host_.engine.With(EngineCaller::kSelfCheck, [&](Engine& engine, Instant) {
    for (const PodUid& uid : unshown) {
      if (asked.size() == kMostLookups) break;
      const std::optional<PodView> pod = engine.Pod(uid);
      // What only a filter call named is forgotten without us.
      const bool stays =
          pod && (pod->state == PodState::kBound ||
                  std::ranges::binary_search(waiting, uid, {}, &std::pair<PodUid, Reason>::first));
      if (stays) asked.emplace_back(uid, pod->name);
    }
  });
  for (const auto& each : asked) {
    // Clang captures no structured bindings yet.
    const PodUid& uid = each.first;
    const PodName& name = each.second;
    pods_.GetPod(name, uid, [&host = host_, shared = shared_, uid, name](const PodLookup& lookup) {
      if (lookup.kind == PodLookup::Kind::kFailed) return;
      if (lookup.pod && lookup.pod->request.uid == uid) return;
      const bool forgotten =
          host.engine.With(EngineCaller::kSelfCheck, [&](Engine& engine, Instant at) {
            const std::optional<PodView> pod = engine.Pod(uid);
            if (!pod || pod->state == PodState::kReserved) return false;
            engine.DeletePod(uid, at);
            return true;
          });
      if (!forgotten) return;
      spdlog::error("pod {} ({}) was held in the books, and the API server has none: forgotten",
                    name.str(), uid.str());
      const absl::MutexLock lock(&shared->mutex);
      ++shared->findings.faults;
    });
  }
}

SelfCheck::Findings SelfCheck::findings() const {
  const absl::MutexLock lock(&shared_->mutex);
  return shared_->findings;
}

}  // namespace tranche
