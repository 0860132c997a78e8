#include "scheduler/wire/json/resource_amount.h"

#include <fmt/format.h>

#include "absl/status/statusor.h"
#include "topology/base/quantity.h"

namespace tranche::wire {
namespace {

constexpr int64_t kBytesPerMebibyte = int64_t{1} << 20;

std::optional<int64_t> WholeUpTo(int64_t limit, Element value) {
  int64_t amount = 0;
  if (value.is_int64()) {
    amount = value.get_int64().value_unsafe();
  } else {
    std::string_view text;
    const absl::StatusOr<int64_t> parsed = value.get(text) == simdjson::SUCCESS
                                               ? ParseWholeQuantity(text)
                                               : ParseWholeQuantity(AmountText(value));
    if (!parsed.ok()) return std::nullopt;
    amount = *parsed;
  }
  if (amount < 0 || amount > limit) return std::nullopt;
  return amount;
}

}  // namespace

bool IsQuantityType(Element value) {
  return value.is_string() || value.is_number() || value.is_null();
}

std::optional<int64_t> WholeAmount(Element value) { return WholeUpTo(kMaxAmount, value); }

std::optional<int64_t> MebibyteAmount(Element value) {
  const std::optional<int64_t> bytes = WholeUpTo(kMaxAmount * kBytesPerMebibyte, value);
  if (!bytes) return std::nullopt;
  return (*bytes + kBytesPerMebibyte - 1) / kBytesPerMebibyte;
}

std::optional<MilliCpu> CpuAmount(Element value) {
  std::string_view text;
  absl::StatusOr<int64_t> milli = value.get(text) == simdjson::SUCCESS
                                      ? ParseMilliQuantity(text)
                                      : ParseMilliQuantity(AmountText(value));
  if (!milli.ok() || *milli < 0 || *milli > kMaxAmount) return std::nullopt;
  return MilliCpu::Of(*milli);
}

std::string AmountText(Element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::STRING:
      return std::string(value.get_string().value_unsafe());
    case simdjson::dom::element_type::INT64:
      return std::to_string(value.get_int64().value_unsafe());
    case simdjson::dom::element_type::UINT64:
      return std::to_string(value.get_uint64().value_unsafe());
    case simdjson::dom::element_type::DOUBLE:
      return fmt::format("{}", value.get_double().value_unsafe());
    default:
      return {};
  }
}

}  // namespace tranche::wire
