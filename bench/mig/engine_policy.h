// The policy "tranche": the engine that answers kube-scheduler, called as the server calls it, with
// the cluster told to it as a watch would.
//
// Every GPU is a node of its own whose layout is planned, named in the fleet's order. A request is
// a pod: seen pending, filtered over all nodes, bound to the first of the answer, seen bound, and
// gone at the end of its life. After an arrival the engine learns until nothing is left to do, as a
// server does between verbs that are this far apart.
#pragma once

#include "bench/mig/policies.h"

namespace tranche::bench {

// `known`: the engine has seen many arrivals of the mix before the first one of the run.
MigPolicyFactory MakeEnginePolicy(const MigMix& mix, bool known);

}  // namespace tranche::bench
