// What the commands of tranche-bench share: seeds as arguments, quantiles, and the file of results.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::bench {

// "42", "42..51", "1,5,7..9", in the order they are written; at most 10,000 in a range.
// Errors: InvalidArgument, for the option --seeds.
absl::StatusOr<std::vector<uint64_t>> ParseSeeds(std::string_view text);

// Nearest rank from below; 0 of no values.
double Quantile(std::vector<double> values, double q);

// Writes the results that --out asks for; an empty path: nothing. Errors: Unavailable.
absl::Status WriteReport(const std::string& text, const std::string& path);
absl::Status WriteReport(const nlohmann::json& document, const std::string& path);

}  // namespace tranche::bench
