// What a team can count on, as a sentence for people.
//
// Pure.
#pragma once

#include <string>

#include "scheduler/engine/state/views.h"

namespace tranche {

// "a pod of up to 8 h100 GPUs starts within 15m".
std::string ReachText(const LineReach& reach);

}  // namespace tranche
