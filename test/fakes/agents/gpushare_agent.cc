#include "test/fakes/agents/gpushare_agent.h"

#include <algorithm>
#include <optional>

#include "test/fakes/agents/agent_text.h"

namespace tranche::fakes {
namespace {

constexpr const char* kResource = "aliyun.com/gpu-mem";
constexpr const char* kIndex = "ALIYUN_COM_GPU_MEM_IDX";
constexpr const char* kTime = "ALIYUN_COM_GPU_MEM_ASSUME_TIME";
constexpr const char* kAssigned = "ALIYUN_COM_GPU_MEM_ASSIGNED";
constexpr int64_t kGibibyte = 1024;

bool Waits(const FakePod& pod) {
  return pod.phase == FakePhase::kPending && ReadNumber(pod.Note(kTime)) &&
         pod.Note(kAssigned) == "false";
}

int64_t TotalOf(const FakePod& pod) {
  int64_t total = 0;
  for (const FakeContainer& container : pod.containers) {
    if (!container.init) total += container.Limit(kResource);
  }
  return total;
}

// An answer that looks like success and kills the container when it starts.
Service Poison(int64_t amount, int64_t unit_mib) {
  Service service;
  service.env["NVIDIA_VISIBLE_DEVICES"] =
      "no-gpu-has-" + std::to_string(amount) + (unit_mib == kGibibyte ? "GiB" : "MiB") + "-to-run";
  return service;
}

}  // namespace

Service GpushareAgent::Allocate(const DeviceCall& call) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  if (!node) return ServiceError("no node " + call.node);
  std::vector<FakePod> waiting = pods_.PodsOn(call.node);
  std::erase_if(waiting, [](const FakePod& pod) { return !Waits(pod); });
  std::stable_sort(waiting.begin(), waiting.end(), [](const FakePod& a, const FakePod& b) {
    return ReadNumber(a.Note(kTime)) < ReadNumber(b.Note(kTime));
  });
  const auto amount = static_cast<int64_t>(call.ids.size());
  const auto found = std::find_if(waiting.begin(), waiting.end(),
                                  [amount](const FakePod& pod) { return TotalOf(pod) == amount; });
  Service service;
  if (found == waiting.end()) {
    if (node->cards.size() != 1) return Poison(amount, unit_mib_);
    service.grants = {{0, amount * unit_mib_, 0}};
    service.env["NVIDIA_VISIBLE_DEVICES"] = node->cards[0].uuid;
    return service;
  }
  const auto cards = ReadCards(found->Note(kIndex), *node);
  if (!cards || cards->size() != 1) return Poison(amount, unit_mib_);
  // It knows the pod, and that it asks in one call: so by one container.
  const auto asking =
      std::find_if(found->containers.begin(), found->containers.end(),
                   [amount](const FakeContainer& c) { return c.Limit(kResource) == amount; });
  service.believed = {found->uid, asking == found->containers.end() ? std::string() : asking->name};
  service.grants = {{cards->front(), amount * unit_mib_, 0}};
  service.env["NVIDIA_VISIBLE_DEVICES"] =
      node->cards[static_cast<std::size_t>(cards->front())].uuid;
  service.env["ALIYUN_COM_GPU_MEM_IDX"] = found->Note(kIndex);
  service.env["ALIYUN_COM_GPU_MEM_CONTAINER"] = std::to_string(amount);
  pods_.PatchAnnotations(found->uid, {{kAssigned, "true"}});
  return service;
}

}  // namespace tranche::fakes
