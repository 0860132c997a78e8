// vgpu-manager: "main[0_GPU-a_20_2048,1_GPU-b_20_2048];side[2_GPU-c_0_4096]", a card with index,
// uuid, percent of cores and MiB. Source: request-dialects section 10.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "scheduler/wire/agents/agent_grammars.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

// The agent's time for a pod that has all its devices.
constexpr std::string_view kDone = "9223372036854775807";

constexpr std::string_view kNode = "nvidia.com/predicate-node";
constexpr std::string_view kTime = "nvidia.com/predicate-time";
constexpr std::string_view kReal = "nvidia.com/real-allocated";
constexpr std::string_view kPlanned = "nvidia.com/pre-allocated";
constexpr std::string_view kPhase = "nvidia.com/assigned-phase";
constexpr std::string_view kMetricsNode = "nvidia.com/metrics-node";
constexpr std::array kKeys = {kNode, kTime, kReal, kPlanned, kPhase, kMetricsNode};

void Write(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
           Annotations& out) {
  std::string list;
  for (const ContainerInfo& container : request.containers) {
    const std::span<const Device> devices = DevicesOf(allocation, container.name);
    if (devices.empty()) continue;
    if (!list.empty()) list += ';';
    list += container.name + "[";
    for (const Device& device : devices) {
      if (list.back() != '[') list += ',';
      fmt::format_to(std::back_inserter(list), "{}_{}_{}_{}", device.card, device.uuid.str(),
                     CoresPercent(device.milli), device.memory.count());
    }
    list += ']';
  }
  out.emplace(kNode, call.node);
  out.emplace(kTime, std::to_string(call.stamp));
  out.emplace(kReal, "");
  out.emplace(kPlanned, list);
}

// "0_GPU-a_20_2048"
absl::StatusOr<Device> ReadDevice(std::string_view text, std::string_view where) {
  std::string_view rest = text;
  const std::optional<std::string_view> index = TakeUntil(rest, '_');
  const std::optional<std::string_view> uuid = TakeUntil(rest, '_');
  const std::optional<std::string_view> cores = TakeUntil(rest, '_');
  if (!cores) return ErrorAt("<index>_<uuid>_<percent of cores>_<MiB>", text, where);
  TRANCHE_ASSIGN_OR_RETURN(const int card, ReadCard(*index, where));
  TRANCHE_ASSIGN_OR_RETURN(const GpuUuid name, ReadUuid(*uuid, where));
  TRANCHE_ASSIGN_OR_RETURN(const MilliGpu milli, ReadCoresPercent(*cores, where));
  TRANCHE_ASSIGN_OR_RETURN(const Mebibytes memory, ReadMebibytes(rest, where));
  return Device{card, name, milli, memory, std::nullopt};
}

// "main[0_GPU-a_20_2048,1_GPU-b_20_2048]"
absl::StatusOr<ContainerDevices> ReadContainer(std::string_view text) {
  std::string_view rest = text;
  const std::optional<std::string_view> name = TakeUntil(rest, '[');
  if (!name || name->empty() || !rest.ends_with(']')) {
    return ErrorAt("<container>[<devices>]", text, kPlanned);
  }
  rest.remove_suffix(1);
  ContainerDevices container{std::string(*name), {}};
  for (bool last = false; !last;) {
    const std::optional<std::string_view> before = TakeUntil(rest, ',');
    last = !before;
    const std::string where = DeviceAt(kPlanned, *name, container.devices.size());
    if (container.devices.size() == kMaxAgentDevices) {
      return ErrorAt(fmt::format("at most {} devices", kMaxAgentDevices), rest, where);
    }
    TRANCHE_ASSIGN_OR_RETURN(Device device, ReadDevice(before.value_or(rest), where));
    container.devices.push_back(std::move(device));
  }
  return container;
}

absl::StatusOr<std::vector<ContainerDevices>> Read(const AgentValues& values,
                                                   const PodRequest& request) {
  std::vector<ContainerDevices> containers(request.containers.size());
  std::optional<std::string_view> list = ValueOf(values, kPlanned);
  if (!list || list->empty()) return containers;
  for (bool last = false; !last;) {
    const std::optional<std::string_view> before = TakeUntil(*list, ';');
    last = !before;
    TRANCHE_ASSIGN_OR_RETURN(ContainerDevices container, ReadContainer(before.value_or(*list)));
    const auto info = std::find_if(
        request.containers.begin(), request.containers.end(),
        [&](const ContainerInfo& candidate) { return candidate.name == container.container; });
    if (info == request.containers.end()) {
      return ErrorAt("the name of a container", container.container, kPlanned);
    }
    const auto position = static_cast<std::size_t>(info - request.containers.begin());
    if (!containers[position].devices.empty()) {
      return ErrorAt("every container once", container.container, kPlanned);
    }
    containers[position] = std::move(container);
  }
  return containers;
}

AgentProgress Progress(const AgentValues& values) {
  const std::optional<std::string_view> phase = ValueOf(values, kPhase);
  if (phase == "failed") return AgentProgress::kFailed;
  const std::optional<std::string_view> time = ValueOf(values, kTime);
  if (phase == "succeed" || time == kDone) return AgentProgress::kServed;
  return time ? AgentProgress::kWaiting : AgentProgress::kUnknown;
}

}  // namespace

constinit const AgentGrammar kVgpuManagerGrammar = {
    AgentKind::kVgpuManager, RequestStyle::kNone, kNode, kKeys, {}, Write, Read, Progress};

}  // namespace tranche::wire
