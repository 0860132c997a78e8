// Results that no agent reads: the container takes the cards from its own environment
// (open-gpu-share, HiveD). Source: request-dialects section 13.
#include <fmt/format.h>

#include <array>

#include "scheduler/wire/agents/agent_grammars.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kShareIndex = "alibabacloud.com/gpu-index";
constexpr std::string_view kShareTime = "alibabacloud.com/assume-time";
constexpr std::array kShareKeys = {kShareIndex, kShareTime};

constexpr std::string_view kCells = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation";
constexpr std::string_view kOldCells = "hivedscheduler.microsoft.com/pod-gpu-isolation";
constexpr std::string_view kBindInfo = "hivedscheduler.microsoft.com/pod-bind-info";
constexpr std::array kHivedKeys = {kCells, kOldCells, kBindInfo};

// "2-3-4": a card as often as it gives a unit.
void WriteShare(const AgentCall& call, const PodRequest& /*request*/, const Allocation& allocation,
                Annotations& out) {
  std::string list;
  for (const ContainerDevices& container : allocation.containers) {
    if (!list.empty() && !container.devices.empty()) list += '-';
    list += WriteCards(container.devices, '-');
  }
  out.emplace(kShareIndex, list);
  out.emplace(kShareTime, std::to_string(call.stamp));
}

absl::StatusOr<std::vector<ContainerDevices>> ReadShare(const AgentValues& values,
                                                        const PodRequest& request) {
  const std::optional<std::string_view> index = ValueOf(values, kShareIndex);
  if (!index) return std::vector<ContainerDevices>();
  TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> cards,
                           ReadCards(*index, {.separator = '-', .repeats = true}, kShareIndex));
  return DealOut(std::move(cards), request, kShareIndex);
}

// What HiveD keeps of a pod, here of this pod alone: our own record restores the rest. Names stand
// in quotes, which YAML reads as JSON does.
std::string BindInfo(std::string_view node, const std::vector<Device>& cards) {
  std::string quoted;
  AppendQuoted(quoted, node);
  std::string list;
  for (const Device& card : cards) {
    if (!list.empty()) list += ", ";
    list += std::to_string(card.card);
  }
  return fmt::format(
      "node: {0}\n"
      "leafCellIsolation: [{1}]\n"
      "affinityGroupBindInfo:\n"
      "- podPlacements:\n"
      "  - physicalNode: {0}\n"
      "    physicalLeafCellIndices: [{1}]\n",
      quoted, list);
}

void WriteHived(const AgentCall& call, const PodRequest& /*request*/, const Allocation& allocation,
                Annotations& out) {
  const std::vector<Device> cards = CardsOfPod(allocation);
  const std::string list = WriteCards(cards, ',');
  out.emplace(kCells, list);
  out.emplace(kOldCells, list);  // containers of older manifests refer to this one
  out.emplace(kBindInfo, BindInfo(call.node, cards));
}

absl::StatusOr<std::vector<ContainerDevices>> ReadHived(const AgentValues& values,
                                                        const PodRequest& request) {
  std::string_view key = kCells;
  std::optional<std::string_view> text = ValueOf(values, key);
  if (!text) {
    key = kOldCells;
    text = ValueOf(values, key);
  }
  if (!text) return std::vector<ContainerDevices>();
  TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> cards, ReadCards(*text, CardList(), key));
  return DealOut(std::move(cards), request, key);
}

AgentProgress Progress(const AgentValues& /*values*/) { return AgentProgress::kUnknown; }

}  // namespace

constinit const AgentGrammar kOpenGpuShareGrammar = {
    AgentKind::kNone, RequestStyle::kOpenGpuShare, {}, kShareKeys, {}, WriteShare, ReadShare,
    Progress};

constinit const AgentGrammar kHivedGrammar = {
    AgentKind::kNone, RequestStyle::kHived, {}, kHivedKeys, {}, WriteHived, ReadHived, Progress};

}  // namespace tranche::wire
