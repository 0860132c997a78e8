#include "test/sim/check/reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "test/sim/check/fit.h"

namespace tranche::sim::check {
namespace {

// More would say nothing new.
constexpr int kMostAsked = 20;

}  // namespace

bool IsKeptForSomebody(const Truth& truth, const std::string& node) {
  for (const auto& [name, reclaim] : truth.objects("gpureclaims")) {
    const std::string phase = TextAt(reclaim, {"status", "phase"});
    if (phase == "Done" || phase == "Aborted") continue;
    const Json& members = At(reclaim, {"spec", "members"});
    if (!members.is_array()) continue;
    for (const Json& member : members) {
      if (TextAt(member, {"node"}) == node) return true;
    }
  }
  return std::ranges::any_of(truth.pods(), [&](const auto& entry) {
    return entry.second.waits() &&
           TextAt(entry.second.object, {"status", "nominatedNodeName"}) == node;
  });
}

void ReasonChecker::AtEnd(const Ending& ending) {
  if (!ending.ask) return;
  int asked = 0;
  for (const auto& [uid, pod] : truth_.pods()) {
    if (!pod.waits() || pod.leaving || !AsksGpu(pod.object)) continue;
    if (++asked > kMostAsked) return;
    const std::optional<Json> explained = ending.ask("/api/v1/explain/" + pod.key);
    if (explained) Judge(pod, *explained, ending.at);
  }
}

void ReasonChecker::Judge(const PodLife& pod, const Json& explained, SimTime at) {
  const Json& nodes = At(explained, {"nodes"});
  if (!nodes.is_array()) return;
  for (const Json& verdict : nodes) {
    const std::string node = TextAt(verdict, {"name"});
    const Fit fit = FitOn(truth_, pod, node);
    const bool fits = At(verdict, {"fits"}) == Json(true);
    const std::string code = TextAt(verdict, {"reason", "code"});
    if (fits && (fit == Fit::kFull || fit == Fit::kNever)) {
      Found(at, pod.key,
            fmt::format("expected {} to take the pod, as explain says; found it {}", node,
                        fit == Fit::kFull ? "full" : "too small"));
    }
    const bool says_full = code == "NoRoom" || code == "TooManyPerNode" || code == "TooLarge";
    if (!fits && says_full && fit == Fit::kYes && !IsKeptForSomebody(truth_, node)) {
      Found(at, pod.key,
            fmt::format("expected no room on {}, as explain says ({}); found some", node, code));
    }
  }
}

}  // namespace tranche::sim::check
