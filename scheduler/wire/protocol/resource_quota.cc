#include "scheduler/wire/protocol/resource_quota.h"

#include <fmt/format.h>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/resource_amount.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kMemoryLimitKey = "limits.nvidia.com/gpumem";
constexpr std::string_view kCoresKey = "limits.nvidia.com/gpucores";

// nullopt: not limited.
std::optional<int64_t> Limit(Object hard, std::string_view key, std::string& problem) {
  const std::optional<Element> value = Find(hard, key);
  if (!value) return std::nullopt;
  const std::optional<int64_t> amount = WholeAmount(*value);
  if (!amount && problem.empty()) {
    problem = fmt::format("expected a whole number in spec.hard[{}], found {}; it counts as 0", key,
                          Quoted(AmountText(*value)));
  }
  return amount.value_or(0);
}

}  // namespace

absl::StatusOr<QuotaReading> DecodeResourceQuota(std::string_view json) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(json));
  Object object;
  const bool is_object = document.get(object) == simdjson::SUCCESS;
  const auto metadata = is_object ? FindObject(object, "metadata") : std::nullopt;
  const auto name = metadata ? FindText(*metadata, "name") : std::nullopt;
  if (!name || name->empty()) {
    return absl::InvalidArgumentError("ResourceQuota: expected metadata.name, found none");
  }
  QuotaReading reading;
  reading.cap.name = *name;
  reading.cap.ns = FindText(*metadata, "namespace").value_or("default");
  const auto spec = FindObject(object, "spec");
  const auto hard = spec ? FindObject(*spec, "hard") : std::nullopt;
  if (!hard) return reading;
  if (const auto memory = Limit(*hard, kMemoryLimitKey, reading.problem)) {
    reading.cap.memory = Mebibytes::Of(*memory);
  }
  reading.cap.cores = Limit(*hard, kCoresKey, reading.problem);
  return reading;
}

}  // namespace tranche::wire
