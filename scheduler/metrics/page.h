// Collects the series that exist only at a scrape. Internal to this folder.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/metrics/names.h"
#include "topology/base/units.h"

namespace tranche::metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Prometheus counts memory in bytes.
inline double Bytes(Mebibytes amount) { return static_cast<double>(amount.count()) * 1024 * 1024; }

inline prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry& registry,
                                                              const Series& series) {
  return prometheus::BuildCounter().Name(series.name).Help(series.help).Register(registry);
}

class Page {
 public:
  explicit Page(std::vector<prometheus::MetricFamily>& families) : families_(families) {}

  void Gauge(const Series& series, double value, const Labels& labels = {}) {
    Add(series, prometheus::MetricType::Gauge, labels).gauge.value = value;
  }
  void Counter(const Series& series, double value, const Labels& labels = {}) {
    Add(series, prometheus::MetricType::Counter, labels).counter.value = value;
  }
  // `up_to`: how many were of at most so much, ascending; the last is all of them.
  void Histogram(const Series& series, double sum,
                 const std::vector<std::pair<double, int64_t>>& up_to, const Labels& labels) {
    prometheus::ClientMetric::Histogram& histogram =
        Add(series, prometheus::MetricType::Histogram, labels).histogram;
    for (const auto& [bound, count] : up_to) {
      histogram.bucket.push_back({static_cast<std::uint64_t>(count), bound});
    }
    histogram.sample_count = static_cast<std::uint64_t>(up_to.back().second);
    histogram.sample_sum = sum;
  }

 private:
  // Rows of one series come one after another, or in turn with rows of others.
  prometheus::ClientMetric& Add(const Series& series, prometheus::MetricType type,
                                const Labels& labels) {
    auto family = std::find_if(
        families_.begin(), families_.end(),
        [&series](const prometheus::MetricFamily& f) { return f.name == series.name; });
    if (family == families_.end()) {
      families_.push_back({series.name, series.help, type, {}});
      family = std::prev(families_.end());
    }
    prometheus::ClientMetric& metric = family->metric.emplace_back();
    for (const auto& [name, value] : labels) metric.label.push_back({name, value});
    return metric;
  }

  std::vector<prometheus::MetricFamily>& families_;
};

}  // namespace tranche::metrics
