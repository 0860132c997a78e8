#include "bench/fill/fill.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "bench/fill/baselines.h"
#include "bench/fill/engine_placer.h"
#include "bench/fill/node_sample.h"
#include "bench/fill/parallel.h"
#include "bench/fill/protocol_placer.h"
#include "bench/fill/report.h"
#include "bench/report/report.h"

namespace tranche::bench {
namespace {

using fill::Books;
using fill::Placer;
using fill::TargetWorkload;
using fill::Variant;

constexpr std::string_view kEngine = "tranche";
constexpr std::string_view kMoney = "tranche-money";
constexpr std::string_view kProtocol = "tranche-protocol";
constexpr std::string_view kSample = "tranche-sample-";

// The percentage of nodes such a policy looks at; nullopt: it is another one.
std::optional<int> SampleOf(std::string_view policy) {
  if (policy == kProtocol) return fill::NodeSample::kAll;
  if (!policy.starts_with(kSample)) return std::nullopt;
  const std::string_view digits = policy.substr(kSample.size());
  int percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return percent;
}

// As many machines as wanted, the file's again and again.
void Resize(fill::Fleet& fleet, int nodes) {
  const std::size_t given = fleet.machines.size();
  if (nodes <= 0 || given == 0) return;
  fleet.machines.resize(static_cast<std::size_t>(nodes));
  for (std::size_t i = given; i < fleet.machines.size(); ++i)
    fleet.machines[i] = fleet.machines[i - given];
}

// Everything that is read once, before the first run.
struct Bench {
  FillOptions options;
  std::vector<std::string> policies;
  std::vector<uint64_t> seeds;
  fill::Fleet fleet;
  std::vector<Variant> variants;
  std::vector<TargetWorkload> targets;  // parallel to variants
  fill::MoneyRules money;
};

absl::StatusOr<std::vector<std::string>> ReadPolicies(const FillOptions& options) {
  std::vector<std::string> policies = options.policies;
  if (!options.prices.empty()) policies.emplace_back(kMoney);
  if (options.protocol) policies.emplace_back(kProtocol);
  for (const int percent : options.samples)
    policies.push_back(fmt::format("{}{}", kSample, percent));
  const auto baselines = fill::BaselineNames();
  for (const std::string& policy : policies) {
    if (policy == kMoney && !options.prices.empty()) continue;
    if (policy == kEngine || SampleOf(policy)) continue;
    if (std::ranges::find(baselines, policy) != baselines.end()) continue;
    return absl::InvalidArgumentError(fmt::format("--policy: expected any of {}, {}, found \"{}\"",
                                                  fmt::join(baselines, ", "), kEngine, policy));
  }
  return policies;
}

absl::StatusOr<Bench> Load(const FillOptions& options) {
  Bench bench;
  bench.options = options;
  auto policies = ReadPolicies(options);
  if (!policies.ok()) return policies.status();
  bench.policies = *std::move(policies);
  auto seeds = ParseSeeds(options.seeds);
  if (!seeds.ok()) return seeds.status();
  bench.seeds = *std::move(seeds);
  auto fleet = fill::ReadFleet(options.nodes);
  if (!fleet.ok()) return fleet.status();
  bench.fleet = *std::move(fleet);
  Resize(bench.fleet, options.fleet);
  if (!options.prices.empty()) {
    auto prices = fill::ReadModelPrices(options.prices);
    if (!prices.ok()) return prices.status();
    bench.money = {*std::move(prices), options.money};
  }
  for (const std::string& path : options.pods) {
    auto variant = fill::ReadVariant(path, bench.fleet);
    if (!variant.ok()) return variant.status();
    bench.targets.emplace_back(*variant);
    bench.variants.push_back(*std::move(variant));
  }
  return bench;
}

absl::StatusOr<std::unique_ptr<Placer>> MakePlacer(const Bench& bench, std::size_t variant,
                                                   const std::string& policy, const Books& books,
                                                   uint64_t seed) {
  const Variant& tasks = bench.variants[variant];
  if (policy == kEngine) return fill::MakeEnginePlacer(tasks, books);
  if (policy == kMoney) return fill::MakeEnginePlacer(tasks, books, bench.money);
  if (const std::optional<int> percent = SampleOf(policy)) {
    return fill::MakeProtocolPlacer(tasks, books, bench.options.server, seed, *percent);
  }
  return fill::MakeBaseline(policy, tasks, bench.targets[variant], seed);
}

// Names the run in what went wrong with it.
absl::Status In(const Variant& variant, const std::string& policy, uint64_t seed,
                const absl::Status& status) {
  return absl::Status(status.code(), fmt::format("{}, {}, seed {}: {}", variant.name, policy, seed,
                                                 std::string(status.message())));
}

absl::StatusOr<nlohmann::json> MeasureFill(const Bench& bench) {
  std::vector<fill::FillResult> results;
  for (const Variant& variant : bench.variants) {
    for (const std::string& policy : bench.policies) {
      results.push_back({&variant, policy, std::vector<fill::FillRun>(bench.seeds.size())});
    }
  }
  const auto run = [&](std::size_t number) -> absl::Status {
    fill::FillResult& result = results[number / bench.seeds.size()];
    const std::size_t at = number % bench.seeds.size();
    const auto variant = static_cast<std::size_t>(result.variant - bench.variants.data());
    const fill::Deal deal =
        fill::DealFill(bench.fleet, *result.variant, bench.options.tune, bench.seeds[at]);
    Books books(bench.fleet, deal.order);
    const auto placer = MakePlacer(bench, variant, result.policy, books, bench.seeds[at]);
    if (!placer.ok()) return placer.status();
    auto figures = fill::Replay(*result.variant, bench.targets[variant], deal, books, **placer);
    if (!figures.ok()) return In(*result.variant, result.policy, bench.seeds[at], figures.status());
    result.runs[at] = *std::move(figures);
    result.runs[at].looks = (*placer)->looks();
    return absl::OkStatus();
  };
  const absl::Status ran =
      fill::RunAll(results.size() * bench.seeds.size(), bench.options.jobs, run);
  if (!ran.ok()) return ran;
  fill::PrintFill(results);
  return nlohmann::json{{"benchmark", "fill"},
                        {"tune", bench.options.tune},
                        {"runs", fill::FillJson(results, bench.seeds)}};
}

absl::StatusOr<nlohmann::json> MeasureChurn(const Bench& bench) {
  std::vector<fill::ChurnResult> results;
  for (const Variant& variant : bench.variants) {
    for (const double load : bench.options.loads) {
      for (const std::string& policy : bench.policies) {
        results.push_back(
            {&variant, load, policy, std::vector<fill::ChurnRun>(bench.seeds.size())});
      }
    }
  }
  const auto run = [&](std::size_t number) -> absl::Status {
    fill::ChurnResult& result = results[number / bench.seeds.size()];
    const std::size_t at = number % bench.seeds.size();
    const auto variant = static_cast<std::size_t>(result.variant - bench.variants.data());
    const fill::ChurnDeal deal =
        fill::DealChurn(bench.fleet, *result.variant, result.load, bench.seeds[at]);
    Books books(bench.fleet, deal.order);
    const auto placer = MakePlacer(bench, variant, result.policy, books, bench.seeds[at]);
    if (!placer.ok()) return placer.status();
    const auto figures = fill::RunChurn(*result.variant, deal, books, **placer);
    if (!figures.ok()) return In(*result.variant, result.policy, bench.seeds[at], figures.status());
    result.runs[at] = *figures;
    return absl::OkStatus();
  };
  const absl::Status ran =
      fill::RunAll(results.size() * bench.seeds.size(), bench.options.jobs, run);
  if (!ran.ok()) return ran;
  fill::PrintChurn(results);
  return nlohmann::json{{"benchmark", "fill"},
                        {"mode", "churn"},
                        {"warmUpLifetimes", fill::kWarmUp},
                        {"measuredLifetimes", fill::kMeasured},
                        {"runs", fill::ChurnJson(results, bench.seeds)}};
}

}  // namespace

absl::Status RunFill(const FillOptions& options) {
  const absl::StatusOr<Bench> bench = Load(options);
  if (!bench.ok()) return bench.status();
  for (const Variant& variant : bench->variants) {
    std::printf("%s: %zu tasks, %.1f GPUs of %.0f, fnv1a64 %016llx\n", variant.name.c_str(),
                variant.tasks.size(), static_cast<double>(variant.milli()) / fill::kWhole,
                static_cast<double>(bench->fleet.milli()) / fill::kWhole,
                static_cast<unsigned long long>(variant.hash));
  }
  std::printf("seeds %s\n\n", options.seeds.c_str());
  const absl::StatusOr<nlohmann::json> document =
      options.churn ? MeasureChurn(*bench) : MeasureFill(*bench);
  if (!document.ok()) return document.status();
  return WriteReport(document->dump(1), options.out);
}

}  // namespace tranche::bench
