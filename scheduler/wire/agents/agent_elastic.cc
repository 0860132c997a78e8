// elastic-gpu: cards by container name. Source: request-dialects section 9.
//
// Its own scheduler sets a label of the key "assumed" too; the agent reads the annotation, and a
// Binding carries no labels before Kubernetes 1.35.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scheduler/wire/agents/agent_grammars.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kContainerPrefix = "elasticgpu.io/container-";
constexpr std::string_view kAssumed = "elasticgpu.io/assumed";
constexpr std::array kKeys = {kAssumed};

void Write(const AgentCall& /*call*/, const PodRequest& /*request*/, const Allocation& allocation,
           Annotations& out) {
  for (const ContainerDevices& container : allocation.containers) {
    if (container.devices.empty()) continue;
    out.emplace(fmt::format("{}{}", kContainerPrefix, container.container),
                WriteCards(container.devices, ','));
  }
  out.emplace(kAssumed, "true");
}

absl::StatusOr<std::vector<ContainerDevices>> Read(const AgentValues& values,
                                                   const PodRequest& request) {
  for (auto entry = values.lower_bound(kContainerPrefix);
       entry != values.end() && entry->first.starts_with(kContainerPrefix); ++entry) {
    const std::string_view name = entry->first.substr(kContainerPrefix.size());
    const bool known =
        std::any_of(request.containers.begin(), request.containers.end(),
                    [&](const ContainerInfo& container) { return container.name == name; });
    if (!known) return ErrorAt("the name of a container", name, entry->first);
  }
  std::vector<ContainerDevices> containers;
  for (const ContainerInfo& container : request.containers) {
    const std::string key = fmt::format("{}{}", kContainerPrefix, container.name);
    const std::optional<std::string_view> text = ValueOf(values, key);
    if (!text) continue;
    TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> cards, ReadCards(*text, CardList(), key));
    containers.push_back({container.name, std::move(cards)});
  }
  return containers;
}

// The agent finds the pod by the device ids at start and writes nothing back.
AgentProgress Progress(const AgentValues& /*values*/) { return AgentProgress::kUnknown; }

}  // namespace

constinit const AgentGrammar kElasticGrammar = {
    AgentKind::kElastic, RequestStyle::kNone, {}, kKeys, kContainerPrefix, Write, Read, Progress};

}  // namespace tranche::wire
