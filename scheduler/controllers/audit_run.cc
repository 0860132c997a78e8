#include "scheduler/controllers/audit_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

namespace tranche {
namespace {

constexpr std::size_t kShownAtOnce = 1'024;

std::string Describe(const ShownNode& node) {
  return fmt::format("{}{}{} GPUs", node.ready ? "" : "not ready, ",
                     node.cordoned ? "cordoned, " : "", node.gpu ? node.gpu->allocatable : 0);
}

void ComparePod(Engine& engine, const PodUid& uid, ClusterIntake::Place place,
                std::vector<AuditNote>& faults) {
  if (place == 0) return;
  const PodStand stand = engine.StandOf(uid);
  if (!stand.known) {
    faults.push_back(
        {AuditKind::kShownPod, uid.str(),
         fmt::format("the watch shows pod {} on a node, and the books do not have it", uid.str())});
  } else if (!stand.ended && ClusterIntake::PlaceOf(stand.node) != place) {
    faults.push_back(
        {AuditKind::kShownPod, uid.str(),
         fmt::format("the books have pod {} on {}, and the watch shows it on another node",
                     uid.str(), stand.node.empty() ? "no node" : stand.node.str())});
  }
}

void CompareNode(Engine& engine, const NodeName& name, const ShownNode& shown,
                 std::vector<AuditNote>& faults) {
  const NodeFacts* const facts = engine.FactsOf(name);
  if (facts != nullptr && ShownOf(*facts) == shown) return;
  faults.push_back(
      {AuditKind::kShownNode, name.str(),
       fmt::format("the watch shows {} with {}, and the books have {}", name.str(), Describe(shown),
                   facts == nullptr ? "no such node" : Describe(ShownOf(*facts)))});
}

}  // namespace

void AuditRun::StepBooks(Engine& engine) {
  engine.AuditSlice(walk_, found_);
  std::ranges::copy_if(walk_.pods, std::back_inserter(unshown_),
                       [this](const PodUid& uid) { return !host_.cluster.Shows(uid); });
  for (const NodeName& name : walk_.nodes) {
    if (host_.cluster.Shows(name)) continue;
    found_.faults.push_back(
        {AuditKind::kShownNode, name.str(),
         fmt::format("the books have {}, and the watch does not show it", name.str())});
  }
}

void AuditRun::StepShown(Engine& engine) {
  host_.cluster.VisitShown(
      shown_, kShownAtOnce,
      [&](const PodUid& uid, ClusterIntake::Place place) {
        ComparePod(engine, uid, place, found_.faults);
      },
      [&](const NodeName& name, const ShownNode& shown) {
        CompareNode(engine, name, shown, found_.faults);
      });
}

void AuditRun::Finish(Engine& engine, Instant now) {
  const auto stuck = engine.StuckReservations(now, kReservationIsStuck);
  stuck_ = static_cast<int64_t>(stuck.size());
  for (const auto& [uid, node] : stuck) {
    const std::optional<PodView> pod = engine.Pod(uid);
    found_.set_aside.push_back(
        {AuditKind::kStuckReservation, pod ? pod->name.str() : uid.str(),
         fmt::format("reserved on {} for more than {} minutes", node.str(),
                     std::chrono::floor<std::chrono::minutes>(kReservationIsStuck).count())});
  }
  done_ = true;
}

void AuditRun::Trim(std::vector<AuditNote>& notes) {
  if (notes.size() <= kMostNotes) return;
  left_out_ += static_cast<int64_t>(notes.size() - kMostNotes);
  notes.resize(kMostNotes);
}

void AuditRun::Step() {
  if (done_) return;
  host_.engine.With(EngineCaller::kSelfCheck, [this](Engine& engine, Instant now) {
    if (!walk_.done()) return StepBooks(engine);
    if (!shown_.done) return StepShown(engine);
    Finish(engine, now);
  });
  Trim(found_.faults);
  Trim(found_.set_aside);
}

std::vector<std::pair<PodUid, PodName>> AuditRun::Unshown() {
  std::vector<std::pair<PodUid, PodName>> held;
  if (unshown_.empty()) return held;
  const std::vector<std::pair<PodUid, Reason>> waiting =
      host_.engine.Waiting(EngineCaller::kSelfCheck).TakeRefused();
  host_.engine.With(EngineCaller::kSelfCheck, [&](Engine& engine, Instant) {
    for (const PodUid& uid : unshown_) {
      if (held.size() == kMostLookups) break;
      const std::optional<PodView> pod = engine.Pod(uid);
      // What only a filter call named is forgotten without us.
      const bool stays =
          pod && (pod->state == PodState::kBound ||
                  std::ranges::binary_search(waiting, uid, {}, &std::pair<PodUid, Reason>::first));
      if (stays) held.emplace_back(uid, pod->name);
    }
  });
  return held;
}

void AskForPods(PodWrites& pods, const std::vector<std::pair<PodUid, PodName>>& asked,
                const std::function<void(const PodUid&, const PodName&, PodPresence)>& answered) {
  for (const auto& each : asked) {
    // Clang captures no structured bindings yet.
    const PodUid& uid = each.first;
    const PodName& name = each.second;
    pods.GetPod(name, uid, [uid, name, answered](const PodLookup& lookup) {
      const bool there = lookup.pod && lookup.pod->request.uid == uid;
      const bool failed = lookup.kind == PodLookup::Kind::kFailed;
      answered(uid, name,
               failed  ? PodPresence::kUnknown
               : there ? PodPresence::kThere
                       : PodPresence::kMissing);
    });
  }
}

}  // namespace tranche
