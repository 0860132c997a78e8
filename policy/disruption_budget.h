// PodDisruptionBudgets: how many more pods may be evicted now.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "policy/selector.h"

namespace tranche {

struct DisruptionBudget {
  std::string ns;
  std::string name;
  // spec.selector; an empty one matches every pod of the namespace, an absent one none (policy/v1).
  std::optional<LabelSelector> selector;
  int64_t allowed = 0;              // status.disruptionsAllowed, at least 0
  std::set<std::string> disrupted;  // names in status.disruptedPods: counted already
  friend bool operator==(const DisruptionBudget&, const DisruptionBudget&) = default;

  bool Covers(const std::string& pod_ns, const std::string& pod_name, const Labels& labels) const;
};

// `json`: a whole policy/v1 object. Unknown fields are ignored; a budget that has no status yet
// allows nothing.
absl::StatusOr<DisruptionBudget> DecodeDisruptionBudget(std::string_view json);

}  // namespace tranche
