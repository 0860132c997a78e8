// What the agent sees of its node at one moment: plain values, put together by the shell from the
// API server, the kubelet and the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/facts/allocation.h"
#include "topology/base/ids.h"

namespace tranche::agent {

// A container that asks for the agent's resource.
struct Asking {
  std::string name;
  int64_t count = 0;  // devices of the resource
  bool init = false;  // ends before the next one starts; a sidecar does not
  // Of the variables that the agent sets, those that its own environment sets, which counts more.
  std::vector<std::string> own_variables = {};
  friend bool operator==(const Asking&, const Asking&) = default;
};

// A pod that is bound to this node and has not ended, as the API server says.
struct BoundPod {
  PodName name;
  PodUid uid;
  // The kubelet has written its start time, which it does after admission alone.
  bool acknowledged = false;
  std::vector<Asking> asking;        // in the kubelet's order: init containers first
  std::optional<Allocation> record;  // nullopt: none, or one that cannot be read
  std::string record_problem;        // why there is none
  friend bool operator==(const BoundPod&, const BoundPod&) = default;
};

// Devices of the agent's resource that a container holds, as the kubelet says.
struct Holding {
  std::string container;
  std::vector<std::string> ids;  // ascending
  friend bool operator==(const Holding&, const Holding&) = default;
};

// A pod the kubelet knows. It names no uid: a pod and its successor of the same name are two.
struct KubeletPod {
  PodName name;
  std::vector<Holding> holdings;     // only those with ids
  std::vector<Holding> others = {};  // of the agent's other resources
  friend bool operator==(const KubeletPod&, const KubeletPod&) = default;
};

// What a card in MIG mode can be cut into.
struct MigOffer {
  std::string profile;  // as the driver spells it
  int64_t mib = 0;      // of memory
  int size = 0;         // in memory units
  std::vector<int> starts;
  friend bool operator==(const MigOffer&, const MigOffer&) = default;
};

struct ClosedPlace {
  MigDevice place;
  std::string why;
  friend bool operator==(const ClosedPlace&, const ClosedPlace&) = default;
};

struct Card {
  GpuUuid uuid;
  std::string problem;  // why it is closed for new work; empty: healthy
  int index = 0;        // in the order in which the agent first saw them; never reused
  int64_t mib = 0;      // of memory; 0: the driver does not say
  std::string type = {};
  // Its MIG mode is on, and the agent makes instances on it. It is never given whole.
  bool mig = false;
  // Containers that may use it at a time, each its part, to which MPS holds it. 0: given whole.
  int slots = 0;
  std::vector<MigOffer> offers = {};
  std::vector<ClosedPlace> closed = {};  // for new instances
  friend bool operator==(const Card&, const Card&) = default;
};

// The variables of a container by which it is given its GPUs and, where they are shared, its parts.
inline constexpr std::string_view kVisibleVariable = "NVIDIA_VISIBLE_DEVICES";
inline constexpr std::string_view kMpsPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";
inline constexpr std::string_view kMpsMemoryVariable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
inline constexpr std::string_view kMpsThreadsVariable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";

struct Look {
  // nullopt: the API server did not answer.
  std::optional<std::vector<BoundPod>> pods;
  std::vector<KubeletPod> kubelet;
  std::vector<Card> cards;
};

}  // namespace tranche::agent
