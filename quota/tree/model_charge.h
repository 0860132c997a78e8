// What one pod holds of GPUs of one model, in quota's unit; of a pool, where quotas or budgets tell
// its GPUs apart.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "policy/line_name.h"
#include "quota/tree/charge.h"
#include "quota/tree/limits.h"

namespace tranche {

struct ModelCharge {
  std::string model;  // by policy/line_name.h, never `any`
  Charge charge;
  friend bool operator==(const ModelCharge&, const ModelCharge&) = default;
};

// Adds the part to a sum, which is ascending by model and stays so. Saturates.
inline void Add(std::vector<ModelCharge>& sum, const ModelCharge& part) {
  const auto at = std::ranges::lower_bound(sum, part.model, {}, &ModelCharge::model);
  if (at == sum.end() || at->model != part.model) {
    sum.insert(at, part);
  } else {
    at->charge = AddSaturating(at->charge, part.charge);
  }
}

// The same charge on a node of that pool.
inline void PutIntoPool(std::vector<ModelCharge>& parts, std::string_view pool) {
  for (ModelCharge& part : parts) part.model = LineName(PartsOf(part.model).model, pool);
}

}  // namespace tranche
