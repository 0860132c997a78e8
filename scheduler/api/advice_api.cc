#include "scheduler/api/advice_api.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/records/reclaim_json.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

using wire::CeilSeconds;
using wire::Json;
using wire::ListOf;
using wire::TextOrNull;

std::string_view UseName(SplitPart::Use use) {
  switch (use) {
    case SplitPart::Use::kWhole:
      return "whole";
    case SplitPart::Use::kMig:
      return "mig";
    case SplitPart::Use::kTimeSliced:
      return "timeSliced";
  }
  TRANCHE_CHECK(false);
}

Json PartJson(const SplitPart& part) {
  const bool mig = part.use == SplitPart::Use::kMig;
  return {{"use", UseName(part.use)},
          {"gpus", part.gpus},
          {"geometry", mig ? Json(GeometryText(part.geometry)) : Json()},
          {"replicas", part.replicas},
          {"serves", part.serves}};
}

Json ModelJson(const SplitModel& model) {
  return {{"model", model.model},
          {"gpus", model.gpus},
          {"now",
           {{"whole", model.whole_now}, {"mig", model.mig_now}, {"timeSliced", model.shared_now}}},
          {"parts", ListOf(model.parts, PartJson)},
          {"spare", model.spare},
          {"shortOf", model.short_of}};
}

Json StepJson(const RepartitionStep& step) {
  return {{"gpu", step.gpu}, {"from", GeometryText(step.from)}, {"to", GeometryText(step.to)}};
}

Json NodeJson(const NodeRepartition& node) {
  return {{"node", node.node.str()},
          {"config", node.config_name},
          {"configYaml", node.config_yaml},
          {"steps", ListOf(node.steps, StepJson)},
          {"guards", node.guards}};
}

Json RepartitionJson(const RepartitionPlan& plan) {
  return {{"nodes", ListOf(plan.nodes, NodeJson)},
          {"waitingServed", plan.waiting_served},
          {"expectedMilli", plan.expected_milli},
          {"notes", plan.notes}};
}

Json MoveJson(const DefragMove& move) {
  return {{"pod", move.pod.str()},
          {"leaf", TextOrNull(move.leaf)},
          {"to", TextOrNull(move.to.str())},
          {"lostGpuSeconds", CeilSeconds(move.lost_gpu_ms)}};
}

Json EntryJson(const DefragEntry& entry) {
  return {{"node", entry.node.str()},
          {"gpus", entry.gpus},
          {"profile", TextOrNull(entry.profile)},
          {"profileGpu", entry.profile.empty() ? Json() : Json(entry.gpu)},
          {"moves", ListOf(entry.moves, MoveJson)},
          {"freedMilli", entry.freed_milli},
          {"lostGpuSeconds", CeilSeconds(entry.lost_gpu_ms)},
          {"waitingServed", entry.waiting_served}};
}

Json DefragmentJson(const DefragAdvice& advice) {
  return {{"wholeGpusFree", advice.whole_gpus_free},
          {"wholeGpusPossible", advice.whole_gpus_possible},
          {"strandedMilli", advice.stranded_milli},
          {"entries", ListOf(advice.entries, EntryJson)},
          {"notes", advice.notes}};
}

Json EmptiedJson(const EmptiedNode& node) {
  return {{"node", node.node.str()},
          {"gpus", node.gpus},
          {"moves", ListOf(node.moves, MoveJson)},
          {"lostGpuSeconds", CeilSeconds(node.lost_gpu_ms)}};
}

Json RightSizeJson(const RightSize& entry) {
  constexpr int kPerPercent = 10;
  const AskText ask = RequestText(entry.would_do);
  return {{"hours", entry.hours},
          {"busiestHourPercent", (entry.busiest_hour + kPerPercent - 1) / kPerPercent},
          {"memoryMiB", entry.most_memory ? Json(entry.most_memory->count()) : Json()},
          {"unused", entry.unused},
          {"holds", entry.holds},
          {"wouldDo", SizeText(entry.would_do)},
          {"request", {{"key", ask.key}, {"value", ask.value}}},
          {"savedMilli", entry.saved.count()}};
}

Json ListedRightSizeJson(const RightSize& entry) {
  Json json = RightSizeJson(entry);
  json["pod"] = entry.pod.str();
  json["node"] = entry.node.str();
  json["leaf"] = TextOrNull(entry.leaf);
  return json;
}

Json RightSizesJson(const RightSizeAdvice& advice) {
  return {{"measuring", advice.measuring},
          {"measured", advice.measured},
          {"savedMilli", advice.saved.count()},
          {"entries", ListOf(advice.entries, ListedRightSizeJson)},
          {"notes", advice.notes}};
}

}  // namespace

Advice MakeAdvice(const AdviceCase& fleet, const std::optional<UseHistory>& use) {
  Advice advice;
  advice.at = fleet.now;
  advice.split = AdviseSplit(fleet);
  if (fleet.policy.mig != MigMode::kOff) {
    advice.repartition = PlanRepartition(fleet, kPlanLimits);
  }
  advice.defragment = AdviseDefragmentation(fleet, {});
  advice.consolidate = PlanConsolidation(fleet, {});
  if (use) advice.right_sizes = AdviseRightSizes(fleet, *use, {});
  return advice;
}

std::string EncodeAdvice(const Advice& advice) {
  return wire::Dump(
      {{"split",
        {{"basis", advice.split.basis},
         {"models", ListOf(advice.split.models, ModelJson)},
         {"notes", advice.split.notes}}},
       {"repartition", advice.repartition ? RepartitionJson(*advice.repartition) : Json()},
       {"defragment", DefragmentJson(advice.defragment)},
       {"consolidate", ListOf(advice.consolidate, EmptiedJson)},
       {"rightSizes", advice.right_sizes ? RightSizesJson(*advice.right_sizes) : Json()},
       {"at", wire::FormatTime(advice.at)}});
}

std::string EncodeRightSize(const RightSize& entry) {
  Json json = RightSizeJson(entry);
  json["text"] = WordsOf(entry);
  return wire::Dump(json);
}

std::shared_ptr<const RightSize> RightSizeOf(const LatestAdvice& advice, const PodUid& uid) {
  const std::shared_ptr<const Advice> latest = advice ? advice() : nullptr;
  if (!latest || !latest->right_sizes) return nullptr;
  return {latest, FindRightSize(*latest->right_sizes, uid)};
}

Adviser::Adviser(Look look, Use use, Time time)
    : look_(std::move(look)), use_(std::move(use)), time_(std::move(time)) {}

bool Adviser::IsFresh(Age age) const { return made_ && time_() - made_at_ < age; }

std::shared_ptr<const Advice> Adviser::Get(Age age) {
  const absl::MutexLock making(&making_);
  {
    const absl::MutexLock lock(&mutex_);
    if (IsFresh(age)) return made_;
  }
  const auto began = time_();
  auto made = std::make_shared<const Advice>(MakeAdvice(look_(), use_()));
  const absl::MutexLock lock(&mutex_);
  made_ = std::move(made);
  made_at_ = began;
  return made_;
}

std::shared_ptr<const Advice> Adviser::Peek(
    Age age, const std::function<void(std::function<void()>)>& later) {
  std::shared_ptr<const Advice> last;
  {
    const absl::MutexLock lock(&mutex_);
    if (ordered_ || IsFresh(age)) return made_;
    ordered_ = true;
    last = made_;
  }
  later([this, age] {
    {
      // What is ordered from here on finds what is made now.
      const absl::MutexLock lock(&mutex_);
      ordered_ = false;
    }
    Get(age);
  });
  return last;
}

void AddAdviceApi(Adviser& adviser, Router& router) {
  router.AddAnswer("GET", "/api/v1/advice", [&adviser](const http::Request&) {
    return JsonResponse(EncodeAdvice(*adviser.Get(Adviser::kAnswerAge)));
  });
}

}  // namespace tranche
