#include "bench/tenants/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <string_view>

namespace tranche::bench {
namespace {

// The lines of a CSV file below its heading, cut at the commas.
class Rows {
 public:
  Rows(const std::string& path, std::string_view heading) : path_(path), in_(path) {
    std::string line;
    if (!std::getline(in_, line) || line.rfind(heading, 0) != 0) {
      status_ = absl::InvalidArgumentError(
          fmt::format("{}:1: expected \"{}\", found \"{}\"", path, heading, line));
    }
    columns_ = static_cast<std::size_t>(std::count(heading.begin(), heading.end(), ',')) + 1;
  }

  bool Next() {
    std::string line;
    if (!status_.ok() || !std::getline(in_, line)) return false;
    ++number_;
    fields_.clear();
    for (std::size_t from = 0; from <= line.size();) {
      const std::size_t comma = std::min(line.find(',', from), line.size());
      fields_.push_back(line.substr(from, comma - from));
      from = comma + 1;
    }
    if (fields_.size() >= columns_) return true;
    Fail(fmt::format("{} columns", columns_), line);
    return false;
  }

  const std::string& Text(std::size_t column) const { return fields_[column]; }

  int64_t Number(std::size_t column, int64_t least, int64_t most) {
    const std::string& text = fields_[column];
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = error == std::errc() && end == text.data() + text.size();
    if (good && value >= least && value <= most) return value;
    Fail(fmt::format("a number from {} to {}", least, most), text);
    return least;
  }

  void Fail(const std::string& expected, const std::string& found) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        fmt::format("{}:{}: expected {}, found \"{}\"", path_, number_, expected, found));
  }

  const absl::Status& status() const { return status_; }

 private:
  std::string path_;
  std::ifstream in_;
  std::size_t columns_ = 0;
  int64_t number_ = 1;
  std::vector<std::string> fields_;
  absl::Status status_;
};

constexpr int64_t kMostSeconds = 1'000'000'000;
constexpr int64_t kMostNodes = 10'000;

}  // namespace

int Trace::nodes() const {
  int sum = 0;
  for (const Tenant& tenant : tenants) sum += tenant.nodes;
  return sum;
}

Trace SplitAtRandom(const Trace& trace, uint64_t seed) {
  std::mt19937_64 draws(seed);
  const auto below = [&draws](uint64_t most) { return draws() % most; };
  std::vector<uint64_t> weights(4 + below(5));
  for (uint64_t& weight : weights) weight = 1 + below(10);
  const uint64_t all = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  std::vector<int64_t> taken(weights.size());  // GPU-seconds
  std::vector<int> least(weights.size(), 1);
  Trace split;
  for (Job job : trace.jobs) {
    uint64_t at = below(all);
    std::size_t tenant = 0;
    while (at >= weights[tenant]) at -= weights[tenant++];
    job.tenant = static_cast<int>(tenant);
    taken[tenant] += job.gpus * job.duration;
    least[tenant] = std::max(least[tenant], (job.gpus + kGpusPerNode - 1) / kGpusPerNode);
    split.jobs.push_back(std::move(job));
  }
  const int64_t total = std::accumulate(taken.begin(), taken.end(), int64_t{0});
  int left = trace.nodes();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto share = static_cast<int>(trace.nodes() * taken[i] / total);
    split.tenants.push_back({"t" + std::to_string(i), std::max(least[i], share)});
    left -= split.tenants.back().nodes;
  }
  // The largest gets what rounding leaves, and gives what small ones need beyond their share.
  std::ranges::max_element(split.tenants, {}, &Tenant::nodes)->nodes += left;
  return split;
}

absl::StatusOr<Trace> ReadTrace(const std::string& jobs, const std::string& tenants) {
  Trace trace;
  std::map<std::string, int> known;
  Rows tenant_rows(tenants, "vc,nodes");
  while (tenant_rows.Next()) {
    const std::string& name = tenant_rows.Text(0);
    if (!known.emplace(name, static_cast<int>(trace.tenants.size())).second) {
      tenant_rows.Fail("each tenant once", name);
    }
    trace.tenants.push_back({name, static_cast<int>(tenant_rows.Number(1, 1, kMostNodes))});
  }
  if (!tenant_rows.status().ok()) return tenant_rows.status();

  Rows job_rows(jobs, "vc,job,submit_s,gpus,duration_s");
  while (job_rows.Next()) {
    Job job;
    job.name = job_rows.Text(1);
    const auto tenant = known.find(job_rows.Text(0));
    if (tenant == known.end()) {
      job_rows.Fail("a tenant of " + tenants, job_rows.Text(0));
      break;
    }
    job.tenant = tenant->second;
    const int64_t earliest = trace.jobs.empty() ? 0 : trace.jobs.back().submit;
    job.submit = job_rows.Number(2, earliest, kMostSeconds);
    // More than its tenant owns would never start in mode static.
    const int quota = trace.tenants[static_cast<std::size_t>(job.tenant)].nodes * kGpusPerNode;
    job.gpus = static_cast<int>(job_rows.Number(3, 1, quota));
    job.duration = job_rows.Number(4, 1, kMostSeconds);
    trace.jobs.push_back(std::move(job));
  }
  if (!job_rows.status().ok()) return job_rows.status();
  return trace;
}

}  // namespace tranche::bench
