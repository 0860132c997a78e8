#include "scheduler/wire/records/object_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "quota/tree/gpu_text.h"
#include "quota/tree/limits.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche::wire {
namespace {

// The API refuses a longer message of a condition than 32 KiB; people read less.
constexpr std::size_t kMostMessage = 1024;

// The most characters of a summary that the definitions take. Names of pools may be long.
constexpr std::size_t kMostSummary = 8192;

// "8 h200, 12 any" of one amount per line; lines without it are left out, and ", ..." stands for
// what there is no room for.
template <typename Amount>
std::string Summary(const QuotaView& view, Amount amount) {
  std::string text;
  for (const QuotaLineReport& line : view.report.lines) {
    const std::string gpus = amount(line);
    if (gpus.empty()) continue;
    const std::string more = fmt::format("{}{} {}", text.empty() ? "" : ", ", gpus, line.line.name);
    constexpr std::string_view kMore = ", ...";
    if (text.size() + more.size() + kMore.size() > kMostSummary) return text.append(kMore);
    text += more;
  }
  return text.empty() ? "0" : text;
}

// What the columns of kubectl get print; quotas without a limit are left out.
std::string NominalText(const QuotaView& view) {
  return Summary(view, [](const QuotaLineReport& line) {
    const Limit nominal = line.line.nominal.Smaller();
    return nominal.amount() ? GpusRoundedDown(nominal) : std::string();
  });
}

std::string NonZero(int64_t quanta) { return quanta == 0 ? "" : GpusRoundedUp(quanta); }

std::string UsedText(const QuotaView& view) {
  return Summary(
      view, [](const QuotaLineReport& line) { return NonZero(GpuEquivalents(line.line.used)); });
}

Json LineJson(const QuotaView& view, const QuotaLineReport& report) {
  const QuotaLineView& line = report.line;
  const LineParts of = PartsOf(line.name);
  Json json = {{"model", of.model},
               {"nominal", GpusRoundedDown(line.nominal.Smaller())},
               {"used",
                {{"gpus", GpusRoundedUp(GpuEquivalents(line.used))},
                 {"qc", line.used.compute},
                 {"qm", line.used.memory}}},
               {"borrowed", GpusRoundedUp(BorrowedOf(view, report))},
               {"lent", GpusRoundedUp(GpuEquivalents(line.lent))},
               {"available", GpusRoundedDown(line.available.Smaller())}};
  if (!of.pool.empty()) json["pool"] = of.pool;
  return json;
}

Json ConditionsJson(std::span<const Condition> conditions) {
  return ListOf(conditions, [](const Condition& condition) -> Json {
    return {{"type", condition.type},
            {"status", condition.status ? "True" : "False"},
            {"observedGeneration", condition.generation},
            {"lastTransitionTime", FormatTime(condition.since)},
            {"reason", condition.reason},
            {"message", condition.message.substr(0, kMostMessage)}};
  });
}

std::string StatusMember(const Json& status) { return "\"status\":" + Dump(status); }

std::string_view Ready(std::span<const Condition> conditions) {
  for (const Condition& condition : conditions) {
    if (condition.type == "Ready") return condition.status ? "True" : "False";
  }
  return "Unknown";
}

}  // namespace

std::string_view BudgetStateName(BudgetState state) {
  switch (state) {
    case BudgetState::kOk:
      return "OK";
    case BudgetState::kWarning:
      return "Warning";
    case BudgetState::kExhausted:
      return "Exhausted";
  }
  return "";
}

int64_t BorrowedOf(const QuotaView& view, const QuotaLineReport& line) {
  return GpuEquivalents(view.report.leaf ? line.marked_borrowed : line.line.borrowed);
}

int64_t TenthsOfGpuHours(const QuotaReport& report) { return report.decayed_milli_gpu_hours / 100; }

bool IsRolling(const BudgetReport& report) {
  return report.spec.window.type == BudgetWindow::Type::kRolling;
}

std::string TimeLeft(Millis left) {
  const int64_t hours = std::chrono::duration_cast<std::chrono::hours>(left).count();
  if (hours >= 48) return fmt::format("{}d", hours / 24);
  if (hours >= 1) return fmt::format("{}h", hours);
  return fmt::format("{}m", std::chrono::duration_cast<std::chrono::minutes>(left).count());
}

std::string QuotaStatus::Text(StatusMembers members) const {
  const QuotaReport& report = view_.report;
  const std::string pending = GpusRoundedUp(view_.pending_quanta);
  const auto line_json = [this](const QuotaLineReport& line) { return LineJson(view_, line); };
  Json status = {{"observedGeneration", head_.generation},
                 {"lines", ListOf(report.lines, line_json)},
                 {"nonPreemptible", GpusRoundedUp(GpuEquivalents(report.non_preemptible))},
                 {"pending", {{"workloads", view_.pending_workloads}, {"gpus", pending}}}};
  if (members == StatusMembers::kAll) {
    const int64_t decayed = TenthsOfGpuHours(report);
    status["fairShare"] = GpusRoundedDown(report.fair_share);
    status["decayedUsage"] = fmt::format("{}.{}", decayed / 10, decayed % 10);
    const std::string checkpoint = checkpoint_();
    if (!checkpoint.empty()) status["checkpoint"] = Json::parse(checkpoint);
  }
  const auto borrowed = [this](const QuotaLineReport& line) {
    return NonZero(BorrowedOf(view_, line));
  };
  const auto lent = [](const QuotaLineReport& line) {
    return NonZero(GpuEquivalents(line.line.lent));
  };
  Json& summary = status["summary"] = {{"nominal", NominalText(view_)},
                                       {"used", UsedText(view_)},
                                       {"borrowed", Summary(view_, borrowed)},
                                       {"lent", Summary(view_, lent)},
                                       {"pending", pending},
                                       {"ready", Ready(head_.conditions)}};
  if (members == StatusMembers::kAll) summary["budget"] = HoursLeft(budgets_, now_);
  status["conditions"] = ConditionsJson(head_.conditions);
  return StatusMember(status);
}

std::string BudgetStatus::Text(StatusMembers members) const {
  const BudgetView& view = report_.view;
  Json status = {
      {"observedGeneration", head_.generation}, {"carriedIn", FormatGpuHours(view.carried_in)},
      {"debtIn", FormatGpuHours(view.debt_in)}, {"effective", FormatGpuHours(view.effective)},
      {"state", BudgetStateName(view.state)},   {"notifiedPercent", view.notified_percent}};
  if (!IsRolling(report_)) {
    status["windowStart"] = FormatTime(view.window.start);
    status["windowEnd"] = FormatTime(view.window.end);
  }
  if (members == StatusMembers::kAll) {
    status["used"] = FormatGpuHours(view.used);
    status["committed"] = FormatGpuHours(view.committed);
    status["percent"] = view.percent;
    status["resets"] = IsRolling(report_) ? "rolling" : TimeLeft(view.window.end - now_);
    if (view.exhausts_at) status["exhaustsAt"] = FormatTime(*view.exhausts_at);
    const std::string checkpoint = checkpoint_();
    if (!checkpoint.empty()) status["checkpoint"] = Json::parse(checkpoint);
  }
  status["conditions"] = ConditionsJson(head_.conditions);
  return StatusMember(status);
}

std::string ClassStatus::Text(StatusMembers /*members*/) const {
  return StatusMember({{"observedGeneration", head_.generation},
                       {"pods", pods_},
                       {"conditions", ConditionsJson(head_.conditions)}});
}

std::string PolicyStatus::Text(StatusMembers /*members*/) const {
  return StatusMember(
      {{"observedGeneration", head_.generation}, {"conditions", ConditionsJson(head_.conditions)}});
}

std::string HoursLeft(std::span<const BudgetReport* const> budgets, Instant now) {
  const BudgetReport* tightest = nullptr;
  const auto left = [](const BudgetReport* report) {
    return report->view.effective - report->view.used;
  };
  for (const BudgetReport* report : budgets) {
    if (tightest == nullptr || left(report) < left(tightest)) tightest = report;
  }
  if (tightest == nullptr) return "";
  const auto whole = [](Int128 amount) {
    return static_cast<int64_t>(std::max<Int128>(amount, 0) / kGpuHour);
  };
  std::string text = fmt::format("{} / {}", whole(left(tightest)), whole(tightest->view.effective));
  if (!IsRolling(*tightest)) {
    text += fmt::format(", resets in {}", TimeLeft(tightest->view.window.end - now));
  }
  return text;
}

ExpectedStart Rounded(ExpectedStart start, Instant now) {
  using std::chrono::hours;
  using std::chrono::minutes;
  constexpr std::pair<Millis, Millis> kSteps[] = {{minutes(10), minutes(1)},
                                                  {hours(1), minutes(10)},
                                                  {hours(4), minutes(30)},
                                                  {hours(12), hours(1)},
                                                  {hours(48), hours(3)}};
  Millis step = hours(12);
  for (const auto& [below, of] : kSteps) {
    if (start.at - now >= below) continue;
    step = of;
    break;
  }
  const auto down = [step](Instant time) { return time - time.time_since_epoch() % step; };
  start.from = down(start.from);
  start.at = down(start.at + step / 2);
  start.to = down(start.to + step - Millis(1));
  return start;
}

std::span<const RightSize* const> TeamViewStatus::ShownRightSizes() const {
  return right_sizes_.first(std::min(right_sizes_.size(), kMostPods));
}

std::string TeamViewStatus::Text(StatusMembers members) const {
  const std::string can_borrow = Summary(view_, [](const QuotaLineReport& line) {
    const std::optional<int64_t> available = line.line.available.Smaller().amount();
    const int64_t free = std::max<int64_t>(
        line.line.nominal.Smaller().saturated() - GpuEquivalents(line.line.used), 0);
    return available && *available > free ? GpusRoundedDown(*available - free) : std::string();
  });
  const int64_t borrowing = view_.report.workloads_borrowed;
  Json status = {{"leaf", view_.report.name},
                 {"used", UsedText(view_)},
                 {"nominal", NominalText(view_)},
                 {"canBorrow", can_borrow},
                 {"atRisk", fmt::format("{} pod{}", borrowing, borrowing == 1 ? "" : "s")},
                 {"pending", GpusRoundedUp(view_.pending_quanta)}};
  if (members == StatusMembers::kAll) {
    status["hoursLeft"] = HoursLeft(budgets_, now_);
    status["rightSizes"] = Json::array();
    for (const RightSize* entry : ShownRightSizes()) {
      const AskText ask = RequestText(entry->would_do);
      status["rightSizes"].push_back({{"pod", entry->pod.name},
                                      {"text", WordsOf(*entry)},
                                      {"ask", fmt::format("{}: {}", ask.key, ask.value)}});
    }
    status["expectedStarts"] = Json::array();
    for (const ExpectedStart& start : starts_()) {
      status["expectedStarts"].push_back({{"pod", start.pod},
                                          {"at", FormatTime(start.at)},
                                          {"from", FormatTime(start.from)},
                                          {"to", FormatTime(start.to)}});
    }
  }
  return StatusMember(status);
}

}  // namespace tranche::wire
