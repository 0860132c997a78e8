// What is told of the past, at a start or over a step of the clock.
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"

namespace tranche {

void Engine::Restore(MeterHistory history) { parts_->metering.Restore(std::move(history)); }

void Engine::Recall(std::span<const AskedBefore> pods, Instant now) {
  parts_->Advance(now);
  parts_->demand_notes.Recall(pods, now);
}

void Engine::RestoreUse(const std::vector<RestoredUse>& uses, Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  parts.Advance(now);
  for (const RestoredUse& use : uses) {
    if (use.of == RestoredUse::Of::kBudget) cluster.book.Resume(use.name, use.stand, now);
  }
  // What budgets say of teams has changed.
  parts.ForgetTeams();
  cluster.NoteChange();
}

void Engine::FinishRestore(Instant now) {
  EngineParts& parts = *parts_;
  parts.Advance(now);
  GoOnFromEpochs(parts.cluster, now);
  for (NodeId id{0}; id < parts.cluster.nodes.size(); ++id) {
    if (parts.cluster.nodes[id] != nullptr) parts.metering.OpenUncharged(id, now);
  }
  parts.claim_charges.FinishRestore(now);
  parts.metering.CloseUnclaimed(now);
  parts.metering.Adopt(now);
  parts.claim_charges.Adopt(now);
  ClusterState& cluster = parts.cluster;
  cluster.placeholders.books().Complete(now);
  for (NodeId id{0}; id < cluster.nodes.size(); ++id) {
    if (cluster.nodes[id] != nullptr) cluster.Refresh(id, now);
  }
  parts.runs.Continue(now);
  parts.gangs.Restore(now);
  parts.nominations.KeepAll(now);
  parts.nominations.WithdrawUnexplained(now);
  parts.metering.ForgetGone(parts.claim_charges.Keys());
  parts.PassOnJudged();
  cluster.book.sums().BeginCounting(now);
}

void Engine::StepClock(Instant from, Instant to) {
  parts_->Advance(from);
  parts_->metering.StepClock(from, to);
  parts_->clock_lead.Step(std::chrono::duration_cast<Millis>(to - from));
  parts_->run_limits.Regroup();
  parts_->Advance(to);
}

void Engine::NoteClusterTime(Instant earliest, Instant latest, Instant now) {
  parts_->clock_lead.Note(earliest, latest, now);
}

void Engine::CloseLedger(bool closed) { parts_->rules.CloseLedger(closed); }

void Engine::RestoreReclaims(std::vector<Reclaim> list) { parts_->runs.Restore(std::move(list)); }

}  // namespace tranche
