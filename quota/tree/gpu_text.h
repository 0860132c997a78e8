// Quanta, or what is allowed of them, as people read them: GPUs with at most three decimals.
#pragma once

#include <string>

#include "topology/base/limit.h"

namespace tranche {

// "7.5", "12", "0.143", "-2"; rounded up (what is used) or down (what can be had), so that the text
// never promises more than there is. Without a limit: "unlimited".
std::string GpusRoundedUp(Limit limit);
std::string GpusRoundedDown(Limit limit);

}  // namespace tranche
