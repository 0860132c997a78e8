// tkestack's gpu-manager: cards by position in spec.containers. Source: request-dialects section 8.
#include <fmt/format.h>

#include <array>

#include "scheduler/wire/agents/agent_grammars.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kIndexPrefix = "tencent.com/predicate-gpu-idx-";
constexpr std::string_view kNode = "tencent.com/predicate-node";
constexpr std::string_view kTime = "tencent.com/predicate-time";
constexpr std::string_view kAssigned = "tencent.com/gpu-assigned";
constexpr std::array kKeys = {kNode, kTime, kAssigned};

void Write(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
           Annotations& out) {
  const std::vector<std::string_view> apps = AppContainers(request);
  for (std::size_t i = 0; i < apps.size(); ++i) {
    const std::span<const Device> devices = DevicesOf(allocation, apps[i]);
    if (devices.empty()) continue;
    out.emplace(fmt::format("{}{}", kIndexPrefix, i), WriteCards(devices, ','));
  }
  out.emplace(kNode, call.node);
  out.emplace(kTime, std::to_string(call.stamp));
  out.emplace(kAssigned, "false");
}

absl::StatusOr<std::vector<ContainerDevices>> Read(const AgentValues& values,
                                                   const PodRequest& request) {
  const std::vector<std::string_view> apps = AppContainers(request);
  std::vector<ContainerDevices> containers(apps.size());
  for (auto entry = values.lower_bound(kIndexPrefix);
       entry != values.end() && entry->first.starts_with(kIndexPrefix); ++entry) {
    const std::string_view tail = entry->first.substr(kIndexPrefix.size());
    const std::optional<int64_t> index = ParsePlainInteger(tail);
    if (!index || *index < 0 || *index >= static_cast<int64_t>(apps.size())) {
      return ErrorAt(fmt::format("the position of one of {} containers", apps.size()), tail,
                     entry->first);
    }
    TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> cards,
                             ReadCards(entry->second, CardList(), entry->first));
    const auto position = static_cast<std::size_t>(*index);
    containers[position] = {std::string(apps[position]), std::move(cards)};
  }
  return containers;
}

AgentProgress Progress(const AgentValues& values) {
  const std::optional<std::string_view> assigned = ValueOf(values, kAssigned);
  if (assigned == "true") return AgentProgress::kServed;
  return assigned == "false" ? AgentProgress::kWaiting : AgentProgress::kUnknown;
}

}  // namespace

constinit const AgentGrammar kTkestackGrammar = {AgentKind::kTkestack,
                                                 RequestStyle::kNone,
                                                 kNode,
                                                 kKeys,
                                                 "tencent.com/predicate-",
                                                 Write,
                                                 Read,
                                                 Progress};

}  // namespace tranche::wire
