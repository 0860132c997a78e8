#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "policy/amounts.h"
#include "policy/declared_object.h"
#include "policy/decode.h"
#include "policy/line_name.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr int64_t kMostGpuHours = 999'999'999;
constexpr int64_t kMostRate = 9999;
constexpr size_t kMostRates = 64;
constexpr size_t kMostNotices = 10;
constexpr int kMostPercent = 1000;
constexpr int kMostWindows = 12;
constexpr int kMostDebtPercent = 100;
constexpr std::chrono::hours kShortestRolling{1};
constexpr std::chrono::hours kLongestRolling{744};
constexpr size_t kMaxNamespace = 63;

constexpr std::array kWindows = {
    Choice<BudgetWindow::Type>{"Day", BudgetWindow::Type::kDay},
    Choice<BudgetWindow::Type>{"Week", BudgetWindow::Type::kWeek},
    Choice<BudgetWindow::Type>{"Month", BudgetWindow::Type::kMonth},
    Choice<BudgetWindow::Type>{"Rolling", BudgetWindow::Type::kRolling}};
constexpr std::array kMeters = {Choice<MeterFrom>{"Bind", MeterFrom::kBind},
                                Choice<MeterFrom>{"Running", MeterFrom::kRunning}};
constexpr std::array kExhaustions = {Choice<OnExhaustion>{"Warn", OnExhaustion::kWarn},
                                     Choice<OnExhaustion>{"Demote", OnExhaustion::kDemote},
                                     Choice<OnExhaustion>{"Block", OnExhaustion::kBlock},
                                     Choice<OnExhaustion>{"Drain", OnExhaustion::kDrain}};

void ReadRolling(const Field& field, Millis& target) {
  const std::optional<Millis> duration = DurationOf(field);
  if (duration && (*duration < kShortestRolling || *duration > kLongestRolling)) {
    field.Fail(fmt::format("{}h..{}h", kShortestRolling.count(), kLongestRolling.count()));
  }
  Assign(target, duration);
}

void ReadWindow(const Field& field, BudgetWindow& window) {
  bool type_known = true;
  bool has_duration = false;
  const bool is_object = field.ReadMembers(
      {{"type", [&](const Field& type) { type_known = ReadChoice(type, kWindows, window.type); }},
       {"timeZone", [&](const Field& zone) { Assign(window.zone, ZoneOf(zone)); }},
       {"duration", [&](const Field& duration) {
          has_duration = true;
          ReadRolling(duration, window.duration);
        }}});
  const bool rolling = window.type == BudgetWindow::Type::kRolling;
  if (is_object && type_known && rolling != has_duration) {
    field.Fail(rolling ? "a duration with type Rolling" : "a duration with type Rolling only");
  }
}

void ReadNamespace(const Field& field, std::string& target) {
  const auto text = field.Text();
  if (text && IsWord(*text, kMaxNamespace, Letters::kLower, "-")) {
    target = *text;
  } else {
    field.Fail("a namespace's name of a-z, 0-9 and -");
  }
}

// "h100" or "h100@spot-eu", the model in lower case.
std::optional<std::string> LineNamed(std::string_view text) {
  const auto [model, pool] = PartsOf(text);
  const bool pool_reads = pool.size() == text.size() - model.size() ? pool.empty() : IsName(pool);
  const std::optional<std::string> named = ModelNamed(model);
  if (!named || !pool_reads) return std::nullopt;
  return LineName(*named, pool);
}

void ReadRates(const Field& field, GpuBudget& budget) {
  const std::map<std::string, Field> members = field.Members();
  if (members.size() > kMostRates) {
    field.Fail(fmt::format("at most {} models", kMostRates));
    return;
  }
  std::map<std::string, int64_t> rates;
  for (const auto& [name, rate] : members) {
    const std::optional<std::string> line = LineNamed(name);
    if (!line || line == kAnyModel) {
      rate.Fail("as key a GPU model name, or MODEL@POOL or any@POOL for the GPUs of a pool");
    } else if (rates.contains(*line)) {
      rate.Fail("every model and pool once");
    } else if (const auto thousandths = ThousandthsOf(rate, kMostRate)) {
      rates[*line] = *thousandths;
    }
  }
  budget.rates.assign(rates.begin(), rates.end());
}

void ReadRollover(const Field& field, GpuBudget& budget) {
  if (budget.window.type == BudgetWindow::Type::kRolling) {
    field.Fail("no rollover with a window of type Rolling");
  }
  field.ReadMembers({{"maxPercent",
                      [&](const Field& percent) {
                        ReadInteger(percent, 0, kMostPercent, budget.rollover_max_percent);
                      }},
                     {"maxWindows", [&](const Field& windows) {
                        ReadInteger(windows, 0, kMostWindows, budget.rollover_max_windows);
                      }}});
}

void ReadNotices(const Field& field, std::vector<int>& percents) {
  int last = 0;
  for (const Field& item : field.Items(0, kMostNotices)) {
    const auto percent = IntegerWithin(item, 1, kMostPercent);
    if (!percent) continue;
    if (*percent <= last) item.Fail(fmt::format("ascending percents, more than {} here", last));
    last = static_cast<int>(*percent);
    percents.push_back(last);
  }
}

void ReadSpec(const Field& spec, GpuBudget& budget) {
  int scopes = 0;
  const bool is_object = spec.ReadMembers(
      {{"quotaRef",
        [&](const Field& quota) {
          ++scopes;
          ReadName(quota, budget.quota_ref);
        }},
       {"namespace",
        [&](const Field& ns) {
          ++scopes;
          ReadNamespace(ns, budget.ns);
        }},
       {"gpuHours",
        [&](const Field& hours) {
          Assign(budget.milli_gpu_hours, ThousandthsOf(hours, kMostGpuHours));
        },
        "a decimal"},
       {"window", [&](const Field& window) { ReadWindow(window, budget.window); }},
       {"rates", [&](const Field& rates) { ReadRates(rates, budget); }},
       {"rollover", [&](const Field& rollover) { ReadRollover(rollover, budget); }},
       {"maxDebtPercent",
        [&](const Field& debt) {
          ReadInteger(debt, 0, kMostDebtPercent, budget.max_debt_percent);
        }},
       {"notifyAtPercent",
        [&](const Field& notices) { ReadNotices(notices, budget.notify_at_percent); }},
       {"meterFrom", [&](const Field& meter) { ReadChoice(meter, kMeters, budget.meter_from); }},
       {"onExhaustion", [&](const Field& exhaustion) {
          ReadChoice(exhaustion, kExhaustions, budget.on_exhaustion);
        }}});
  if (is_object && scopes != 1) {
    spec.Fail("exactly one of quotaRef and namespace");
  }
}

}  // namespace

absl::StatusOr<GpuBudget> DecodeGpuBudget(std::string_view json) {
  ObjectHead head;
  GpuBudget budget;
  TRANCHE_RETURN_IF_ERROR(ReadDeclared("GPUBudget", json, SpecPresence::kRequired, head,
                                       [&](const Field& spec) { ReadSpec(spec, budget); }));
  budget.name = head.name;
  budget.uid = head.uid;
  return budget;
}

}  // namespace tranche
