// What one pod holds of GPUs of one model, in quota's unit.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "quota/tree/charge.h"
#include "quota/tree/limits.h"

namespace tranche {

struct ModelCharge {
  std::string model;
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

}  // namespace tranche
