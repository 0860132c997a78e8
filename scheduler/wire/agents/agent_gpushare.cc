// gpushare: the pod's total on one card. Source: request-dialects section 7.
#include <array>

#include "scheduler/wire/agents/agent_grammars.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kIndex = "ALIYUN_COM_GPU_MEM_IDX";
constexpr std::string_view kPod = "ALIYUN_COM_GPU_MEM_POD";
constexpr std::string_view kCard = "ALIYUN_COM_GPU_MEM_DEV";
constexpr std::string_view kAssigned = "ALIYUN_COM_GPU_MEM_ASSIGNED";
constexpr std::string_view kTime = "ALIYUN_COM_GPU_MEM_ASSUME_TIME";
// Written by newer tools of its vendor, whose form is not published.
constexpr std::string_view kNewer = "scheduler.framework.gpushare.allocation";
constexpr std::array kKeys = {kIndex, kPod, kCard, kAssigned, kTime, kNewer};

// What the app containers and sidecars hold together.
Mebibytes PodTotal(const PodRequest& request, const Allocation& allocation) {
  Mebibytes total;
  for (const ContainerInfo& container : request.containers) {
    if (container.role == ContainerRole::kInit) continue;
    for (const Device& device : DevicesOf(allocation, container.name)) total += device.memory;
  }
  return total;
}

void Write(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
           Annotations& out) {
  const int card = allocation.containers.front().devices.front().card;
  const auto position = static_cast<std::size_t>(card);
  const Mebibytes card_memory =
      position < call.card_memory.size() ? call.card_memory[position] : Mebibytes::Zero();
  const int64_t unit = call.memory_unit.count();
  const int64_t total = PodTotal(request, allocation).count();
  out.emplace(kIndex, std::to_string(card));
  out.emplace(kPod, std::to_string((total + unit - 1) / unit));
  out.emplace(kCard, std::to_string(card_memory.count() / unit));
  out.emplace(kAssigned, "false");
  out.emplace(kTime, std::to_string(call.stamp));
}

// The amount is the pod's and in a unit that the text does not tell; every container that asked
// runs on the one card.
absl::StatusOr<std::vector<ContainerDevices>> Read(const AgentValues& values,
                                                   const PodRequest& request) {
  const std::optional<std::string_view> index = ValueOf(values, kIndex);
  if (!index) return std::vector<ContainerDevices>();
  TRANCHE_ASSIGN_OR_RETURN(const int card, ReadCard(*index, kIndex));
  Device device;
  device.card = card;
  return DealOut({device}, request, kIndex);
}

AgentProgress Progress(const AgentValues& values) {
  const std::optional<std::string_view> assigned = ValueOf(values, kAssigned);
  if (assigned == "true") return AgentProgress::kServed;
  return assigned == "false" ? AgentProgress::kWaiting : AgentProgress::kUnknown;
}

}  // namespace

constinit const AgentGrammar kGpushareGrammar = {AgentKind::kGpushare,
                                                 RequestStyle::kNone,
                                                 {},
                                                 kKeys,
                                                 "ALIYUN_COM_GPU_MEM_",
                                                 Write,
                                                 Read,
                                                 Progress};

}  // namespace tranche::wire
