#include "scheduler/api/quota_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "quota/tree/gpu_text.h"
#include "quota/tree/limits.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/engine/views/reach_text.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "scheduler/wire/records/object_status.h"

namespace tranche {
namespace {

using wire::Json;
using wire::ListOf;
using wire::TextOrNull;

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

// GPUs as a JSON number of at most three decimals; null: unlimited.
Json NumberUp(Limit quanta) {
  return quanta.amount() ? Json::parse(GpusRoundedUp(quanta)) : Json();
}
Json NumberDown(Limit quanta) {
  return quanta.amount() ? Json::parse(GpusRoundedDown(quanta)) : Json();
}

Json QuotaJson(const QuotaView& view) {
  const QuotaReport& report = view.report;
  const auto line_json = [&view](const QuotaLineReport& line) -> Json {
    const LineParts of = PartsOf(line.line.name);
    return {{"model", of.model},
            {"pool", TextOrNull(std::string(of.pool))},
            {"nominalGpus", NumberDown(line.line.nominal.Smaller())},
            {"usedGpus", NumberUp(GpuEquivalents(line.line.used))},
            {"borrowedGpus", NumberUp(wire::BorrowedOf(view, line))},
            {"lentGpus", NumberUp(GpuEquivalents(line.line.lent))},
            {"availableGpus", NumberDown(line.line.available.Smaller())}};
  };
  const auto reach_json = [](const LineReach& reach) -> Json {
    const auto within = std::chrono::ceil<std::chrono::seconds>(reach.within).count();
    return {{"model", reach.model},
            {"gpus", reach.gpus},
            {"withinSeconds", reach.gpus == 0 ? Json() : Json(within)},
            {"reason", TextOrNull(reach.code)},
            {"text", ReachText(reach)}};
  };
  const int64_t decayed = report.decayed_milli_gpu_hours;
  return {
      {"name", report.name},
      {"parent", TextOrNull(report.parent)},
      {"mode", ModeName(report.mode)},
      {"namespaces", report.namespaces},
      {"lines", ListOf(report.lines, line_json)},
      {"pending", {{"workloads", view.pending_workloads}, {"gpus", NumberUp(view.pending_quanta)}}},
      {"suspended", report.suspended},
      {"reach", ListOf(view.reach, reach_json)},
      {"fairShareGpus", NumberDown(report.fair_share)},
      {"decayedGpuHours", fmt::format("{}.{:03}", decayed / 1000, decayed % 1000)}};
}

Json BudgetJson(const BudgetReport& report) {
  const BudgetView& view = report.view;
  return {{"name", report.spec.name},
          {"quotaRef", TextOrNull(report.spec.quota_ref)},
          {"namespace", TextOrNull(report.spec.ns)},
          {"used", FormatGpuHours(view.used)},
          {"committed", FormatGpuHours(view.committed)},
          {"carriedIn", FormatGpuHours(view.carried_in)},
          {"debtIn", FormatGpuHours(view.debt_in)},
          {"effective", FormatGpuHours(view.effective)},
          {"windowStart", wire::FormatTime(view.window.start)},
          {"windowEnd", wire::IsRolling(report) ? Json() : Json(wire::FormatTime(view.window.end))},
          {"state", wire::BudgetStateName(view.state)},
          {"percent", view.percent},
          {"exhaustsAt", wire::TimeOrNull(view.exhausts_at)},
          {"restoredFrom", wire::TimeOrNull(report.restored)}};
}

}  // namespace

std::string EncodeQuotas(std::span<const QuotaView> quotas) {
  const auto abandoned = [](const AbandonedWork& work) -> Json {
    return {{"quota", work.quota},
            {"pods", work.pods},
            {"gpus", NumberUp(work.quanta)},
            {"namespaces", work.namespaces}};
  };
  const auto root = std::ranges::find_if(
      quotas, [](const QuotaView& view) { return view.report.parent.empty(); });
  const std::vector<AbandonedWork> none;
  return wire::Dump(
      {{"quotas", ListOf(quotas, QuotaJson)},
       {"abandoned", ListOf(root == quotas.end() ? none : root->abandoned, abandoned)}});
}

std::string EncodeBudgets(std::span<const BudgetReport> budgets) {
  return wire::Dump({{"budgets", ListOf(budgets, BudgetJson)}});
}

std::string EncodeTeam(const QuotaView& quota, std::span<const BudgetReport> budgets,
                       std::span<const Reclaim> reclaims) {
  Json team = QuotaJson(quota);
  team["budgets"] = ListOf(budgets, BudgetJson);
  team["reclaims"] = ListOf(reclaims, ReclaimJson);
  return wire::Dump(team);
}

}  // namespace tranche
