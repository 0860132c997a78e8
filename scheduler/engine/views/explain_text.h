// Reasons in words for people: what a request asks, what of a node stands in its way, and what
// would change the answer.
//
// Pure: the same values give the same text. Any thread. Cost: a node's devices once.
#pragma once

#include <string>
#include <vector>

#include "policy/spec.h"
#include "scheduler/engine/state/records.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/inventory.h"
#include "topology/base/units.h"

namespace tranche {

// What would change the answer; empty: nothing anybody could do.
std::string AdviceFor(Reason reason);
// Why nobody is evicted for such a pod though others would have to end; empty: somebody might be.
std::string WhyNobodyGoes(const RequestContext& context);
// What about this node stands in the way, with numbers. Requires: `reason` is not kNone.
std::string DescribeMisfit(const NodeEntry& entry, const PodRequest& request,
                           const GpuPolicy& policy, Reason reason, Instant now);
// Why the node is closed. Requires: as kOperatorBusy.
std::string DescribeBusy(const NodeEntry& entry);
// What maintenance the node has, from when to when; empty: none.
std::string DescribeMaintenance(const NodeEntry& entry);
// By which taint the node is about to be taken away; empty: it is not.
std::string DescribeInterruption(const NodeEntry& entry);
// What capacity types the class runs on, and of which the node is.
std::string DescribeCapacity(const NodeEntry& entry, const GpuClass& gpu_class);
// The request in a few words: "1 GPU", "0.5 GPU", "2 x 1g.10gb".
std::string DescribeRequest(const PodRequest& request);
// What its containers set of MPS themselves, and what becomes of it on the node: a sentence each.
// `inventory` null: it has no node.
std::vector<std::string> DescribeOwnLimits(const PodRequest& request, const Inventory* inventory);

}  // namespace tranche
