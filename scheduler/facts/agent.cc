#include "scheduler/facts/agent.h"

#include <algorithm>
#include <iterator>

namespace tranche {
namespace {

int64_t DevicesOf(const PodRequest& request) {
  int64_t sum = 0;
  for (const Ask& ask : request.asks) sum += ask.count;
  return sum;
}

int64_t UnitsOf(const PodRequest& request) {
  int64_t sum = 0;
  for (const Ask& ask : request.asks) sum += ask.memory.value * ask.count;
  return sum;
}

// Styles that tell no agent how to divide a card: any node will do that has cards to give.
bool IsAgentless(RequestStyle style) {
  switch (style) {
    case RequestStyle::kNative:
    case RequestStyle::kTranche:
    case RequestStyle::kKai:
    case RequestStyle::kOpenGpuShare:
    case RequestStyle::kHived:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view AgentName(AgentKind kind) {
  // In the order of AgentKind.
  static constexpr std::string_view kNames[] = {
      "none",     "hami",        "4pd",          "volcano",     "volcano-gpushare", "gpushare",
      "tkestack", "elastic-gpu", "vgpu-manager", "koordinator", "tranche-node"};
  static_assert(std::size(kNames) == kAgentKinds);
  return kNames[static_cast<std::size_t>(kind)];
}

bool Serves(AgentKind agent, RequestStyle style) {
  switch (agent) {
    case AgentKind::kNone:
    case AgentKind::kTranche:
      return IsAgentless(style);
    case AgentKind::kHami:
    case AgentKind::kFourPd:
      return style == RequestStyle::kHami || IsAgentless(style);
    case AgentKind::kKoordinator:
      return style == RequestStyle::kKoordinator || IsAgentless(style);
    case AgentKind::kVolcano:
      return style == RequestStyle::kVolcano;
    case AgentKind::kVolcanoOld:
      return style == RequestStyle::kVolcanoOld;
    case AgentKind::kGpushare:
      return style == RequestStyle::kGpushare;
    case AgentKind::kTkestack:
      return style == RequestStyle::kTkestack;
    case AgentKind::kElastic:
      return style == RequestStyle::kElastic;
    case AgentKind::kVgpuManager:
      return style == RequestStyle::kVgpuManager;
  }
  return false;
}

bool CallsAgent(AgentKind agent, const PodRequest& request) {
  if (agent == AgentKind::kNone) return false;
  if (agent == AgentKind::kKoordinator) return true;
  return std::ranges::any_of(request.containers, [](const ContainerInfo& container) {
    return container.plugin_count > 0;
  });
}

std::optional<int64_t> SlotOf(AgentKind agent, const PodRequest& request) {
  if (!CallsAgent(agent, request)) return std::nullopt;
  switch (agent) {
    case AgentKind::kHami:
    case AgentKind::kFourPd:
    case AgentKind::kVgpuManager:
    // It matches the amount of a container: two of {30, 20} and {30} are alike to it.
    case AgentKind::kTkestack:
      return 0;
    case AgentKind::kVolcano:
      return DevicesOf(request);
    case AgentKind::kGpushare:
    case AgentKind::kVolcanoOld:
      return UnitsOf(request);
    case AgentKind::kNone:
    case AgentKind::kElastic:
    case AgentKind::kKoordinator:
    // It asks the kubelet which pod that is.
    case AgentKind::kTranche:
      break;
  }
  return std::nullopt;
}

bool NeedsNodeLock(AgentKind agent, int minor) {
  constexpr int kFirstMinorWithLock = 9;
  return agent == AgentKind::kHami && minor >= kFirstMinorWithLock;
}

bool OutlivesItsPod(AgentKind agent) { return agent == AgentKind::kVolcano; }

std::string_view StyleName(RequestStyle style) {
  // In the order of RequestStyle.
  static constexpr std::string_view kNames[] = {
      "none",           "native",   "tranche",     "hami",         "volcano", "volcano-gpushare",
      "gpushare",       "tkestack", "elastic-gpu", "vgpu-manager", "kai",     "koordinator",
      "open-gpu-share", "hived"};
  static_assert(std::size(kNames) == kRequestStyles);
  return kNames[static_cast<std::size_t>(style)];
}

}  // namespace tranche
