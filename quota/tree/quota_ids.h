// Places of quotas and of their lines in a quota tree.
#pragma once

#include <cstdint>

#include "topology/base/ids.h"

namespace tranche {

using QuotaId = Index<struct QuotaTag, int32_t>;
inline constexpr QuotaId kNoQuota{-1};

// One GPU model that some quota names, or `any`.
using LineId = Index<struct LineTag, int32_t>;
inline constexpr LineId kAnyLine{0};
inline constexpr LineId kNoLine{-1};  // of a model that no quota names; sorts below `any`

}  // namespace tranche
