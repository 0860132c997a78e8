// Where a waiting pod stands, as JSON: GET /api/v1/rank/NAMESPACE/POD.
//
// Pure functions, any thread.
#pragma once

#include <string>

#include "scheduler/engine/state/views.h"

namespace tranche {

// `team`: the pod's; null: it has none.
std::string EncodeRank(const RankView& rank, const QuotaView* team);

}  // namespace tranche
