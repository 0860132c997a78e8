#include "scheduler/app/advice_api.h"

#include <string_view>
#include <utility>

#include "scheduler/app/json_members.h"
#include "topology/base/check.h"

namespace tranche::app {
namespace {

int64_t Seconds(int64_t millis) { return millis / 1000 + (millis % 1000 > 0 ? 1 : 0); }

void AppendTexts(std::string& out, std::string_view key, const std::vector<std::string>& texts) {
  AppendList(out, key, texts,
             [](std::string& text, const std::string& item) { AppendQuoted(text, item); });
}

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

void AppendPart(std::string& out, const SplitPart& part) {
  out += '{';
  AppendMember(out, "use", UseName(part.use));
  AppendMember(out, "gpus", part.gpus);
  if (part.use == SplitPart::Use::kMig) {
    AppendMember(out, "geometry", GeometryText(part.geometry));
  } else {
    AppendNull(out, "geometry");
  }
  AppendMember(out, "replicas", part.replicas);
  AppendMember(out, "serves", part.serves);
  out += '}';
}

void AppendModel(std::string& out, const SplitModel& model) {
  out += '{';
  AppendMember(out, "model", model.model);
  AppendMember(out, "gpus", model.gpus);
  AppendKey(out, "now");
  out += '{';
  AppendMember(out, "whole", model.whole_now);
  AppendMember(out, "mig", model.mig_now);
  AppendMember(out, "timeSliced", model.shared_now);
  out += '}';
  AppendList(out, "parts", model.parts, AppendPart);
  AppendMember(out, "spare", model.spare);
  AppendTexts(out, "shortOf", model.short_of);
  out += '}';
}

void AppendSplit(std::string& out, const SplitAdvice& split) {
  out += '{';
  AppendMember(out, "basis", split.basis);
  AppendList(out, "models", split.models, AppendModel);
  AppendTexts(out, "notes", split.notes);
  out += '}';
}

void AppendStep(std::string& out, const RepartitionStep& step) {
  out += '{';
  AppendMember(out, "gpu", int64_t{step.gpu});
  AppendMember(out, "from", GeometryText(step.from));
  AppendMember(out, "to", GeometryText(step.to));
  out += '}';
}

void AppendNode(std::string& out, const NodeRepartition& node) {
  out += '{';
  AppendMember(out, "node", node.node.str());
  AppendMember(out, "config", node.config_name);
  AppendMember(out, "configYaml", node.config_yaml);
  AppendList(out, "steps", node.steps, AppendStep);
  AppendTexts(out, "guards", node.guards);
  out += '}';
}

void AppendRepartition(std::string& out, const RepartitionPlan& plan) {
  out += '{';
  AppendList(out, "nodes", plan.nodes, AppendNode);
  AppendMember(out, "waitingServed", plan.waiting_served);
  AppendMember(out, "expectedMilli", plan.expected_milli);
  AppendTexts(out, "notes", plan.notes);
  out += '}';
}

void AppendMove(std::string& out, const DefragMove& move) {
  out += '{';
  AppendMember(out, "pod", move.pod.str());
  AppendTextOrNull(out, "leaf", move.leaf);
  AppendTextOrNull(out, "to", move.to.str());
  AppendMember(out, "lostGpuSeconds", Seconds(move.lost_gpu_ms));
  out += '}';
}

void AppendEntry(std::string& out, const DefragEntry& entry) {
  out += '{';
  AppendMember(out, "node", entry.node.str());
  AppendList(out, "gpus", entry.gpus, [](std::string& text, int gpu) { AppendInteger(text, gpu); });
  AppendTextOrNull(out, "profile", entry.profile);
  AppendMember(out, "profileGpu",
               entry.profile.empty() ? std::nullopt : std::optional<int>(entry.gpu));
  AppendList(out, "moves", entry.moves, AppendMove);
  AppendMember(out, "freedMilli", entry.freed_milli);
  AppendMember(out, "lostGpuSeconds", Seconds(entry.lost_gpu_ms));
  AppendMember(out, "waitingServed", entry.waiting_served);
  out += '}';
}

void AppendDefragment(std::string& out, const DefragAdvice& advice) {
  out += '{';
  AppendMember(out, "wholeGpusFree", advice.whole_gpus_free);
  AppendMember(out, "wholeGpusPossible", advice.whole_gpus_possible);
  AppendMember(out, "strandedMilli", advice.stranded_milli);
  AppendList(out, "entries", advice.entries, AppendEntry);
  AppendTexts(out, "notes", advice.notes);
  out += '}';
}

}  // namespace

Advice MakeAdvice(const AdviceCase& fleet) {
  Advice advice;
  advice.at = fleet.now;
  advice.split = AdviseSplit(fleet);
  if (fleet.policy.mig != MigMode::kOff) {
    advice.repartition = PlanRepartition(fleet, kPlanLimits);
  }
  advice.defragment = AdviseDefragmentation(fleet, {});
  return advice;
}

std::string EncodeAdvice(const Advice& advice) {
  std::string out = "{";
  AppendKey(out, "split");
  AppendSplit(out, advice.split);
  AppendKey(out, "repartition");
  if (advice.repartition) {
    AppendRepartition(out, *advice.repartition);
  } else {
    out += "null";
  }
  AppendKey(out, "defragment");
  AppendDefragment(out, advice.defragment);
  AppendMember(out, "at", wire::FormatTime(advice.at));
  out += '}';
  return out;
}

Adviser::Adviser(Look look, Time time) : look_(std::move(look)), time_(std::move(time)) {}

std::shared_ptr<const Advice> Adviser::Get(Age age) {
  const std::lock_guard lock(mutex_);
  const auto now = time_();
  if (!made_ || now - made_at_ >= age) {
    made_ = std::make_shared<const Advice>(MakeAdvice(look_()));
    made_at_ = now;
  }
  return made_;
}

void AddAdviceApi(Adviser& adviser, Router& router) {
  router.Add("GET", "/api/v1/advice",
             [&adviser](const http::Request&, const http::Responder& respond) {
               http::Response response;
               response.body = EncodeAdvice(*adviser.Get(Adviser::kAnswerAge));
               respond(std::move(response));
             });
}

}  // namespace tranche::app
