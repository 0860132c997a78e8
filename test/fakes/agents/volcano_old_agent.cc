#include "test/fakes/agents/volcano_old_agent.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "test/fakes/agents/agent_text.h"

namespace tranche::fakes {
namespace {

constexpr const char* kIndex = "volcano.sh/gpu-index";
constexpr const char* kTime = "volcano.sh/predicate-time";
constexpr const char* kAssigned = "volcano.sh/gpu-assigned";
constexpr const char* kLock = "gpu";
constexpr int64_t kWholeCard = 100;

uint64_t TimeOf(const FakePod& pod) {
  return ReadNumber(pod.Note(kTime)).value_or(std::numeric_limits<uint64_t>::max());
}

bool Waits(const FakePod& pod) {
  const std::string assigned = pod.Note(kAssigned);
  return pod.phase == FakePhase::kPending && !pod.deleting &&
         (assigned.empty() || assigned == "false");
}

}  // namespace

Service VolcanoOldAgent::Allocate(const DeviceCall& call) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  if (!node) return ServiceError("no node " + call.node);
  if (!node->Note(kLock).empty()) pods_.PatchNode(call.node, {{kLock, std::nullopt}});
  std::vector<FakePod> waiting = pods_.PodsOn(call.node);
  std::erase_if(waiting, [](const FakePod& pod) { return !Waits(pod); });
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const FakePod& a, const FakePod& b) { return TimeOf(a) < TimeOf(b); });
  const auto amount = static_cast<int64_t>(call.ids.size());
  for (const FakePod& pod : waiting) {
    for (const FakeContainer& container : pod.containers) {
      if (container.init || container.Limit(call.resource) != amount) continue;
      const auto cards = ReadCards(pod.Note(kIndex), *node);
      if (!cards) return ServiceError(pod.name + ": no such GPU");
      Service service;
      service.believed = {pod.uid, container.name};
      for (const int card : *cards) {
        const FakeCard& whole = node->cards[static_cast<std::size_t>(card)];
        if (call.resource == "volcano.sh/gpu-memory") {
          service.grants.push_back({card, amount * unit_mib_, 0});
        } else {
          service.grants.push_back({card, whole.memory_mib, kWholeCard});
        }
      }
      service.env["NVIDIA_VISIBLE_DEVICES"] = pod.Note(kIndex);
      pods_.PatchAnnotations(pod.uid, {{kAssigned, "true"}});
      return service;
    }
  }
  return ServiceError("no pod waits for " + std::to_string(amount) + " of " + call.resource);
}

}  // namespace tranche::fakes
