#include "scheduler/controllers/scaling/deletion_costs.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

namespace tranche {
namespace {

constexpr const char* kCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr const char* kOurs = "tranche.dev/deletion-cost";

using By = DeletionCostMark::By;

PodMarkWrite WriteOf(const CostChange& change) {
  std::optional<std::string> before;
  std::optional<std::string> after;
  if (change.had.by == By::kUs) before = std::to_string(change.had.cost);
  if (change.cost) after = std::to_string(*change.cost);
  return {change.pod,
          change.uid,
          {{kCost, before, after}, {kOurs, before, after, /*ours_alone=*/true}}};
}

}  // namespace

DeletionCosts::DeletionCosts(PodMarks& pods, metrics::Metrics& metrics, Hooks hooks)
    : pods_(pods), metrics_(metrics), hooks_(std::move(hooks)) {}

void DeletionCosts::Tick(Instant now) {
  if (looked_ && now - *looked_ < kLookEvery) return;
  if (!hooks_.fresh()) return;
  looked_ = now;
  if (hooks_.wanted()) {
    none_left_ = false;
    Mend(hooks_.look());
  } else if (!none_left_) {
    wrong_.clear();
    TakeBack(hooks_.look());
  }
}

void DeletionCosts::Mend(const AdviceCase& fleet) {
  std::set<std::string> wrong;
  int left = kMostWrites;
  for (const ReplicaSetCosts& set : PlanDeletionCosts(fleet)) {
    if (wrong_.contains(set.replica_set)) Write(set.changes, left);
    wrong.insert(set.replica_set);
  }
  wrong_ = std::move(wrong);
}

void DeletionCosts::TakeBack(const AdviceCase& fleet) {
  const std::vector<CostChange> ours = OurDeletionCosts(fleet);
  none_left_ = ours.empty();
  int left = kMostWrites;
  Write(ours, left);
}

void DeletionCosts::Write(const std::vector<CostChange>& changes, int& left) {
  for (const CostChange& change : changes) {
    if (left-- <= 0) return;
    pods_.MarkPod(WriteOf(change),
                  [&metrics = metrics_, pod = change.pod](const WriteResult& result) {
                    const bool done = result.kind == WriteResult::Kind::kDone;
                    metrics.CountDeletionCost(done);
                    if (done) return;
                    spdlog::debug("the deletion cost of pod {} could not be written: code {}: {}",
                                  pod.str(), result.http_code, result.message);
                  });
  }
}

}  // namespace tranche
