#include "test/sim/check/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "test/sim/check/fit.h"
#include "test/sim/check/quotas.h"
#include "test/sim/check/reasons.h"

namespace tranche::sim::check {
namespace {

constexpr int kMostPokes = 60;
constexpr std::size_t kManyPods = 20;
constexpr SimTime kToEnd = std::chrono::minutes(2);
constexpr std::string_view kSchedulerProcess = "kube-";  // and its name, and its life

SimTime GraceOf(const Json& pod) {
  for (const auto& path : {At(pod, {"metadata", "deletionGracePeriodSeconds"}),
                           At(pod, {"spec", "terminationGracePeriodSeconds"})}) {
    if (path.is_number_integer()) return std::chrono::seconds(path.get<int64_t>());
  }
  return std::chrono::seconds(30);
}

bool IsGated(const Json& pod) {
  const Json& gates = At(pod, {"spec", "schedulingGates"});
  return gates.is_array() && !gates.empty();
}

}  // namespace

void LivenessChecker::Hear(const Happening& happening) {
  owners_.Hear(happening);
  terms_.Hear(happening);
  if (happening.kind == Happening::Kind::kQuiet) quiet_ = happening.at;
  if (happening.kind == Happening::Kind::kStarted && happening.who.starts_with(kSchedulerProcess)) {
    const std::string_view name = std::string_view(happening.who).substr(kSchedulerProcess.size());
    schedulers_.emplace(name.substr(0, name.rfind('/')));
  }
  if (!quiet_ || happening.kind != Happening::Kind::kWritten) return;
  if (happening.resource != "pods" || !IsTranche(happening.who)) return;
  const PodLife* const pod = truth_.pod_of(happening.key);
  if (pod != nullptr && pod->waits()) ++pokes_[happening.key];
}

void LivenessChecker::AtEnd(const Ending& ending) {
  if (!quiet_) return;
  const auto is_ours = [](const auto& pod) { return IsTranche(pod.second.binder); };
  const bool placing = terms_.LedFor(std::chrono::minutes(1), *quiet_);
  if (placing && truth_.pods().size() >= kManyPods &&
      std::ranges::none_of(truth_.pods(), is_ours)) {
    Found(ending.at, "", "expected some of all these pods to get a node by us, found none");
  }
  for (const auto& [key, count] : pokes_) {
    if (count > kMostPokes) {
      Found(ending.at, key,
            fmt::format("expected a waiting pod to be poked now and then, found {} times", count));
    }
  }
  for (const auto& [uid, pod] : truth_.pods()) {
    if (pod.ended) continue;
    if (pod.leaving) {
      const SimTime latest = std::max(*pod.leaving, *quiet_) + GraceOf(pod.object) + kToEnd;
      if (latest < ending.at && pod.bound) {
        Found(ending.at, pod.key, "expected a pod that leaves to be gone, found it Terminating");
      }
    } else if (pod.waits()) {
      CheckWaiting(pod, ending.at);
    }
  }
  const std::optional<Json> books = ending.ask ? ending.ask("/api/v1/pods") : std::nullopt;
  if (!books) {
    Found(ending.at, "", "expected a replica that leads and answers, found none");
  } else {
    CheckBooks(At(*books, {"pods"}), ending.at);
  }
  const std::optional<Json> quotas = ending.ask ? ending.ask("/api/v1/quotas") : std::nullopt;
  if (quotas) CheckUnused(At(*quotas, {"quotas"}), ending.at);
}

void LivenessChecker::CheckUnused(const Json& quotas, SimTime at) {
  const auto is_there = [](const auto& pod) { return !pod.second.ended; };
  const auto has_devices = [](const auto& claim) { return claim.second.current() != nullptr; };
  if (std::ranges::any_of(truth_.pods(), is_there) ||
      std::ranges::any_of(truth_.claims(), has_devices) || !quotas.is_array()) {
    return;
  }
  for (const Json& quota : quotas) {
    const Json& lines = At(quota, {"lines"});
    if (!lines.is_array()) continue;
    for (const Json& line : lines) {
      const Json& used = At(line, {"usedGpus"});
      if (used.is_null() || used == Json(0)) continue;
      Found(at, TextAt(quota, {"name"}),
            fmt::format("expected nothing used of a quota when nobody is there, found {} of {}",
                        used.dump(), TextAt(line, {"model"})));
    }
  }
}

bool LivenessChecker::TeamHasRoom(const PodLife& pod, const std::string& node) const {
  if (truth_.objects("gpuquotas").empty()) return true;
  QuotaModel model(truth_.objects("gpuquotas"), truth_.objects("namespaces"));
  const std::string leaf = model.LeafOf(pod.ns());
  // It may be used up.
  const auto is_its = [&](const auto& budget) { return model.IsBudgetOf(budget.second, leaf); };
  if (std::ranges::any_of(truth_.objects("gpubudgets"), is_its)) return false;
  const Json* const object = truth_.object("nodes", node);
  if (!model.known() || leaf.empty() || object == nullptr) return false;
  const SimTime now = SimTime::max();
  UseHoldings(model, truth_, owners_, now, now, Held::kAtAnyMoment, nullptr);
  // Whatever it is charged, it is no more than whole GPUs.
  const std::optional<Holding> holding = HoldingOf(pod, *object);
  // Work that is never evicted may not borrow: within the nominal it is everybody's right.
  return holding && model.Enforces(leaf) && model.WithinNominal(leaf, *holding) &&
         model.Admits(leaf, *holding);
}

bool LivenessChecker::IsAnothers(const PodLife& pod) const {
  const std::string name = TextAt(pod.object, {"spec", "schedulerName"});
  return !name.empty() && !schedulers_.contains(name);
}

void LivenessChecker::CheckWaiting(const PodLife& pod, SimTime at) {
  if (!AsksGpu(pod.object) || IsGated(pod.object) || !GangOf(pod).empty()) return;
  if (IsAnothers(pod)) return;
  // Of two that fit one place the other one waits rightly, until it was tried again.
  if (pod.made > *quiet_) return;
  for (const auto& [node, object] : truth_.objects("nodes")) {
    if (FitOn(truth_, pod, node) != Fit::kYes || IsKeptForSomebody(truth_, node)) continue;
    if (!TeamHasRoom(pod, node)) continue;
    Found(at, pod.key,
          fmt::format("expected the pod to run, since {} has room for it, found it waiting", node));
    return;
  }
}

void LivenessChecker::CheckBooks(const Json& pods, SimTime at) {
  if (!pods.is_array()) return;
  std::set<std::string> known;
  for (const Json& entry : pods) {
    const std::string uid = TextAt(entry, {"uid"});
    const std::string key = TextAt(entry, {"namespace"}) + "/" + TextAt(entry, {"name"});
    const std::string state = TextAt(entry, {"state"});
    known.insert(uid);
    const PodLife* const pod = truth_.pod(uid);
    if (state == "reserved") {
      Found(at, key, "expected nothing reserved when all is quiet, found the pod's devices kept");
    }
    if (pod == nullptr || pod->gone) {
      Found(at, key, "expected no pod in the books that is gone, found it " + state);
    } else if (pod->holds() != (state == "bound") && !pod->ended && state != "reserved") {
      Found(at, key,
            fmt::format("expected the pod {} in the books, found it {}",
                        pod->holds() ? "bound" : "waiting", state));
    } else if (pod->holds() && TextAt(entry, {"node"}) != pod->node) {
      Found(at, key,
            fmt::format("expected the pod on {} in the books, found it on {}", pod->node,
                        TextAt(entry, {"node"})));
    }
  }
  for (const auto& [uid, pod] : truth_.pods()) {
    if (!pod.holds() || !pod.record || known.contains(uid)) continue;
    Found(at, pod.key, "expected a pod that holds devices in the books, found none");
  }
}

}  // namespace tranche::sim::check
