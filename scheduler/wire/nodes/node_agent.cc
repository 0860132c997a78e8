#include "scheduler/wire/nodes/node_agent.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "scheduler/wire/nodes/agent_registers.h"
#include "topology/base/mark.h"

namespace tranche::wire {
namespace {

struct RegisterKey {
  AgentKind kind;
  std::string_view key;
};
constexpr std::array kRegisterKeys = {
    RegisterKey{AgentKind::kHami, kHamiRegisterKey},
    RegisterKey{AgentKind::kFourPd, kFourPdRegisterKey},
    RegisterKey{AgentKind::kVolcano, kVolcanoRegisterKey},
    RegisterKey{AgentKind::kVgpuManager, kVgpuManagerRegisterKey},
};

std::string_view TextOf(const Labels& annotations, std::string_view key) {
  const auto found = annotations.find(std::string(key));
  return found == annotations.end() ? std::string_view() : std::string_view(found->second);
}

absl::StatusOr<AgentRegister> ReadRegister(AgentKind kind, std::string_view text,
                                           const Labels& annotations, const NodeFacts& facts) {
  switch (kind) {
    case AgentKind::kFourPd:
      return ParseFourPdRegister(text);
    case AgentKind::kVolcano:
      return ParseVolcanoRegister(text, facts.memory);
    case AgentKind::kVgpuManager:
      return ParseVgpuManagerRegister(text, TextOf(annotations, kVgpuManagerConfigKey));
    default:
      return ParseHamiRegister(text);
  }
}

void Take(absl::StatusOr<AgentRegister> parsed, std::string_view place, std::string_view key,
          NodeAgent& found) {
  if (parsed.ok()) {
    found.agent = *std::move(parsed);
    return;
  }
  const absl::string_view why = parsed.status().message();
  found.problems.push_back(
      fmt::format("{}, in {}", std::string_view(why.data(), why.size()), place));
  TRANCHE_MARK(agent_register_unreadable);
  found.unreadable = fmt::format("{}: {}", key, found.problems.back());
}

void TakeDerived(absl::StatusOr<DerivedRegister> derived, std::string_view place,
                 std::string_view key, NodeAgent& found) {
  if (!derived.ok()) {
    Take(derived.status(), place, key, found);
    return;
  }
  if (!derived->problem.empty()) found.problems.push_back(std::move(derived->problem));
  found.agent = std::move(derived->agent);
}

void TakeAmounts(AgentKind kind, const Labels& annotations, const NodeFacts& facts,
                 NodeAgent& found) {
  const CardHints hints{facts.memory, facts.count, TextOf(annotations, kVolcanoUnhealthyKey)};
  TakeDerived(RegisterOfAmounts(kind, facts.agent_amounts, hints), "status.capacity",
              AgentName(kind), found);
}

}  // namespace

NodeAgent ReadNodeAgent(const Labels& annotations, const NodeFacts& facts) {
  NodeAgent found;
  if (facts.labels.Find(kTrancheAgentLabel) == "true") {
    const std::string_view text = TextOf(annotations, kTrancheRegisterKey);
    if (text.empty()) {
      found.unreadable = fmt::format("{}=unregistered", kTrancheAgentLabel);
    } else {
      TakeDerived(ParseTrancheRegister(text), fmt::format("annotation {}", kTrancheRegisterKey),
                  kTrancheRegisterKey, found);
    }
    return found;
  }
  std::vector<AgentKind> signs;
  for (const RegisterKey& sign : kRegisterKeys) {
    const auto text = annotations.find(std::string(sign.key));
    if (text == annotations.end()) continue;
    if (signs.empty()) {
      Take(ReadRegister(sign.kind, text->second, annotations, facts),
           fmt::format("annotation {}", sign.key), sign.key, found);
    }
    signs.push_back(sign.kind);
  }
  if (const AgentKind kind = AgentOfAmounts(facts.agent_amounts); kind != AgentKind::kNone) {
    if (signs.empty()) TakeAmounts(kind, annotations, facts, found);
    signs.push_back(kind);
  }
  for (std::size_t i = 1; i < signs.size(); ++i) {
    found.problems.push_back(
        fmt::format("expected one node agent, found signs of {} and {}; {} counts",
                    AgentName(signs[0]), AgentName(signs[i]), AgentName(signs[0])));
  }
  return found;
}

}  // namespace tranche::wire
