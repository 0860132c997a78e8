// The policies "tranche+<k>": the values, the choice and the moves of scheduler/scoring called
// directly on the benchmark's fleet, since the engine moves no pods.
#pragma once

#include "bench/mig/policies.h"

namespace tranche::bench {

// `moves`: at most so many for 100 accepted requests.
MigPolicyFactory MakeTranchePolicy(const MigMix& mix, bool known, int moves);

}  // namespace tranche::bench
