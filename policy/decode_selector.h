// Label selectors of objects -> LabelSelector.
#pragma once

#include <optional>

#include "policy/field.h"
#include "policy/selector.h"

namespace tranche {

// Kubernetes' form: matchLabels, matchExpressions with key, operator, values.
void ReadSelector(const Field& field, std::optional<LabelSelector>& target);

}  // namespace tranche
