#include "scheduler/app/team_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "quota/gpu_text.h"
#include "quota/limits.h"
#include "scheduler/wire/json.h"

namespace tranche::app {
namespace {

std::string Quote(std::string_view text) {
  std::string out;
  wire::AppendQuoted(out, text);
  return out;
}

std::string_view ModeName(QuotaMode mode) {
  switch (mode) {
    case QuotaMode::kEnforce:
      return "Enforce";
    case QuotaMode::kObserve:
      return "Observe";
    case QuotaMode::kOff:
      return "Off";
  }
  return "";
}

std::string_view StateName(BudgetState state) {
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

// A JSON number of GPUs; null: unlimited.
std::string Number(int64_t quanta, bool up) {
  if (quanta >= kUnlimited) return "null";
  return up ? GpusRoundedUp(quanta) : GpusRoundedDown(quanta);
}

int64_t Smaller(const Charge& charge) { return std::min(charge.compute, charge.memory); }

// gpuMemory lines limit one dimension; the other says nothing.
int64_t Limit(const Charge& charge) { return Smaller(charge); }

// What of a line is borrowed: of a leaf its borrowed work, of an inner quota what it takes from
// outside.
int64_t Borrowed(const QuotaView& view, const QuotaLineReport& line) {
  return GpuEquivalents(view.report.leaf ? line.marked_borrowed : line.line.borrowed);
}

std::string Decimal(Int128 amount) { return Quote(FormatGpuHours(amount)); }

std::string Time(std::optional<Instant> at) {
  return at ? Quote(wire::FormatTime(*at)) : std::string("null");
}

// "8 h200, 12 any" of one amount per line; lines without it are left out.
template <typename Amount>
std::string Summary(const QuotaView& view, Amount amount) {
  std::string text;
  for (const QuotaLineReport& line : view.report.lines) {
    const std::string gpus = amount(line);
    if (gpus.empty()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", gpus, line.line.model);
  }
  return text.empty() ? "0" : text;
}

std::string EncodeConditions(std::span<const Condition> conditions) {
  std::string out = "[";
  for (const Condition& condition : conditions) {
    out += fmt::format(
        "{}{{\"type\":{},\"status\":\"{}\",\"observedGeneration\":{},\"lastTransitionTime\":{},"
        "\"reason\":{},\"message\":{}}}",
        out.size() > 1 ? "," : "", Quote(condition.type), condition.status ? "True" : "False",
        condition.generation, Quote(wire::FormatTime(condition.since)), Quote(condition.reason),
        Quote(condition.message.substr(0, 1024)));
  }
  return out + "]";
}

std::string_view Ready(std::span<const Condition> conditions) {
  for (const Condition& condition : conditions) {
    if (condition.type == "Ready") return condition.status ? "True" : "False";
  }
  return "Unknown";
}

std::string Days(Millis left) {
  const int64_t hours = std::chrono::duration_cast<std::chrono::hours>(left).count();
  if (hours >= 48) return fmt::format("{}d", hours / 24);
  if (hours >= 1) return fmt::format("{}h", hours);
  return fmt::format("{}m", std::chrono::duration_cast<std::chrono::minutes>(left).count());
}

bool IsRolling(const BudgetReport& report) {
  return report.spec.window.type == BudgetWindow::Type::kRolling;
}

}  // namespace

std::string EncodeQuotas(std::span<const QuotaView> quotas) {
  std::string out = "{\"quotas\":[";
  for (const QuotaView& view : quotas) {
    if (out.back() == '}') out += ',';
    out += fmt::format("{{\"name\":{},\"parent\":{},\"mode\":\"{}\",\"namespaces\":[",
                       Quote(view.report.name),
                       view.report.parent.empty() ? "null" : Quote(view.report.parent),
                       ModeName(view.report.mode));
    for (std::size_t i = 0; i < view.report.namespaces.size(); ++i) {
      out += (i > 0 ? "," : "") + Quote(view.report.namespaces[i]);
    }
    out += "],\"lines\":[";
    for (const QuotaLineReport& line : view.report.lines) {
      if (out.back() == '}') out += ',';
      out += fmt::format(
          "{{\"model\":{},\"nominalGpus\":{},\"usedGpus\":{},\"borrowedGpus\":{},\"lentGpus\":{},"
          "\"availableGpus\":{}}}",
          Quote(line.line.model), Number(Limit(line.line.nominal), false),
          Number(GpuEquivalents(line.line.used), true), Number(Borrowed(view, line), true),
          Number(GpuEquivalents(line.line.lent), true),
          Number(Smaller(line.line.available), false));
    }
    out += fmt::format(
        "],\"pending\":{{\"workloads\":{},\"gpus\":{}}},\"suspended\":{},\"fairShareGpus\":{},"
        "\"decayedGpuHours\":\"{}.{:03}\"}}",
        view.pending_workloads, Number(view.pending_quanta, true), view.report.suspended,
        Number(view.report.fair_share, false), view.report.decayed_milli_gpu_hours / 1000,
        view.report.decayed_milli_gpu_hours % 1000);
  }
  return out + "]}";
}

std::string EncodeBudgets(std::span<const BudgetReport> budgets) {
  std::string out = "{\"budgets\":[";
  for (const BudgetReport& report : budgets) {
    if (out.back() == '}') out += ',';
    const BudgetView& view = report.view;
    out += fmt::format(
        "{{\"name\":{},\"quotaRef\":{},\"namespace\":{},\"used\":{},\"committed\":{},"
        "\"carriedIn\":{},\"debtIn\":{},\"effective\":{},\"windowStart\":{},\"windowEnd\":{},"
        "\"state\":\"{}\",\"percent\":{},\"exhaustsAt\":{},\"restoredFrom\":{}}}",
        Quote(report.spec.name),
        report.spec.quota_ref.empty() ? "null" : Quote(report.spec.quota_ref),
        report.spec.ns.empty() ? "null" : Quote(report.spec.ns), Decimal(view.used),
        Decimal(view.committed), Decimal(view.carried_in), Decimal(view.debt_in),
        Decimal(view.effective), Time(view.window.start),
        IsRolling(report) ? "null" : Time(view.window.end), StateName(view.state), view.percent,
        Time(view.exhausts_at), Time(report.restored));
  }
  return out + "]}";
}

std::string QuotaStatus(const QuotaView& view, std::string_view budget_column,
                        std::span<const Condition> conditions, int64_t generation,
                        std::string_view checkpoint, bool with_slow) {
  std::string lines;
  Charge used;
  for (const QuotaLineReport& line : view.report.lines) {
    if (!lines.empty()) lines += ',';
    const auto text = [](int64_t quanta) { return Quote(GpusRoundedDown(quanta)); };
    lines += fmt::format(
        "{{\"model\":{},\"nominal\":{},\"used\":{{\"gpus\":{},\"qc\":{},\"qm\":{}}},"
        "\"borrowed\":{},\"lent\":{},\"available\":{}}}",
        Quote(line.line.model), text(Limit(line.line.nominal)),
        Quote(GpusRoundedUp(GpuEquivalents(line.line.used))), line.line.used.compute,
        line.line.used.memory, Quote(GpusRoundedUp(Borrowed(view, line))),
        Quote(GpusRoundedUp(GpuEquivalents(line.line.lent))), text(Smaller(line.line.available)));
  }
  const std::string nominal = Summary(view, [](const QuotaLineReport& line) {
    return Limit(line.line.nominal) >= kUnlimited ? std::string()
                                                  : GpusRoundedDown(Limit(line.line.nominal));
  });
  const auto nonzero = [](int64_t quanta) {
    return quanta == 0 ? std::string() : GpusRoundedUp(quanta);
  };
  std::string out = fmt::format(
      "\"status\":{{\"observedGeneration\":{},\"lines\":[{}],\"nonPreemptible\":{},"
      "\"pending\":{{\"workloads\":{},\"gpus\":{}}}",
      generation, lines, Quote(GpusRoundedUp(GpuEquivalents(view.report.non_preemptible))),
      view.pending_workloads, Quote(GpusRoundedUp(view.pending_quanta)));
  if (with_slow) {
    out += fmt::format(",\"fairShare\":{},\"decayedUsage\":\"{}.{}\"",
                       Quote(GpusRoundedDown(view.report.fair_share)),
                       view.report.decayed_milli_gpu_hours / 1000,
                       view.report.decayed_milli_gpu_hours % 1000 / 100);
    if (!checkpoint.empty()) out += fmt::format(",\"checkpoint\":{}", checkpoint);
  }
  out += fmt::format(
      ",\"summary\":{{\"nominal\":{},\"used\":{},\"borrowed\":{},\"lent\":{},\"pending\":{},"
      "\"ready\":\"{}\"",
      Quote(nominal),
      Quote(Summary(view,
                    [&nonzero](const QuotaLineReport& line) {
                      return nonzero(GpuEquivalents(line.line.used));
                    })),
      Quote(Summary(view,
                    [&](const QuotaLineReport& line) { return nonzero(Borrowed(view, line)); })),
      Quote(Summary(view,
                    [&nonzero](const QuotaLineReport& line) {
                      return nonzero(GpuEquivalents(line.line.lent));
                    })),
      Quote(GpusRoundedUp(view.pending_quanta)), Ready(conditions));
  if (with_slow) out += fmt::format(",\"budget\":{}", Quote(budget_column));
  return out + fmt::format("}},\"conditions\":{}}}", EncodeConditions(conditions));
}

std::string BudgetStatus(const BudgetReport& report, Instant now,
                         std::span<const Condition> conditions, int64_t generation,
                         std::string_view checkpoint, bool with_slow) {
  const BudgetView& view = report.view;
  std::string out = fmt::format(
      "\"status\":{{\"observedGeneration\":{},\"carriedIn\":{},\"debtIn\":{},\"effective\":{},"
      "\"state\":\"{}\",\"notifiedPercent\":{}",
      generation, Decimal(view.carried_in), Decimal(view.debt_in), Decimal(view.effective),
      StateName(view.state), view.notified_percent);
  if (!IsRolling(report)) {
    out += fmt::format(",\"windowStart\":{},\"windowEnd\":{}", Time(view.window.start),
                       Time(view.window.end));
  }
  if (with_slow) {
    out += fmt::format(",\"used\":{},\"committed\":{},\"percent\":{}", Decimal(view.used),
                       Decimal(view.committed), view.percent);
    out += fmt::format(",\"resets\":{}",
                       Quote(IsRolling(report) ? "rolling" : Days(view.window.end - now)));
    if (view.exhausts_at) out += fmt::format(",\"exhaustsAt\":{}", Time(view.exhausts_at));
    if (!checkpoint.empty()) out += fmt::format(",\"checkpoint\":{}", checkpoint);
  }
  return out + fmt::format(",\"conditions\":{}}}", EncodeConditions(conditions));
}

std::string ClassStatus(int64_t pods, std::span<const Condition> conditions, int64_t generation) {
  return fmt::format("\"status\":{{\"observedGeneration\":{},\"pods\":{},\"conditions\":{}}}",
                     generation, pods, EncodeConditions(conditions));
}

std::string PolicyStatus(std::span<const Condition> conditions, int64_t generation) {
  return fmt::format("\"status\":{{\"observedGeneration\":{},\"conditions\":{}}}", generation,
                     EncodeConditions(conditions));
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
    text += fmt::format(", resets in {}", Days(tightest->view.window.end - now));
  }
  return text;
}

std::string TeamViewStatus(const QuotaView& view, std::span<const BudgetReport* const> budgets,
                           Instant now, bool with_slow) {
  const std::string can_borrow = Summary(view, [](const QuotaLineReport& line) {
    const int64_t free =
        std::max<int64_t>(Limit(line.line.nominal) - GpuEquivalents(line.line.used), 0);
    const int64_t more = std::min(Smaller(line.line.available), kUnlimited) - free;
    if (Smaller(line.line.available) >= kUnlimited || more <= 0) return std::string();
    return GpusRoundedDown(more);
  });
  std::string out = fmt::format(
      "\"status\":{{\"leaf\":{},\"used\":{},\"nominal\":{},\"canBorrow\":{},\"atRisk\":\"{} "
      "pod{}\","
      "\"pending\":{}",
      Quote(view.report.name),
      Quote(Summary(view,
                    [](const QuotaLineReport& line) {
                      const int64_t used = GpuEquivalents(line.line.used);
                      return used == 0 ? std::string() : GpusRoundedUp(used);
                    })),
      Quote(Summary(view,
                    [](const QuotaLineReport& line) {
                      return Limit(line.line.nominal) >= kUnlimited
                                 ? std::string()
                                 : GpusRoundedDown(Limit(line.line.nominal));
                    })),
      Quote(can_borrow), view.report.workloads_borrowed,
      view.report.workloads_borrowed == 1 ? "" : "s", Quote(GpusRoundedUp(view.pending_quanta)));
  if (with_slow) out += fmt::format(",\"hoursLeft\":{}", Quote(HoursLeft(budgets, now)));
  return out + "}";
}

}  // namespace tranche::app
