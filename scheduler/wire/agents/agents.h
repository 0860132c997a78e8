// What node agents read and write on pods: one grammar each, both ways.
//
// Plain functions and values; any thread. Cost: linear in the texts.
// Source: request-dialects sections 4.3, 5-13, 15, 16; hazard 57.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/agent.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/pod_request.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche::wire {

// What a Binding's annotations need to know beside the request and its devices.
struct AgentCall {
  AgentKind agent = AgentKind::kNone;
  int minor = 0;  // HAMi's version
  std::string_view node;
  Mebibytes memory_unit = Mebibytes::Of(1);
  std::vector<Mebibytes> card_memory;  // of the node's cards, by Device::card
  Instant now;
  int64_t stamp = 0;  // unix nanoseconds, above that of every earlier call for this node
};

// The keys the agent reads, for the Binding; empty for kNone and where the agent is not called.
// Styles without an agent of their own (open-gpu-share, HiveD) get their result keys on any node.
// Cores are written in percent, rounded down but at least 1 of a share that has any, since 0 means
// "no limit" to every agent. HAMi before 2.9, 4pd and Volcano have no place for init containers.
// Requires: the agent serves the request; devices have a UUID where the agent goes by UUIDs (hami,
// 4pd, volcano, vgpu-manager); MIG devices only for HAMi from minor 10 on (left out otherwise where
// koordlet is told of every pod's cards).
std::map<std::string, std::string> AgentAnnotations(const AgentCall& call,
                                                    const PodRequest& request,
                                                    const Allocation& allocation);

// The annotations of a pod that agents and their schedulers write. Views point into the document.
class AgentText {
 public:
  // Keeps the annotation if it is one of these; nullopt takes it away.
  void Set(std::string_view key, std::optional<std::string_view> value);
  bool empty() const { return values_.empty(); }
  // The first such key, in key order; empty: none. What a user may not set (hazard 57).
  std::string_view first_key() const;

  // The devices that the keys of the pod's request style and of the agents that serve it name, by
  // container; epoch 0, exact. Keys of other styles say nothing about this pod. Device::card is the
  // index where the text tells it, else 0 and to be resolved by UUID; uuid is empty where it goes
  // by index alone. Amounts are lower bounds of what was given: zero where the text does not tell,
  // MiB where it counts in a unit of the agent's. nullopt: no devices are named, or the pod has no
  // node and so holds none. Reads request.style, containers and asks.
  // Errors: InvalidArgument naming key, container, device and value found; also where the keys name
  // another node than `node`, the pod's own: they are a copy then.
  absl::StatusOr<std::optional<Allocation>> Devices(const PodRequest& request,
                                                    const NodeName& node) const;
  // What they say of how far the agent is; of several, the one that is furthest behind.
  AgentProgress Progress(const PodRequest& request) const;

 private:
  std::map<std::string_view, std::string_view> values_;
  bool too_many_ = false;  // more keys than any agent writes; the rest was dropped
};

// What tells the agent that it is done with a pod, served or not; empty: it looks at the pod's
// phase as well and needs no telling (see OutlivesItsPod).
std::map<std::string, std::string> ServedAnnotations(AgentKind agent);

// True for every annotation key a scheduler or an agent writes as a result, of ours and of theirs.
bool IsResultKey(std::string_view key);

}  // namespace tranche::wire
