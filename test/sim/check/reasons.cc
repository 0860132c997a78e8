#include "test/sim/check/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "test/sim/check/fit.h"

namespace tranche::sim::check {
namespace {

// More would say nothing new.
constexpr int kMostAsked = 20;
constexpr const char* kDevicesUnknown =  // as it is told to kube-scheduler
    "a pod on the node holds GPUs that cannot be told apart";

std::string RegisterOf(const Json& node) {
  const std::string by_tranche = Annotation(node, "tranche.dev/agent-register");
  return by_tranche.empty() ? Annotation(node, "hami.io/node-nvidia-register") : by_tranche;
}

// UUIDs of the cards that the node's agent tells of.
std::set<std::string> CardsOf(const Json& node) {
  std::set<std::string> cards;
  const Json read = Json::parse(RegisterOf(node), nullptr, /*allow_exceptions=*/false);
  const bool by_tranche = read.is_object();
  const Json& list = by_tranche ? At(read, {"devices"}) : read;
  if (!list.is_array()) return cards;
  for (const Json& card : list) cards.insert(TextAt(card, {by_tranche ? "uuid" : "id"}));
  return cards;
}

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

bool ReasonChecker::AllIsKnownOn(const std::string& node, SimTime now) const {
  const std::vector<Document> lately = truth_.Lately("nodes", node, now, options_.lag);
  // Its agent writes when it was there last, over and over; of cards it must have told the same.
  const Document& first = lately.front();
  const auto is_same = [&](const Document& other) {
    return !other.is_null() && RegisterOf(other) == RegisterOf(first) &&
           At(other, {"metadata", "uid"}) == At(first, {"metadata", "uid"}) &&
           At(other, {"metadata", "labels"}) == At(first, {"metadata", "labels"}) &&
           At(other, {"status", "allocatable"}) == At(first, {"status", "allocatable"});
  };
  if (!std::ranges::all_of(lately, is_same)) return false;
  const std::set<std::string> cards = CardsOf(first);
  return !cards.empty() && std::ranges::all_of(truth_.pods(), [&](const auto& entry) {
    const PodLife& pod = entry.second;
    const bool lately_there = pod.node == node && (!pod.ended || *pod.ended > now - options_.lag);
    // What somebody wrote on a pod that asks for nothing a later leader cannot tell from a record
    // of one whose wishes were taken off.
    const bool says = !Annotation(pod.object, "tranche.dev/allocation").empty();
    if (!lately_there || (!pod.record && !says && !AsksGpu(pod.object))) return true;
    const bool ours = IsTranche(pod.binder) && pod.record &&
                      Annotation(pod.object, "tranche.dev/allocation") == pod.recorded;
    return ours && std::ranges::all_of(pod.record->devices, [&](const RecordDevice& device) {
             return cards.contains(device.id);
           });
  });
}

void ReasonChecker::Hear(const Happening& happening) {
  if (happening.kind != Happening::Kind::kAsked || happening.text != "filter") return;
  for (const char* const list : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
    const Json& refused = At(happening.after, {list});
    if (!refused.is_object()) continue;
    for (const auto& [node, why] : refused.items()) {
      if (why != kDevicesUnknown || !AllIsKnownOn(node, happening.at)) continue;
      Found(happening.at, node,
            "expected devices of pods that we bound to be known, found the node closed to " +
                happening.key);
    }
  }
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
