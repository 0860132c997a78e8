// How many pods a PodDisruptionBudget lets go now, worked out from its spec: for budgets that were
// applied without a status, as a cluster's disruption controller would write it.
//
// Expected are the pods under the selector that are not finished; healthy are those of them that
// run and are not being deleted. So `maxUnavailable: 1` is: one at a time. (A real cluster takes
// the number expected from the pods' controllers, of which none run here.)
//
// A plain value. Cost: O(log pods) for each pod seen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "policy/selector.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/json/json.h"

namespace tranche::embedded {

class DerivedBudget {
 public:
  // A policy/v1 object. Errors: InvalidArgument naming field and value.
  static absl::StatusOr<DerivedBudget> Read(wire::Element object);
  // Whether the object brings a status of its own, which then counts and is not worked out.
  static bool IsStated(wire::Element object);

  // A pod of the budget's namespace as it is now. Its name alone tells it from others.
  void See(const PodFacts& pod, const Labels& labels);
  void Forget(const std::string& pod_name);
  // The status as a JSON object, if it is another than the one taken last.
  std::optional<std::string> TakeStatus();

 private:
  // spec.minAvailable or spec.maxUnavailable; a budget with neither lets nobody go.
  struct Limit {
    bool available = false;  // minAvailable
    bool percent = false;
    int64_t amount = 0;
  };
  static absl::StatusOr<Limit> ReadLimit(wire::Element object);
  int64_t Desired() const;  // healthy pods

  std::optional<LabelSelector> selector_;  // nullopt: no pod
  Limit limit_;
  std::map<std::string, bool> pods_;  // name -> is it healthy, of those expected
  int64_t healthy_ = 0;
  std::string taken_;
};

}  // namespace tranche::embedded
