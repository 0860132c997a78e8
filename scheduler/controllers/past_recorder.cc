#include "scheduler/controllers/past_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <variant>

#include "scheduler/wire/records/allocation_json.h"
#include "scheduler/wire/records/past_object.h"

namespace tranche {
namespace {

// What decides where pods go and may be written by administrators alone.
constexpr std::string_view kKinds[] = {"GPUQuota", "GPUBudget", "GPUClass",  "GPUPolicy",
                                       "GPUPool",  "GPUPrice",  "Namespace", "PriorityClass"};
bool IsKept(std::string_view kind) { return std::ranges::find(kKinds, kind) != std::end(kKinds); }

// As the text of a GPUPolicy, what a server's own settings can say of it.
std::string TextOf(const GpuPolicy& policy) {
  constexpr const char* kStrategies[] = {"Fragmentation", "BestFit", "Spread"};
  constexpr const char* kActors[] = {"Planner", "Scheduler", "Off"};
  return fmt::format(
      R"({{"apiVersion":"tranche.dev/v1alpha1","kind":"GPUPolicy",)"
      R"("metadata":{{"name":"settings"}},"spec":{{)"
      R"("placement":{{"strategy":"{}","filterWidth":{}}},"sharing":{{"unenforced":"{}"}},)"
      R"("preemption":{{"actor":"{}"}}}}}})",
      kStrategies[static_cast<int>(policy.strategy)], policy.filter_width,
      policy.unenforced_sharing == Permission::kAllow ? "Allow" : "Refuse",
      kActors[static_cast<int>(policy.actor)]);
}

// Kubernetes tells whole seconds: of what we hear at once we know the moment better.
Instant MomentOf(const std::optional<Instant>& told, Instant now) {
  constexpr Millis kCutOff{999};
  return told ? std::clamp(now, *told, *told + kCutOff) : now;
}

// Or might: one whose plugin is away still says how many it had.
bool HasGpus(const NodeFacts& node) {
  return node.gpu || node.gpu_shared || !node.mig.empty() || node.agent ||
         !node.agent_amounts.empty() || node.count.value_or(0) > 0;
}

bool HasEnded(const PodFacts& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

}  // namespace

// What an event tells, before it is passed on.
struct PastRecorder::Looker {
  void operator()(const NodeChanged& told) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    const bool kept = HasGpus(told.node) && !told.object.empty();
    recorder.SeeObject("Node", told.node.name.str(), kept ? told.object : std::string());
  }
  void operator()(const NodeGone& told) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    recorder.SeeObject("Node", told.name.str(), "");
  }
  void operator()(const PodChanged& told) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    recorder.See(told);
  }
  void operator()(const PodGone& told) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    recorder.SeeGone(told.uid);
  }
  void operator()(const PolicyObject& told) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    if (!IsKept(told.kind)) return;
    if (std::string text = wire::PastPolicyText(told.json); !text.empty()) {
      recorder.SeeObject(told.kind, told.name, std::move(text));
    }
  }
  void operator()(const PolicyObjectGone& told) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    if (IsKept(told.kind)) recorder.SeeObject(told.kind, told.name.name, "");
  }
  void operator()(const GangSizeChanged& told) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    recorder.SeeObject(kGangSizeKind, told.ns + "/" + told.gang,
                       told.size > 0 ? std::to_string(told.size) : "");
  }
  void operator()(const Synced&) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorder.mutex_) {
    recorder.SeeAll();
  }
  template <typename Other>
  void operator()(const Other&) const {}

  PastRecorder& recorder;
};

PastRecorder::PastRecorder(ClusterEvents& next, Ledger* ledger, const Clock& clock,
                           const GpuPolicy& defaults)
    : next_(next), ledger_(ledger), clock_(clock), server_policy_(TextOf(defaults)) {}

void PastRecorder::Receive(ClusterEvent event) {
  if (ledger_ != nullptr) {
    const absl::MutexLock lock(&mutex_);
    std::visit(Looker{*this}, event);
    if (news_.pods.size() + news_.changes.size() >= kMostKept) HandOver();
  }
  next_.Receive(std::move(event));
}

void PastRecorder::See(const PodChanged& told) {
  const PodFacts& pod = told.pod;
  const PodUid& uid = pod.request.uid;
  if (!pod.request.asks_gpu() || uid.empty() || pod.placeholder) return;
  if (HasEnded(pod)) {
    // Perhaps it was there when we last looked: the ledger knows.
    const auto known = pods_.find(uid);
    const bool disrupted = pod.disrupted || (known != pods_.end() && known->second.disrupted);
    PastPod ended;
    ended.uid = uid;
    ended.name = pod.request.name;
    ended.node = pod.node;
    ended.ended = MomentOf(pod.finished_at, clock_.Now());
    // Work that was done in its grace is done.
    const bool done = pod.phase == PodPhase::kSucceeded || !disrupted;
    ended.how = done ? PastEnd::kByItself : PastEnd::kDisrupted;
    if (known != pods_.end()) pods_.erase(known);
    news_.pods.push_back(std::move(ended));
    return;
  }
  const auto [known, is_new] = pods_.try_emplace(uid);
  known->second.disrupted = known->second.disrupted || pod.disrupted;
  const bool starts = !pod.node.empty() && !std::exchange(known->second.started, !pod.node.empty());
  if (!is_new && !starts) return;
  PastPod news;
  news.uid = uid;
  news.name = pod.request.name;
  if (is_new) {
    news.owner = pod.owner;
    news.created = MomentOf(pod.created, clock_.Now());
    news.object = told.object;
  }
  if (starts) {
    news.node = pod.node;
    news.started = MomentOf(pod.bound_at, clock_.Now());
    if (pod.allocation) news.devices = wire::EncodeAllocation(*pod.allocation);
  }
  news_.pods.push_back(std::move(news));
}

void PastRecorder::SeeGone(const PodUid& uid) {
  const auto known = pods_.extract(uid);
  if (known.empty()) return;
  PastPod gone;
  gone.uid = uid;
  gone.ended = clock_.Now();
  gone.how = known.mapped().disrupted ? PastEnd::kDisrupted : PastEnd::kDeleted;
  news_.pods.push_back(std::move(gone));
}

void PastRecorder::SeeObject(std::string kind, std::string name, std::string object) {
  std::pair<std::string, std::string> key(std::move(kind), std::move(name));
  if (object.empty()) {
    if (objects_.erase(key) == 0) return;
  } else {
    const std::size_t says = std::hash<std::string>()(object);
    const auto [known, is_new] = objects_.try_emplace(key, says);
    if (!is_new && std::exchange(known->second, says) == says) return;
  }
  news_.changes.push_back({clock_.Now(), key.first, key.second, std::move(object)});
}

void PastRecorder::SeeAll() {
  if (std::exchange(all_seen_, true)) return;
  SeeObject(kServerPolicyKind, "settings", server_policy_);
  PastNews::Rest& rest = news_.rest.emplace();
  for (const auto& [uid, known] : pods_) rest.pods.push_back(uid);
  std::ranges::sort(rest.pods);
  for (const auto& [object, says] : objects_) rest.objects.push_back(object);
  HandOver();
}

void PastRecorder::HandOver() {
  if (news_.empty()) return;
  news_.at = clock_.Now();
  ledger_->NotePast(std::exchange(news_, {}));
}

void PastRecorder::Tick() {
  if (ledger_ == nullptr) return;
  const absl::MutexLock lock(&mutex_);
  HandOver();
}

}  // namespace tranche
