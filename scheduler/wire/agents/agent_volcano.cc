// Volcano: the vGPU device plugin, and the older GPU share of volcano.sh/gpu-memory and gpu-number.
// Source: request-dialects section 6.
#include <array>

#include "scheduler/wire/agents/agent_grammars.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

// The agent's time for a pod that it is done with, served or not.
constexpr std::string_view kDone = "18446744073709551615";

constexpr std::string_view kNode = "volcano.sh/vgpu-node";
constexpr std::string_view kTime = "volcano.sh/vgpu-time";
constexpr std::string_view kRecord = "volcano.sh/vgpu-ids-new";
constexpr std::string_view kWork = "volcano.sh/devices-to-allocate";
constexpr std::string_view kPhase = "volcano.sh/bind-phase";
constexpr std::string_view kBindTime = "volcano.sh/bind-time";
constexpr std::array kKeys = {kNode, kTime, kRecord, kWork, kPhase, kBindTime};

constexpr std::string_view kOldIndex = "volcano.sh/gpu-index";
constexpr std::string_view kOldTime = "volcano.sh/predicate-time";
constexpr std::string_view kOldAssigned = "volcano.sh/gpu-assigned";
constexpr std::array kOldKeys = {kOldIndex, kOldTime, kOldAssigned};

void Write(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
           Annotations& out) {
  std::string list;
  bool first = true;
  for (const std::string_view name : AppContainers(request)) {
    if (!first) list += ';';
    first = false;
    AppendHamiDevices(list, DevicesOf(allocation, name), call.memory_unit);
  }
  const std::string seconds = UnixSeconds(call.now);
  out.emplace(kNode, call.node);
  out.emplace(kTime, seconds);
  out.emplace(kRecord, list);
  out.emplace(kWork, list);
  out.emplace(kPhase, "allocating");
  out.emplace(kBindTime, seconds);
}

// The memory counts in the plugin's factor, which the text does not tell: at least one MiB each.
absl::StatusOr<std::vector<ContainerDevices>> Read(const AgentValues& values,
                                                   const PodRequest& request) {
  const std::optional<std::string_view> record = ValueOf(values, kRecord);
  if (!record) return std::vector<ContainerDevices>();
  return ReadJoinedList(*record, request, kRecord);
}

AgentProgress Progress(const AgentValues& values) {
  const AgentProgress phase = PhaseProgress(ValueOf(values, kPhase));
  if (phase == AgentProgress::kServed || phase == AgentProgress::kFailed) return phase;
  const std::optional<std::string_view> time = ValueOf(values, kTime);
  if (time == kDone) return AgentProgress::kServed;
  return time ? AgentProgress::kWaiting : phase;
}

void WriteOld(const AgentCall& call, const PodRequest& /*request*/, const Allocation& allocation,
              Annotations& out) {
  out.emplace(kOldIndex, WriteCards(CardsOfPod(allocation), ','));
  out.emplace(kOldTime, std::to_string(call.stamp));
}

absl::StatusOr<std::vector<ContainerDevices>> ReadOld(const AgentValues& values,
                                                      const PodRequest& request) {
  const std::optional<std::string_view> index = ValueOf(values, kOldIndex);
  if (!index) return std::vector<ContainerDevices>();
  TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> cards, ReadCards(*index, CardList(), kOldIndex));
  return DealOut(std::move(cards), request, kOldIndex);
}

AgentProgress OldProgress(const AgentValues& values) {
  if (ValueOf(values, kOldAssigned) == "true") return AgentProgress::kServed;
  return ValueOf(values, kOldTime) ? AgentProgress::kWaiting : AgentProgress::kUnknown;
}

}  // namespace

constinit const AgentGrammar kVolcanoGrammar = {
    AgentKind::kVolcano, RequestStyle::kNone, kNode, kKeys, {}, Write, Read, Progress};

constinit const AgentGrammar kVolcanoOldGrammar = {
    AgentKind::kVolcanoOld, RequestStyle::kNone, {}, kOldKeys, {}, WriteOld, ReadOld, OldProgress};

std::map<std::string, std::string> ServedAnnotations(AgentKind agent) {
  if (agent != AgentKind::kVolcano) return {};
  return {{std::string(kTime), std::string(kDone)}};
}

}  // namespace tranche::wire
