#include "scheduler/embedded/derived_budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "policy/disruption_budget.h"
#include "scheduler/wire/json/field_reader.h"
#include "topology/base/status.h"

namespace tranche::embedded {
namespace {

constexpr int64_t kMaxCount = 2'147'483'647;  // the API's type

std::optional<wire::Object> Part(wire::Element element, std::string_view key) {
  wire::Object object;
  if (element.get(object) != simdjson::SUCCESS) return std::nullopt;
  return wire::FindObject(object, key);
}

// "0%" to "100%"; nullopt for any other text.
std::optional<int64_t> ParsePercent(std::string_view text) {
  int64_t amount = -1;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, amount);
  const bool whole = error == std::errc() && at + 1 == end && *at == '%';
  if (!whole || amount < 0 || amount > 100) return std::nullopt;
  return amount;
}

}  // namespace

absl::StatusOr<DerivedBudget::Limit> DerivedBudget::ReadLimit(wire::Element object) {
  Limit limit;
  const auto spec = Part(object, "spec");
  if (!spec) return limit;
  const auto least = wire::Find(*spec, "minAvailable");
  const auto most = wire::Find(*spec, "maxUnavailable");
  if (least && most) {
    return absl::InvalidArgumentError(
        "expected one of spec.minAvailable and spec.maxUnavailable, found both");
  }
  const auto stated = least ? least : most;
  if (!stated) return limit;
  limit.available = least.has_value();
  std::string_view text;
  if (stated->get(text) == simdjson::SUCCESS) {
    limit.percent = true;
    limit.amount = ParsePercent(text).value_or(-1);
  } else if (stated->get(limit.amount) != simdjson::SUCCESS || limit.amount > kMaxCount) {
    limit.amount = -1;
  }
  if (limit.amount >= 0) return limit;
  return absl::InvalidArgumentError(fmt::format(
      "expected a number of pods or a percentage, found {}, in spec.{}",
      wire::DescribeElement(*stated), limit.available ? "minAvailable" : "maxUnavailable"));
}

absl::StatusOr<DerivedBudget> DerivedBudget::Read(wire::Element object) {
  TRANCHE_ASSIGN_OR_RETURN(DisruptionBudget decoded,
                           DecodeDisruptionBudget(simdjson::minify(object)));
  TRANCHE_ASSIGN_OR_RETURN(const Limit limit, ReadLimit(object));
  DerivedBudget budget;
  budget.selector_ = std::move(decoded.selector);
  budget.limit_ = limit;
  return budget;
}

bool DerivedBudget::IsStated(wire::Element object) {
  const auto status = Part(object, "status");
  return status && wire::Find(*status, "disruptionsAllowed").has_value();
}

void DerivedBudget::See(const PodFacts& pod, const Labels& labels) {
  const std::string& name = pod.request.name.name;
  Forget(name);
  const bool finished = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  if (finished || !selector_ || !selector_->Matches(labels)) return;
  const bool healthy = pod.phase == PodPhase::kRunning && !pod.terminating;
  pods_[name] = healthy;
  if (healthy) ++healthy_;
}

void DerivedBudget::Forget(const std::string& pod_name) {
  const auto found = pods_.find(pod_name);
  if (found == pods_.end()) return;
  if (found->second) --healthy_;
  pods_.erase(found);
}

int64_t DerivedBudget::Desired() const {
  const auto expected = static_cast<int64_t>(pods_.size());
  const int64_t amount = limit_.percent ? (expected * limit_.amount + 99) / 100 : limit_.amount;
  return limit_.available ? amount : std::max<int64_t>(0, expected - amount);
}

std::optional<std::string> DerivedBudget::TakeStatus() {
  const int64_t desired = Desired();
  std::string status = fmt::format(
      R"({{"currentHealthy":{},"desiredHealthy":{},"disruptionsAllowed":{},"expectedPods":{}}})",
      healthy_, desired, std::max<int64_t>(0, healthy_ - desired), pods_.size());
  if (status == taken_) return std::nullopt;
  taken_ = status;
  return status;
}

}  // namespace tranche::embedded
