// Kubernetes quantity text ("2", "1k", "4000m", "20Ki", "1e3") read as a whole number.
//
// Grammar: [+-]digits[.digits] then n u m (none) k M G T P E, Ki Mi Gi Ti Pi Ei, or e/E exponent.
// Source: kube-client-protocol section 18 (apimachinery resource.Quantity).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace tranche {

// The exact whole number the text stands for.
// Errors: InvalidArgument when the text is no quantity, is not whole, or lies outside int64. The
// message quotes the text (cut at 64 bytes).
absl::StatusOr<int64_t> ParseWholeQuantity(std::string_view text);

// Thousandths of what the text stands for, rounded up as Kubernetes does: "2" -> 2000,
// "100m" -> 100, "0.5001" -> 501. Errors: as above; also for text of more than 64 bytes.
absl::StatusOr<int64_t> ParseMilliQuantity(std::string_view text);

// Takes the decimal digits off the front; nullopt, and nothing taken, when there are none or more
// than `most`, at most 18.
std::optional<int64_t> TakeDigits(std::string_view& text, std::size_t most);

}  // namespace tranche
