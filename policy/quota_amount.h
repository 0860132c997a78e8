// One amount of a GPUQuota line as it was written: gpus, MIG slices or memory.
#pragma once

#include <string>

#include "policy/field.h"
#include "policy/spec.h"

namespace tranche {

// `model`: the line's, in lower case; empty where it could not be read. Profiles must exist on a
// MIG board of that model and are kept under their canonical names; slices and memory make no sense
// on the line "any".
void ReadQuotaAmount(const Field& field, const std::string& model, QuotaAmount& amount);

}  // namespace tranche
