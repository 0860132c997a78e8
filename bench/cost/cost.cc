#include "bench/cost/cost.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "bench/cost/policies.h"
#include "bench/cost/work.h"
#include "bench/report/report.h"

namespace tranche::bench {
namespace {

using cost::Figures;
using cost::Offer;
using cost::Workload;

absl::StatusOr<std::vector<Workload>> WorkOf(const CostOptions& options, uint64_t seed) {
  std::vector<Workload> all;
  if (!options.openb.empty()) {
    absl::StatusOr<Workload> work = cost::ReadOpenb(options.openb);
    if (!work.ok()) return work.status();
    all.push_back(*std::move(work));
  }
  if (!options.jobs.empty()) {
    absl::StatusOr<Workload> work = cost::ReadPhilly(options.jobs, options.tenants, seed);
    if (!work.ok()) return work.status();
    all.push_back(*std::move(work));
  }
  if (all.empty()) all.push_back(cost::Synthetic(seed, options.synthetic));
  return all;
}

// The means of all seeds.
struct Sum {
  std::vector<Figures> runs;
  double bound = 0;

  double Mean(double (*of)(const Figures&)) const {
    double sum = 0;
    for (const Figures& run : runs) sum += of(run);
    return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
  }
  double money() const {
    return Mean([](const Figures& run) { return run.per_gpu_hour(); });
  }
  double wait() const {
    return Mean([](const Figures& run) { return run.wait_seconds; });
  }
  double lost() const {
    return Mean([](const Figures& run) { return run.interrupted_hours; });
  }
  double rented() const {
    return Mean([](const Figures& run) { return static_cast<double>(run.rented); });
  }
  double dropped() const {
    return Mean([](const Figures& run) { return static_cast<double>(run.dropped); });
  }
};

class Bench {
 public:
  Bench(const CostOptions& options, std::vector<uint64_t> seeds, std::vector<Offer> offers)
      : options_(options), seeds_(std::move(seeds)), offers_(std::move(offers)) {}

  // One line, and one object, for each policy on each trace and cloud.
  absl::Status Run(const std::vector<std::string>& clouds,
                   const std::vector<std::string>& policies) {
    std::map<std::tuple<std::string, std::string, std::string>, Sum> sums;
    std::vector<std::string> traces;
    for (const uint64_t seed : seeds_) {
      const absl::StatusOr<std::vector<Workload>> all = WorkOf(options_, seed);
      if (!all.ok()) return all.status();
      for (const Workload& work : *all) {
        if (std::ranges::find(traces, work.name) == traces.end()) traces.push_back(work.name);
        for (const std::string& cloud : clouds) {
          const std::vector<Offer> offers = OffersOf(cloud);
          const double bound = cost::LowerBound(work.tasks, offers);
          for (const std::string& name : policies) {
            const auto policy = cost::MakePolicy(name, work.tasks, offers,
                                                 {options_.money, /*runtimes=*/false, seed});
            absl::StatusOr<Figures> figures =
                cost::Live(work.tasks, offers, options_.rules, seed, *policy);
            if (!figures.ok()) return figures.status();
            Sum& sum = sums[{work.name, cloud, name}];
            sum.runs.push_back(*figures);
            sum.bound += bound / static_cast<double>(seeds_.size());
          }
        }
      }
    }
    for (const std::string& trace : traces) {
      for (const std::string& cloud : clouds) {
        for (const std::string& name : policies)
          Tell(trace, cloud, name, sums[{trace, cloud, name}]);
      }
    }
    return absl::OkStatus();
  }
  const nlohmann::json& runs() const { return runs_; }

 private:
  std::vector<Offer> OffersOf(const std::string& cloud) const {
    std::vector<Offer> offers;
    for (const Offer& offer : offers_) {
      if (offer.cloud == cloud) offers.push_back(offer);
    }
    return offers;
  }

  void Tell(const std::string& trace, const std::string& cloud, const std::string& name,
            const Sum& sum) {
    std::printf("%-10s %-6s %-17s %8.4f %8.4f %8.1f %10.1f %8.0f %8.0f\n", trace.c_str(),
                cloud.c_str(), name.c_str(), sum.money(), sum.bound, sum.wait(), sum.lost(),
                sum.rented(), sum.dropped());
    runs_.push_back({{"policy", name},
                     {"trace", trace},
                     {"cloud", cloud},
                     {"seeds", seeds_},
                     {"moneyPerGpuHour", sum.money()},
                     {"lowerBoundPerGpuHour", sum.bound},
                     {"waitMeanSeconds", sum.wait()},
                     {"interruptedGpuHours", sum.lost()},
                     {"machinesRented", sum.rented()},
                     {"tasksDropped", sum.dropped()}});
  }

  const CostOptions& options_;
  const std::vector<uint64_t> seeds_;
  const std::vector<Offer> offers_;
  nlohmann::json runs_ = nlohmann::json::array();
};

// Those asked for, or all there are.
absl::StatusOr<std::vector<std::string>> Chosen(const char* flag,
                                                const std::vector<std::string>& asked,
                                                const std::vector<std::string>& known) {
  if (asked.empty()) return known;
  for (const std::string& name : asked) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: expected any of {}, found \"{}\"", flag, fmt::join(known, ", "), name));
  }
  return asked;
}

}  // namespace

absl::Status RunCost(const CostOptions& options) {
  if (options.jobs.empty() != options.tenants.empty())
    return absl::InvalidArgumentError("expected --jobs and --tenants together, found one");
  const absl::StatusOr<std::vector<uint64_t>> seeds = ParseSeeds(options.seeds);
  if (!seeds.ok()) return seeds.status();
  absl::StatusOr<std::vector<Offer>> offers = cost::ReadOffers(options.offers);
  if (!offers.ok()) return offers.status();
  std::set<std::string> there;
  for (const Offer& offer : *offers) there.insert(offer.cloud);
  const auto clouds = Chosen("--cloud", options.clouds, {there.begin(), there.end()});
  if (!clouds.ok()) return clouds.status();
  const auto policies = Chosen("--policy", options.policies,
                               {cost::PolicyNames().begin(), cost::PolicyNames().end()});
  if (!policies.ok()) return policies.status();
  std::printf("%-10s %-6s %-17s %8s %8s %8s %10s %8s %8s\n", "trace", "cloud", "policy", "$/GPU-h",
              "bound", "wait s", "lost GPU-h", "machines", "dropped");
  Bench bench(options, *seeds, *std::move(offers));
  if (absl::Status ran = bench.Run(*clouds, *policies); !ran.ok()) return ran;
  return WriteReport(nlohmann::json{{"benchmark", "cost"},
                                    {"bootSeconds", options.rules.boot},
                                    {"idleSeconds", options.rules.idle},
                                    {"checkpointSeconds", options.rules.checkpoint},
                                    {"meanSpotHours", options.rules.mean_spot_hours},
                                    {"runs", bench.runs()}},
                     options.out);
}

}  // namespace tranche::bench
