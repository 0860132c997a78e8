// Places of quotas and of their lines in a quota tree.
#pragma once

#include <cstdint>

#include "topology/base/ids.h"

namespace tranche {

using QuotaId = Index<struct QuotaTag, int32_t>;
inline constexpr QuotaId kNoQuota{-1};

// A line that some quota has, by its name: a GPU model, one in a pool, or `any`.
using LineId = Index<struct LineTag, int32_t>;
inline constexpr LineId kAnyLine{0};
inline constexpr LineId kNoLine{-1};  // of what no quota has a line for; sorts below `any`

}  // namespace tranche
