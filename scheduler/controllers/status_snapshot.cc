#include "scheduler/controllers/status_snapshot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "scheduler/engine/views/reach_text.h"

namespace tranche {
namespace {

// Said at every root: of the quota that is gone nothing is left to say it at.
Finding AbandonedAt(const std::string& root, const std::vector<AbandonedWork>& abandoned) {
  std::vector<std::string> parts;
  for (const AbandonedWork& work : abandoned) {
    parts.push_back(fmt::format("{} pods of {} in {}", work.pods, work.quota,
                                fmt::join(work.namespaces, ", ")));
  }
  const bool any = !parts.empty();
  return {"GPUQuota",
          root,
          "AbandonedWork",
          any,
          any ? "QuotaGone" : "None",
          any ? fmt::format("work runs whose quota is gone, and no quota owns its namespace: {}",
                            fmt::join(parts, "; "))
              : ""};
}

constexpr std::size_t kMostLines = 16;

// What its team can count on; nullopt: nothing is known.
std::optional<Finding> ReachOf(const QuotaView& view) {
  if (view.reach.empty()) return std::nullopt;
  Finding finding{"GPUQuota", view.report.name, "NominalReachable", true, "Reachable", ""};
  if (view.report.suspended) {
    finding.status = false;
    finding.reason = "Suspended";
    finding.message = "a used-up budget withholds the nominal";
    return finding;
  }
  // Where it is False, that is said first.
  std::vector<std::string> missing, lines;
  for (const LineReach& reach : view.reach) {
    (reach.code.empty() ? lines : missing).push_back(ReachText(reach));
    if (reach.code.empty() || !finding.status) continue;
    finding.status = false;
    finding.reason = reach.code;
  }
  missing.insert(missing.end(), lines.begin(), lines.end());
  // The API server takes no message of any length.
  if (missing.size() > kMostLines) missing.resize(kMostLines);
  finding.message = fmt::format("{}", fmt::join(missing, "; "));
  return finding;
}

// Findings about a quota that only the running cluster shows.
std::vector<Finding> LiveFindings(const std::vector<QuotaView>& quotas) {
  std::vector<Finding> findings;
  for (const QuotaView& view : quotas) {
    const std::string& name = view.report.name;
    findings.push_back({"GPUQuota", name, "OverLimit", view.over_limit,
                        view.over_limit ? "InUse" : "WithinLimit",
                        view.over_limit ? "running work holds more than the quota gives now; "
                                          "nothing new starts"
                                        : ""});
    if (!view.absent_models.empty()) {
      // Perhaps a slip of the pen, perhaps hardware that is on its way.
      findings.push_back({"GPUQuota", name, "UnknownModel", true, "NoSuchGpu",
                          fmt::format("spec.lines: expected models of the cluster's GPUs, found {}",
                                      fmt::join(view.absent_models, ", "))});
    }
    if (view.report.parent.empty()) findings.push_back(AbandonedAt(name, view.abandoned));
    if (std::optional<Finding> reach = ReachOf(view)) findings.push_back(*std::move(reach));
    const bool over = !view.oversubscribed.empty();
    findings.push_back({"GPUQuota", name, "Oversubscribed", over, over ? "Capacity" : "Fits",
                        view.oversubscribed});
  }
  return findings;
}

}  // namespace

StatusSnapshot::StatusSnapshot(Parts parts)
    : parts_(std::move(parts)), live_(LiveFindings(parts_.quotas)) {
  // Of equal names the first counts.
  for (const QuotaView& view : parts_.quotas) quotas_.try_emplace(view.report.name, &view);
  for (const BudgetReport& budget : parts_.budgets) {
    budgets_.try_emplace(budget.spec.name, &budget);
    const std::string& ns = budget.spec.ns;
    (ns.empty() ? of_quota_[budget.spec.quota_ref] : of_namespace_[ns]).push_back(&budget);
  }
  if (parts_.right_sizes) {
    for (const RightSize& entry : *parts_.right_sizes) {
      right_sizes_[entry.pod.ns].push_back(&entry);
    }
  }
  Index(parts_.policy_objects->findings);
  Index(live_);
  Index(parts_.history);
}

void StatusSnapshot::Index(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    findings_[{finding.kind, finding.name}].push_back(&finding);
  }
}

const QuotaView* StatusSnapshot::Quota(std::string_view name) const {
  const auto found = quotas_.find(name);
  return found == quotas_.end() ? nullptr : found->second;
}

const BudgetReport* StatusSnapshot::Budget(std::string_view name) const {
  const auto found = budgets_.find(name);
  return found == budgets_.end() ? nullptr : found->second;
}

std::vector<const Finding*> StatusSnapshot::FindingsOf(std::string_view kind,
                                                       std::string_view name) const {
  const auto found = findings_.find({kind, name});
  return found == findings_.end() ? std::vector<const Finding*>() : found->second;
}

std::span<const RightSize* const> StatusSnapshot::RightSizesOf(std::string_view ns) const {
  const auto found = right_sizes_.find(ns);
  if (found == right_sizes_.end()) return {};
  return found->second;
}

std::vector<wire::ExpectedStart> StatusSnapshot::StartsOf(const std::string& ns, std::size_t most,
                                                          Instant now) const {
  std::vector<wire::ExpectedStart> starts;
  if (!parts_.forecasts) return starts;
  const auto& pods = parts_.forecasts->pods;
  for (auto at = pods.lower_bound({ns, ""}); at != pods.end() && at->first.ns == ns; ++at) {
    const Forecast& forecast = at->second;
    if (!forecast.p50) continue;
    starts.push_back({at->first.name, forecast.p10.value_or(*forecast.p50), *forecast.p50,
                      forecast.p90.value_or(*forecast.p50)});
  }
  std::ranges::sort(starts, {},
                    [](const wire::ExpectedStart& start) { return std::tie(start.at, start.pod); });
  if (starts.size() > most) starts.resize(most);
  for (wire::ExpectedStart& start : starts) start = wire::Rounded(std::move(start), now);
  return starts;
}

std::vector<const BudgetReport*> StatusSnapshot::BudgetsOf(const QuotaView& view,
                                                           std::string_view ns) const {
  std::vector<const BudgetReport*> found;
  const auto take = [&found](const auto& index, std::string_view name) {
    const auto at = index.find(name);
    if (at != index.end()) found.insert(found.end(), at->second.begin(), at->second.end());
  };
  // Quotas that are declared in a circle may be met twice.
  std::set<std::string_view> path;
  for (std::string_view name = view.report.name; !name.empty() && path.insert(name).second;) {
    take(of_quota_, name);
    const QuotaView* const quota = Quota(name);
    name = quota == nullptr ? std::string_view() : quota->report.parent;
  }
  if (!ns.empty()) take(of_namespace_, ns);
  std::ranges::sort(found, std::less<>());
  return found;
}

}  // namespace tranche
