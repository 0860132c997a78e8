// Means over seeds.
#pragma once

#include <span>

namespace tranche::bench::fill {

// 0 of nothing.
double Mean(std::span<const double> values);
// Of the values (divisor n - 1); 0 of fewer than two.
double Deviation(std::span<const double> values);
// Of the mean.
double StandardError(std::span<const double> values);
// For people and JSON: four decimals.
double Rounded(double value);

}  // namespace tranche::bench::fill
