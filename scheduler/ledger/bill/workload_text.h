// What made a pod and what its labels say, as far as bills tell pods apart by it, as text of the
// ledger's intervals.
//
// JSON, the same text for equal values. What users write is bounded: a kind and a name of a
// controller, and at most kMostBillLabels labels with values as Kubernetes has them; what is none
// is left out. Read back strictly. Pure functions; cost O(text).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/selector.h"

namespace tranche::ledger {

inline constexpr std::size_t kMostBillLabels = 8;

struct Workload {
  std::string controller;  // "Job/train"; empty: nobody made it, or nobody knows who
  Labels labels;
  friend bool operator==(const Workload&, const Workload&) = default;
};

// {"controller":"Job/train","labels":{"project":"x"}}. `labels` null: none; of them only those
// named in `kept`, the first kMostBillLabels. "": there is nothing to say.
std::string WorkloadText(std::string_view controller, const Labels* labels,
                         const std::vector<std::string>& kept);
// "" is a workload of which nothing is known. Errors: InvalidArgument naming the field.
absl::StatusOr<Workload> ReadWorkloadText(std::string_view text);

}  // namespace tranche::ledger
