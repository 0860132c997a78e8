// A reason in words, for people: of a node it says what is wrong with it, of a pod that no node is
// better than that.
//
// Pure; any thread. kube-scheduler is told the fixed texts of reason.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "scheduler/facts/reason.h"

namespace tranche {

enum class SaidOf : uint8_t { kNode, kPod };

// A pod's reason is that of the nodes which come closest to taking it.
std::string_view TextOf(Reason reason, SaidOf whom);

}  // namespace tranche
