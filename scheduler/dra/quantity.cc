#include "scheduler/dra/quantity.h"

#include "topology/base/quantity.h"

namespace tranche::dra {

std::optional<Quantity> ParseQuantity(std::string_view text) {
  const absl::StatusOr<int64_t> milli = ParseMilliQuantity(text);
  if (!milli.ok() || *milli == INT64_MIN) return std::nullopt;
  return Quantity::Milli(*milli);
}

}  // namespace tranche::dra
