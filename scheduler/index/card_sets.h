// Which whole cards of a node a pod gets, where it is known how they are connected.
//
// Where an agent obeys us, the best set by the table of the node's machine. Where the device plugin
// chooses, what it will choose by its rule; a pod whose rules that choice breaks is kept away, even
// if a better set is free. On nodes whose kubelet aligns GPUs and pinned CPUs with NUMA nodes, only
// what it would admit. Source: gpu-topology sections 4 to 7.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/spec.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"
#include "topology/machine/machine_table.h"

namespace tranche {

struct SetAnswer {
  Reason reason = Reason::kNone;
  // kNone: what to take; nullopt: it makes no difference, or nothing is known.
  std::optional<SetChoice> choice;
  // Of several containers on a node whose device plugin chooses: what each ask gets of it, empty
  // for those that get none; empty: it makes no difference.
  std::vector<GpuSet> by_ask = {};
};

// What the pod wishes, its own word before the policy's.
TopologyWish WishOf(const PodRequest& request, const GpuPolicy& policy);

SetAnswer ChooseCards(const Inventory& inventory, const Load& load, const PodRequest& request,
                      const GpuPolicy& policy, const CardQuestion& question);

// Whether the cards of a set obey the pod's rules. True where the pod has none.
bool ObeysRules(const Inventory& inventory, const PodRequest& request, const GpuPolicy& policy,
                GpuSet cards);

// Do the pod's rules make sets of cards differ in whether they may be taken?
bool HasSetRules(const PodRequest& request, const GpuPolicy& policy);

// For explain: which link, NUMA node or NIC is in the way, "GPU1-GPU4: SYS where NVLink is
// required"; empty: nothing is.
std::string DescribeBrokenSet(const Inventory& inventory, const PodRequest& request,
                              const GpuPolicy& policy, const CardQuestion& question);

// CPUs the kubelet pins for the pod.
MilliCpu PinnedCpu(const PodRequest& request);

// The picks of a pod whose containers ask for whole cards only, all for as long as it runs, and
// which has these together; nullopt: they do not answer its request.
std::optional<Picks> PicksOn(const Inventory& inventory, const PodRequest& request,
                             const std::vector<GpuUuid>& uuids);

}  // namespace tranche
