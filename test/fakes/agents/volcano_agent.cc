#include "test/fakes/agents/volcano_agent.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "test/fakes/agents/agent_text.h"

namespace tranche::fakes {
namespace {

constexpr const char* kNode = "volcano.sh/vgpu-node";
constexpr const char* kTime = "volcano.sh/vgpu-time";
constexpr const char* kToAllocate = "volcano.sh/devices-to-allocate";
constexpr const char* kPhase = "volcano.sh/bind-phase";
constexpr const char* kLock = "hamivgpu";

struct Candidate {
  FakePod pod;
  DeviceList list;
  uint64_t time = 0;
};

}  // namespace

Service VolcanoAgent::Allocate(const DeviceCall& call) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  if (!node) return ServiceError("no node " + call.node);
  std::optional<Candidate> oldest;
  for (FakePod& pod : pods_.Pods()) {
    if (pod.Note(kNode) != call.node) continue;
    std::optional<DeviceList> list = ReadDeviceList(pod.Note(kToAllocate), false);
    const std::optional<uint64_t> time = ReadNumber(pod.Note(kTime));
    if (!list || !time) continue;
    std::size_t total = 0;
    for (const auto& devices : *list) total += devices.size();
    if (total != call.ids.size() || total == 0) continue;
    if (!oldest || *time < oldest->time) oldest = {std::move(pod), *std::move(list), *time};
  }
  if (!node->Note(kLock).empty()) pods_.PatchNode(call.node, {{kLock, std::nullopt}});
  if (!oldest) {
    return ServiceError("no pod has " + std::to_string(call.ids.size()) + " devices left here");
  }
  const auto next = std::find_if(oldest->list.begin(), oldest->list.end(),
                                 [](const auto& devices) { return !devices.empty(); });
  const int place =
      ContainerPlace(oldest->pod, static_cast<std::size_t>(next - oldest->list.begin()), false);
  if (place < 0) return ServiceError(oldest->pod.name + ": more slots than containers");

  Service service;
  service.believed = {oldest->pod.uid,
                      oldest->pod.containers[static_cast<std::size_t>(place)].name};
  for (const ListedDevice& device : *next) {
    const int card = node->CardOf(PlainUuid(device.uuid));
    if (card < 0) return ServiceError(oldest->pod.name + ": no card " + device.uuid);
    service.grants.push_back({card, device.memory_mib * memory_factor_, device.cores});
  }
  next->clear();
  TextPatch patch{{kToAllocate, WriteDeviceList(oldest->list, false)}};
  const bool done = std::all_of(oldest->list.begin(), oldest->list.end(),
                                [](const auto& devices) { return devices.empty(); });
  if (done) {
    patch[kPhase] = "success";
    patch[kTime] = std::to_string(std::numeric_limits<uint64_t>::max());
  }
  pods_.PatchAnnotations(oldest->pod.uid, patch);
  return service;
}

}  // namespace tranche::fakes
