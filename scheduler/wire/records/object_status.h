// The statuses and conditions of our own objects, as JSON: GPUQuota, GPUBudget, GPUClass, GPUPolicy
// and GPUQuotaView (quota-model section 8).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/advice/right_size.h"
#include "scheduler/engine/engine.h"

namespace tranche::wire {

// A condition of an object's status.
struct Condition {
  std::string type;
  bool status = false;
  std::string reason;   // CamelCase
  std::string message;  // may be empty
  Instant since;
  int64_t generation = 0;
};

// Some members drift with time and need no prompt write; a text without them shows by comparison
// whether one is due.
enum class StatusMembers { kAll, kPrompt };

// What the status of an object is made of, and its JSON.
//
// References and spans live as long as it does. A value; any thread.
class ObjectStatus {
 public:
  ObjectStatus() = default;
  ObjectStatus(const ObjectStatus&) = delete;
  ObjectStatus& operator=(const ObjectStatus&) = delete;
  virtual ~ObjectStatus() = default;
  // Members of an ObjectWrite: "\"status\":{...}".
  virtual std::string Text(StatusMembers members) const = 0;
  // Whatever Text(members) reads, as bytes: where they are equal, so is the text. Never empty, and
  // cheap: no JSON is made.
  virtual std::string Values(StatusMembers members) const = 0;
};

// What all but views say: conditions, and which version of the object they are about.
struct StatusHead {
  std::vector<Condition> conditions;
  int64_t generation = 0;
};

// `checkpoint` of the next two: a member that drifts, as JSON; "": none. It is asked for only with
// kAll.
class QuotaStatus : public ObjectStatus {
 public:
  // `budgets`: those that meter the quota.
  QuotaStatus(const QuotaView& view, std::span<const BudgetReport* const> budgets, Instant now,
              StatusHead head, std::function<std::string()> checkpoint)
      : view_(view),
        budgets_(budgets),
        now_(now),
        head_(std::move(head)),
        checkpoint_(std::move(checkpoint)) {}
  std::string Text(StatusMembers members) const override;
  std::string Values(StatusMembers members) const override;

 private:
  const QuotaView& view_;
  const std::span<const BudgetReport* const> budgets_;
  const Instant now_;
  const StatusHead head_;
  const std::function<std::string()> checkpoint_;
};

class BudgetStatus : public ObjectStatus {
 public:
  BudgetStatus(const BudgetReport& report, Instant now, StatusHead head,
               std::function<std::string()> checkpoint)
      : report_(report), now_(now), head_(std::move(head)), checkpoint_(std::move(checkpoint)) {}
  std::string Text(StatusMembers members) const override;
  std::string Values(StatusMembers members) const override;

 private:
  const BudgetReport& report_;
  const Instant now_;
  const StatusHead head_;
  const std::function<std::string()> checkpoint_;
};

class ClassStatus : public ObjectStatus {
 public:
  ClassStatus(int64_t pods, StatusHead head) : pods_(pods), head_(std::move(head)) {}
  std::string Text(StatusMembers members) const override;
  std::string Values(StatusMembers members) const override;

 private:
  const int64_t pods_;
  const StatusHead head_;
};

class PolicyStatus : public ObjectStatus {
 public:
  explicit PolicyStatus(StatusHead head) : head_(std::move(head)) {}
  std::string Text(StatusMembers members) const override;
  std::string Values(StatusMembers members) const override;

 private:
  const StatusHead head_;
};

// When a pod that waits is expected to start, as it is shown.
struct ExpectedStart {
  std::string pod;  // its name
  Instant from;     // with a chance of 80 % between this
  Instant at;
  Instant to;  // and this
};
// Rounded the more the further away, from minutes to half days: a status that changed with every
// forecast would be written as often.
ExpectedStart Rounded(ExpectedStart start, Instant now);

// What a team sees of its leaf, in a GPUQuotaView.
class TeamViewStatus : public ObjectStatus {
 public:
  // The most pods that it says could ask for less, or start; the definition takes no more.
  static constexpr std::size_t kMostPods = 10;
  // Of pods of its namespace, the next first, rounded.
  using Starts = std::function<std::vector<ExpectedStart>()>;

  // `budgets`: those that meter the team. `right_sizes`: of pods of its namespace.
  TeamViewStatus(const QuotaView& view, std::span<const BudgetReport* const> budgets, Instant now,
                 std::span<const RightSize* const> right_sizes, Starts starts)
      : view_(view),
        budgets_(budgets),
        now_(now),
        right_sizes_(right_sizes),
        starts_(std::move(starts)) {}
  std::string Text(StatusMembers members) const override;
  std::string Values(StatusMembers members) const override;

 private:
  std::span<const RightSize* const> ShownRightSizes() const;

  const QuotaView& view_;
  const std::span<const BudgetReport* const> budgets_;
  const Instant now_;
  const std::span<const RightSize* const> right_sizes_;
  const Starts starts_;
};

// "388 / 1200, resets in 9d" of the tightest budget; "" without one.
std::string HoursLeft(std::span<const BudgetReport* const> budgets, Instant now);

// What the API shows in the same way.
std::string_view BudgetStateName(BudgetState state);
// The borrowed part of a line: of a leaf its borrowed work, of an inner quota what it takes from
// outside.
int64_t BorrowedOf(const QuotaView& view, const QuotaLineReport& line);
// Decayed use as it is shown; more digits of it change with every moment.
int64_t TenthsOfGpuHours(const QuotaReport& report);
bool IsRolling(const BudgetReport& report);
// "9d", "5h", "12m": the largest unit that says something, rounded down.
std::string TimeLeft(Millis left);

}  // namespace tranche::wire
