// What one round of statuses is about: the engine's views and what is wrong with objects, to be
// found by name.
//
// A value that points into itself; any thread. Cost: O(n log n) once, then O(log n) a question.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/advice/right_size.h"
#include "scheduler/engine/engine.h"
#include "scheduler/foresight/forecast.h"
#include "scheduler/host/policy_intake.h"
#include "scheduler/wire/records/object_status.h"

namespace tranche {

class StatusSnapshot {
 public:
  struct Parts {
    std::vector<QuotaView> quotas;
    std::vector<BudgetReport> budgets;
    std::vector<std::pair<PodUid, Reason>> waiting;
    std::map<std::string, int64_t> pods_by_class;
    std::shared_ptr<const PolicyIntake::Objects> policy_objects;
    std::vector<Finding> history;  // what became of earlier ledgers' balances
    // What running work could ask for instead; null: nobody looks.
    std::shared_ptr<const std::vector<RightSize>> right_sizes;
    std::shared_ptr<const Forecasts> forecasts;  // as they were made last; null: none were
  };
  explicit StatusSnapshot(Parts parts);
  StatusSnapshot(const StatusSnapshot&) = delete;
  StatusSnapshot& operator=(const StatusSnapshot&) = delete;

  const Parts& parts() const { return parts_; }
  // nullptr: the engine has none of that name.
  const QuotaView* Quota(std::string_view name) const;
  const BudgetReport* Budget(std::string_view name) const;
  // What is to be said of one object: of its declaration, of what runs, of its past.
  std::vector<const Finding*> FindingsOf(std::string_view kind, std::string_view name) const;
  // Those that meter the quota's work: its own and its ancestors', and those of a namespace; in
  // the order of parts().budgets. `ns` may be empty.
  std::vector<const BudgetReport*> BudgetsOf(const QuotaView& view, std::string_view ns) const;
  // Of the pods of a namespace, the most saved first.
  std::span<const RightSize* const> RightSizesOf(std::string_view ns) const;
  // Of the pods of a namespace, the next first, at most so many; rounded for `now`. Cost:
  // O(pods of the namespace that wait).
  std::vector<wire::ExpectedStart> StartsOf(const std::string& ns, std::size_t most,
                                            Instant now) const;

 private:
  void Index(const std::vector<Finding>& findings);

  const Parts parts_;
  const std::vector<Finding> live_;  // what only the running cluster shows
  std::map<std::string_view, const QuotaView*> quotas_;
  std::map<std::string_view, const BudgetReport*> budgets_;
  std::map<std::string_view, std::vector<const BudgetReport*>> of_quota_;
  std::map<std::string_view, std::vector<const BudgetReport*>> of_namespace_;
  std::map<std::string_view, std::vector<const RightSize*>> right_sizes_;  // by namespace
  // By kind and name, in the order in which they are said.
  std::map<std::pair<std::string_view, std::string_view>, std::vector<const Finding*>> findings_;
};

}  // namespace tranche
