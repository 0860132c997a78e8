// Node agents: the programs that divide a node's GPUs as a pod's annotations say.
//
// A node has one agent at most. Each serves the request styles it was made for, finds the pod it is
// called for by a rule of its own, and says in the pod's annotations when it is done.
// Source: request-dialects sections 2, 4-12, 15.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/facts/allocation.h"
#include "scheduler/facts/pod_request.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

enum class AgentKind : uint8_t {
  kNone,         // the stock device plugin, or nothing
  kHami,         // Project-HAMi/HAMi 2.4 and later
  kFourPd,       // 4paradigm/k8s-vgpu-scheduler, HAMi's ancestor
  kVolcano,      // Project-HAMi/volcano-vgpu-device-plugin
  kVolcanoOld,   // volcano.sh/gpu-memory, gpu-number
  kGpushare,     // AliyunContainerService/gpushare-device-plugin
  kTkestack,     // tkestack/gpu-manager
  kElastic,      // elastic-ai/elastic-gpu-agent
  kVgpuManager,  // coldzerofear/vgpu-manager
  kKoordinator,  // koordinator-sh/koordinator: koordlet
  kTranche,      // tranche-node: cards and instances, by the record itself
};
inline constexpr int kAgentKinds = 11;
std::string_view AgentName(AgentKind kind);  // "none", "hami", "4pd", "volcano", ...

// A MIG profile an agent cuts by itself.
struct AgentMigProfile {
  std::string name;
  Mebibytes memory;
  int cores_percent = 0;
  std::vector<std::pair<int, int>> placements;  // start, size
  friend bool operator==(const AgentMigProfile&, const AgentMigProfile&) = default;
};

struct AgentDevice {
  GpuUuid uuid;           // empty: the agent goes by index
  int index = 0;          // the minor number
  int slots = 0;          // how many containers may share it; 0: no limit
  Mebibytes memory;       // as the agent counts it, already scaled
  int cores_percent = 0;  // 100, or more where the agent scales cores
  std::string type;       // "NVIDIA-NVIDIA A100-SXM4-40GB"; empty: as the node's label says
  std::optional<int> numa;
  std::string mode;  // "hami-core", "mig", "mps"; empty: has none
  bool healthy = false;
  std::vector<AgentMigProfile> mig_profiles;
  // tranche-node: places where it makes no instance, since one that it cannot tell or cannot remove
  // is there, or the driver failed to make one.
  std::vector<MigDevice> closed;
  friend bool operator==(const AgentDevice&, const AgentDevice&) = default;
};

// What the agent of a node says of its devices, or what its advertised amounts amount to.
struct AgentRegister {
  AgentKind kind = AgentKind::kHami;
  // HAMi: the oldest minor version that writes this form: 4 (text), 9 (JSON; 2.8 looks the same),
  // 10 (JSON with migProfiles). 0 of others.
  int minor = 0;
  Mebibytes memory_unit = Mebibytes::Of(1);  // what one unit of requested memory is
  std::vector<AgentDevice> devices;          // ascending index
  friend bool operator==(const AgentRegister&, const AgentRegister&) = default;
};

// May pods of this style run on a node with this agent? kNone: on one without. Whether a share is
// enforced there is the policy's matter.
bool Serves(AgentKind agent, RequestStyle style);

// Does kubelet (or the runtime) bring this pod to the agent at all? Device plugins are called for
// containers that ask for the agent's resource, koordlet for every pod.
bool CallsAgent(AgentKind agent, const PodRequest& request);

// Agents that are called without being told for which pod guess it, some from amounts: of pods with
// equal slots only one at a time may be on its way on a node. nullopt: any number may, since the
// agent knows the pod or is never called for it.
std::optional<int64_t> SlotOf(AgentKind agent, const PodRequest& request);

// The agent must be told by a lock on the node for whom it is called (HAMi from 2.9 on; `minor` is
// HAMi's version).
bool NeedsNodeLock(AgentKind agent, int minor);

// The agent looks at what is written for a pod, not at whether the pod has ended: one that it did
// not serve stands before all later ones until its annotations say otherwise (volcano).
bool OutlivesItsPod(AgentKind agent);

// How far the node's agent is with a bound pod.
enum class AgentProgress : uint8_t {
  kUnknown,  // the pod carries no such annotations
  kWaiting,  // written for the agent, not served yet
  kServed,
  kFailed,  // the agent gave up; the kubelet refuses the pod
};

}  // namespace tranche
