// Registers of agents that only advertise amounts, and the units they count in.
// Source: request-dialects sections 6 (end), 7, 8, 9.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/register_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr int64_t kCoresOfCard = 100;

struct AmountAgent {
  AgentKind kind;
  std::string_view memory;
  std::string_view cards;  // counts cards...
  std::string_view cores;  // ...or hundredths of them
  bool cards_are_a_sign;
};

// In the order in which a node's agent is looked for.
constexpr std::array kAmountAgents = {
    AmountAgent{AgentKind::kGpushare, "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "", false},
    AmountAgent{AgentKind::kVolcanoOld, "volcano.sh/gpu-memory", "volcano.sh/gpu-number", "", true},
    AmountAgent{AgentKind::kTkestack, "tencent.com/vcuda-memory", "", "tencent.com/vcuda-core",
                false},
    AmountAgent{AgentKind::kElastic, "elasticgpu.io/gpu-memory", "", "elasticgpu.io/gpu-core",
                false},
};
constexpr std::array<std::string_view, 2> kOtherResources = {"nvidia.com/vgpu-number",
                                                             "volcano.sh/vgpu-number"};

int64_t AmountOf(const std::vector<AgentAmount>& amounts, std::string_view key) {
  if (key.empty()) return 0;
  const auto found = std::ranges::find(amounts, key, &AgentAmount::key);
  if (found == amounts.end()) return 0;
  return std::max(found->count.capacity, found->count.allocatable);
}

bool IsThere(const AmountAgent& agent, const std::vector<AgentAmount>& amounts) {
  return AmountOf(amounts, agent.memory) > 0 || AmountOf(amounts, agent.cores) > 0 ||
         (agent.cards_are_a_sign && AmountOf(amounts, agent.cards) > 0);
}

absl::StatusOr<int64_t> CardsOf(const AmountAgent& agent, const std::vector<AgentAmount>& amounts,
                                const CardHints& hints) {
  const int64_t cores = AmountOf(amounts, agent.cores);
  if (cores % kCoresOfCard != 0) {
    return absl::InvalidArgumentError(fmt::format("expected a multiple of {}, found {}, in {}",
                                                  kCoresOfCard, cores, agent.cores));
  }
  const std::string_view key = agent.cards.empty() ? agent.cores : agent.cards;
  int64_t cards = agent.cards.empty() ? cores / kCoresOfCard : AmountOf(amounts, agent.cards);
  if (cards == 0) cards = hints.count.value_or(0);
  if (cards >= 1 && cards <= static_cast<int64_t>(kMaxRegisterDevices)) return cards;
  return absl::InvalidArgumentError(
      fmt::format("expected 1 to {} cards, found {}, in {}", kMaxRegisterDevices, cards, key));
}

Mebibytes MemoryUnit(AgentKind kind, int64_t units, const CardHints& hints) {
  constexpr int64_t kTkestackBlock = 256;
  switch (kind) {
    case AgentKind::kGpushare:
      return UnitOf(units, std::nullopt);
    case AgentKind::kVolcanoOld:
      return UnitOf(units, hints.memory);
    case AgentKind::kTkestack:
      return Mebibytes::Of(kTkestackBlock);
    default:
      return Mebibytes::Of(1);
  }
}

// Plugins drop what is less than a unit, and feature discovery may see a little less or more.
bool Contradicts(Mebibytes found, Mebibytes unit, Mebibytes label) {
  const int64_t slack = std::max(unit.count(), label.count() / 50);
  return found.count() < label.count() - slack || found.count() > label.count() + slack;
}

absl::Status MarkUnhealthy(std::string_view list, std::vector<AgentDevice>& devices) {
  if (Trimmed(list).empty()) return absl::OkStatus();
  const auto most = static_cast<int64_t>(devices.size()) - 1;
  for (const std::string_view entry : SplitList(list)) {
    const std::optional<int64_t> index = ParsePlainInteger(entry);
    if (!index || *index < 0 || *index > most) {
      return absl::InvalidArgumentError(
          fmt::format("expected indexes from 0 to {}, found {}, in {}", most, Quoted(entry),
                      kVolcanoUnhealthyKey));
    }
    devices[static_cast<std::size_t>(*index)].healthy = false;
  }
  return absl::OkStatus();
}

}  // namespace

bool IsAgentResource(std::string_view key) {
  const auto names = [key](const AmountAgent& agent) {
    return key == agent.memory || key == agent.cards || key == agent.cores;
  };
  return std::ranges::any_of(kAmountAgents, names) ||
         std::ranges::find(kOtherResources, key) != kOtherResources.end();
}

AgentKind AgentOfAmounts(const std::vector<AgentAmount>& amounts) {
  for (const AmountAgent& agent : kAmountAgents) {
    if (IsThere(agent, amounts)) return agent.kind;
  }
  return AgentKind::kNone;
}

absl::StatusOr<DerivedRegister> RegisterOfAmounts(AgentKind kind,
                                                  const std::vector<AgentAmount>& amounts,
                                                  const CardHints& hints) {
  const auto* const agent = std::ranges::find(kAmountAgents, kind, &AmountAgent::kind);
  if (agent == kAmountAgents.end()) {
    return absl::InvalidArgumentError("expected an agent that advertises amounts, found another");
  }
  TRANCHE_ASSIGN_OR_RETURN(const int64_t cards, CardsOf(*agent, amounts, hints));
  const int64_t total = AmountOf(amounts, agent->memory);
  const int64_t units = total / cards;
  DerivedRegister found;
  found.agent.kind = kind;
  found.agent.memory_unit = MemoryUnit(kind, units, hints);
  AgentDevice device;
  device.memory =
      units > 0 ? found.agent.memory_unit * units : hints.memory.value_or(Mebibytes::Zero());
  device.cores_percent = static_cast<int>(kCoresOfCard);
  device.healthy = true;
  for (; device.index < static_cast<int>(cards); ++device.index) {
    found.agent.devices.push_back(device);
  }
  if (kind == AgentKind::kVolcanoOld) {
    TRANCHE_RETURN_IF_ERROR(MarkUnhealthy(hints.unhealthy, found.agent.devices));
  }
  if (units > 0 && hints.memory &&
      Contradicts(device.memory, found.agent.memory_unit, *hints.memory)) {
    found.problem = fmt::format(
        "expected {} cards of {} MiB (label nvidia.com/gpu.memory), found {} units of {} MiB in "
        "all, in {}",
        cards, hints.memory->count(), total, found.agent.memory_unit.count(), agent->memory);
  }
  return found;
}

}  // namespace tranche::wire
