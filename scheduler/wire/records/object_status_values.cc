// What statuses are made of, as bytes: whatever is rendered in object_status.cc is told here, in
// the same order of members. Values that drift with every moment are told as they are shown.
#include <cstring>
#include <type_traits>

#include "quota/tree/gpu_text.h"
#include "quota/tree/limits.h"
#include "scheduler/wire/records/object_status.h"

namespace tranche::wire {
namespace {

class Bytes {
 public:
  template <typename Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number> || std::is_same_v<Number, Int128>
      Bytes& operator<<(Number number) {
    char bytes[sizeof(number)];
    std::memcpy(bytes, &number, sizeof(number));
    bytes_.append(bytes, sizeof(number));
    return *this;
  }
  // With its length, so that no two texts run into each other.
  Bytes& operator<<(std::string_view text) {
    *this << text.size();
    bytes_ += text;
    return *this;
  }
  Bytes& operator<<(Instant at) { return *this << at.time_since_epoch().count(); }
  Bytes& operator<<(const Charge& charge) { return *this << charge.compute << charge.memory; }
  Bytes& operator<<(const ChargeLimit& limit) {
    return *this << limit.compute.saturated() << limit.memory.saturated();
  }
  Bytes& operator<<(const StatusHead& head) {
    *this << head.generation << head.conditions.size();
    for (const Condition& condition : head.conditions) {
      *this << condition.type << condition.status << condition.reason << condition.message
            << condition.since << condition.generation;
    }
    return *this;
  }
  // What quotas and teams show of a line.
  Bytes& operator<<(const QuotaLineView& line) {
    return *this << line.name << line.nominal << line.used << line.available;
  }

  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace

std::string QuotaStatus::Values(StatusMembers members) const {
  const QuotaReport& report = view_.report;
  Bytes bytes;
  bytes << head_ << report.lines.size();
  for (const QuotaLineReport& line : report.lines) {
    bytes << line.line << line.line.lent << BorrowedOf(view_, line);
  }
  bytes << report.non_preemptible << view_.pending_workloads << view_.pending_quanta;
  if (members == StatusMembers::kAll) {
    bytes << report.fair_share << TenthsOfGpuHours(report) << checkpoint_()
          << HoursLeft(budgets_, now_);
  }
  return bytes.Take();
}

std::string BudgetStatus::Values(StatusMembers members) const {
  const BudgetView& view = report_.view;
  const bool rolling = IsRolling(report_);
  Bytes bytes;
  bytes << head_ << view.carried_in << view.debt_in << view.effective << view.state
        << view.notified_percent << rolling;
  // A rolling window moves with every moment, and is not shown.
  if (!rolling) bytes << view.window.start << view.window.end;
  if (members == StatusMembers::kAll) {
    bytes << FormatGpuHours(view.used) << FormatGpuHours(view.committed) << view.percent
          << (rolling ? std::string() : TimeLeft(view.window.end - now_))
          << view.exhausts_at.has_value() << view.exhausts_at.value_or(Instant()) << checkpoint_();
  }
  return bytes.Take();
}

std::string ClassStatus::Values(StatusMembers /*members*/) const {
  return (Bytes() << head_ << pods_).Take();
}

std::string PolicyStatus::Values(StatusMembers /*members*/) const {
  return (Bytes() << head_).Take();
}

std::string TeamViewStatus::Values(StatusMembers members) const {
  const QuotaReport& report = view_.report;
  Bytes bytes;
  bytes << report.name << report.lines.size();
  for (const QuotaLineReport& line : report.lines) bytes << line.line;
  bytes << report.workloads_borrowed << view_.pending_quanta;
  if (members == StatusMembers::kAll) {
    bytes << HoursLeft(budgets_, now_);
    for (const RightSize* entry : ShownRightSizes()) {
      bytes << entry->pod.name << WordsOf(*entry) << RequestText(entry->would_do).value;
    }
    for (const ExpectedStart& start : starts_()) {
      bytes << start.pod << start.from << start.at << start.to;
    }
  }
  return bytes.Take();
}

}  // namespace tranche::wire
