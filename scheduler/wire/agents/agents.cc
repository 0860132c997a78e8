#include "scheduler/wire/agents/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "scheduler/wire/agents/agent_grammars.h"
#include "scheduler/wire/records/allocation_json.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMaxKeys = 256;
constexpr std::size_t kMaxValueBytes = 64 * 1024;

constexpr std::array kGrammars = {
    &kHamiGrammar,        &kFourPdGrammar,       &kVolcanoGrammar, &kVolcanoOldGrammar,
    &kGpushareGrammar,    &kTkestackGrammar,     &kElasticGrammar, &kVgpuManagerGrammar,
    &kKoordinatorGrammar, &kOpenGpuShareGrammar, &kHivedGrammar,
};

// Results of schedulers and agents that we neither read nor write.
constexpr std::array<std::string_view, 5> kOtherKeys = {
    "gas-ts", "gas-container-cards", "gas-container-tiles", "run.ai/reserve_for_gpu_index",
    "tranche.dev/visible-devices"};
// HAMi writes the lists of other vendors under names of their own.
constexpr std::string_view kHamiPrefix = "hami.io/";
constexpr std::array<std::string_view, 2> kHamiSuffixes = {"-devices-to-allocate",
                                                           "-devices-allocated"};

bool IsKeyOf(const AgentGrammar& grammar, std::string_view key) {
  if (!grammar.key_prefix.empty() && key.starts_with(grammar.key_prefix)) return true;
  return std::find(grammar.keys.begin(), grammar.keys.end(), key) != grammar.keys.end();
}

bool IsAgentKey(std::string_view key) {
  return std::any_of(kGrammars.begin(), kGrammars.end(),
                     [&](const AgentGrammar* grammar) { return IsKeyOf(*grammar, key); });
}

// May the keys of this grammar be on a pod of this style?
bool Concerns(const AgentGrammar& grammar, RequestStyle style) {
  if (style == RequestStyle::kNone) return false;
  if (grammar.agent == AgentKind::kNone) return grammar.style == style;
  return Serves(grammar.agent, style);
}

bool HasDevices(const ContainerDevices& container) { return !container.devices.empty(); }

absl::Status CheckNode(const AgentGrammar& grammar, const AgentValues& values,
                       const NodeName& node) {
  if (grammar.node_key.empty()) return absl::OkStatus();
  const std::optional<std::string_view> found = ValueOf(values, grammar.node_key);
  if (!found || *found == node.str()) return absl::OkStatus();
  return ErrorAt(fmt::format("the pod's node {}", node.str()), *found, grammar.node_key);
}

// How far behind: the larger, the more is to come.
int Lag(AgentProgress progress) {
  switch (progress) {
    case AgentProgress::kUnknown:
      return 0;
    case AgentProgress::kServed:
      return 1;
    case AgentProgress::kFailed:
      return 2;
    case AgentProgress::kWaiting:
      return 3;
  }
  return 0;
}

}  // namespace

std::map<std::string, std::string> AgentAnnotations(const AgentCall& call,
                                                    const PodRequest& request,
                                                    const Allocation& allocation) {
  Annotations out;
  // Containers without devices have no place in any grammar.
  Allocation held = allocation;
  std::erase_if(held.containers, std::not_fn(HasDevices));
  if (held.containers.empty()) return out;
  for (const AgentGrammar* grammar : kGrammars) {
    const bool wanted = grammar->agent == AgentKind::kNone
                            ? grammar->style == request.style
                            : grammar->agent == call.agent && CallsAgent(call.agent, request);
    if (wanted) grammar->write(call, request, held, out);
  }
  return out;
}

void AgentText::Set(std::string_view key, std::optional<std::string_view> value) {
  if (!IsAgentKey(key)) return;
  if (!value) {
    values_.erase(key);
  } else if (values_.size() < kMaxKeys || values_.contains(key)) {
    values_.insert_or_assign(key, *value);
  } else {
    too_many_ = true;
  }
}

std::string_view AgentText::first_key() const {
  return values_.empty() ? std::string_view() : values_.begin()->first;
}

absl::StatusOr<std::optional<Allocation>> AgentText::Devices(const PodRequest& request,
                                                             const NodeName& node) const {
  if (values_.empty() || node.empty()) return std::nullopt;
  if (too_many_) {
    return absl::InvalidArgumentError(
        fmt::format("expected at most {} keys of node agents, found more", kMaxKeys));
  }
  for (const auto& [key, value] : values_) {
    if (value.size() > kMaxValueBytes) {
      return ErrorAt(fmt::format("at most {} bytes", kMaxValueBytes), value, key);
    }
  }
  const AgentGrammar* source = nullptr;
  std::optional<Allocation> found;
  for (const AgentGrammar* grammar : kGrammars) {
    if (!Concerns(*grammar, request.style)) continue;
    TRANCHE_ASSIGN_OR_RETURN(std::vector<ContainerDevices> containers,
                             grammar->read(values_, request));
    std::erase_if(containers, std::not_fn(HasDevices));
    if (containers.empty()) continue;
    TRANCHE_RETURN_IF_ERROR(CheckNode(*grammar, values_, node));
    // The results of a style may stand beside those of an agent that reads every pod, and say
    // less.
    if (found && grammar->agent == AgentKind::kNone) continue;
    if (found) {
      return absl::InvalidArgumentError(
          fmt::format("expected the devices of one agent, found those of {} and {}",
                      AgentName(source->agent), AgentName(grammar->agent)));
    }
    source = grammar;
    found.emplace();
    found->knowledge = Knowledge::kExact;
    found->containers = std::move(containers);
  }
  return found;
}

AgentProgress AgentText::Progress(const PodRequest& request) const {
  AgentProgress result = AgentProgress::kUnknown;
  for (const AgentGrammar* grammar : kGrammars) {
    if (!Concerns(*grammar, request.style)) continue;
    const AgentProgress progress = grammar->progress(values_);
    if (Lag(progress) > Lag(result)) result = progress;
  }
  return result;
}

bool IsResultKey(std::string_view key) {
  if (key == kAllocationKey || IsAgentKey(key)) return true;
  if (std::find(kOtherKeys.begin(), kOtherKeys.end(), key) != kOtherKeys.end()) return true;
  return key.starts_with(kHamiPrefix) &&
         std::any_of(kHamiSuffixes.begin(), kHamiSuffixes.end(),
                     [&](std::string_view suffix) { return key.ends_with(suffix); });
}

}  // namespace tranche::wire
