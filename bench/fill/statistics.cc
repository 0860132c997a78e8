#include "bench/fill/statistics.h"

#include <cmath>
#include <numeric>

namespace tranche::bench::fill {

double Mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double StandardError(std::span<const double> values) {
  return values.empty() ? 0 : Deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

double Rounded(double value) {
  constexpr double kScale = 10'000;
  return std::round(value * kScale) / kScale;
}

}  // namespace tranche::bench::fill
