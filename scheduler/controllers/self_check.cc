#include "scheduler/controllers/self_check.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tranche {

void SelfCheck::Tick(Instant now) {
  if (now >= ask_again_) AskAgain(now);
  if (!under_way_) {
    const int64_t lists = host_.cluster.pod_lists();
    if (now < due_ && lists == lists_) return;
    // A list that comes while the walk is under way is for the next one.
    lists_ = lists;
    under_way_ = true;
  }
  run_->Step();
  if (run_->done()) Finish(now);
}

void SelfCheck::Finish(Instant now) {
  std::vector<AuditNote>& faults = run_->found().faults;
  if (std::ranges::any_of(faults, [](const AuditNote& fault) { return IsSum(fault.kind); })) {
    host_.engine.With(EngineCaller::kSelfCheck,
                      [&faults](Engine& engine, Instant at) { engine.Mend(faults, at); });
  }
  for (std::size_t i = 0; i < std::min(faults.size(), kMostLines); ++i) {
    spdlog::error("the books do not agree: {}{}", faults[i].text,
                  faults[i].mended ? "; summed again" : "");
  }
  if (faults.size() > kMostLines) {
    spdlog::error("the books do not agree in {} further places", faults.size() - kMostLines);
  }
  std::size_t lines = 0;
  for (const AuditNote& note : run_->found().set_aside) {
    if (note.kind != AuditKind::kStuckReservation || lines++ == kMostLines) continue;
    spdlog::error("pod {}: {}", note.where, note.text);
  }
  {
    const absl::MutexLock lock(&shared_->mutex);
    ++shared_->findings.walks;
    shared_->findings.faults = static_cast<int64_t>(faults.size()) + run_->left_out();
    shared_->findings.stuck_reservations = run_->stuck_reservations();
    shared_->findings.mended += std::ranges::count_if(faults, &AuditNote::mended);
  }
  const auto asked = run_->Unshown();
  run_.emplace(host_);
  under_way_ = false;
  due_ = now + kSelfCheckEvery;
  Ask(asked, now);
}

void SelfCheck::Ask(const std::vector<std::pair<PodUid, PodName>>& pods, Instant now) {
  ask_again_ = now + kAskAgainAfter;
  AskForPods(
      pods_, pods,
      [&host = host_, shared = shared_](const PodUid& uid, const PodName& name, PodPresence found) {
        if (found == PodPresence::kThere) return;
        const bool gone = found == PodPresence::kMissing;
        const bool forgotten =
            gone && host.engine.With(EngineCaller::kSelfCheck, [&](Engine& engine, Instant at) {
              const std::optional<PodView> pod = engine.Pod(uid);
              if (!pod || pod->state == PodState::kReserved) return false;
              engine.DeletePod(uid, at);
              return true;
            });
        if (forgotten) {
          spdlog::error("pod {} ({}) was held in the books, and the API server has none: forgotten",
                        name.str(), uid.str());
        }
        const absl::MutexLock lock(&shared->mutex);
        if (!gone && shared->unanswered.size() < AuditRun::kMostLookups) {
          shared->unanswered.emplace_back(uid, name);
        }
        if (forgotten) ++shared->findings.faults;
      });
}

void SelfCheck::AskAgain(Instant now) {
  std::vector<std::pair<PodUid, PodName>> pods;
  {
    const absl::MutexLock lock(&shared_->mutex);
    pods.swap(shared_->unanswered);
  }
  if (!pods.empty()) Ask(pods, now);
}

SelfCheck::Findings SelfCheck::findings() const {
  const absl::MutexLock lock(&shared_->mutex);
  return shared_->findings;
}

}  // namespace tranche
