// What one pod holds of GPUs of one model, in quota's unit.
#pragma once

#include <string>

#include "quota/charge.h"

namespace tranche {

struct ModelCharge {
  std::string model;
  Charge charge;
  friend bool operator==(const ModelCharge&, const ModelCharge&) = default;
};

}  // namespace tranche
