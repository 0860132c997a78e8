#include "bench/decide/teams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace tranche::bench {
namespace {

constexpr int kDepartments = 4;
constexpr std::string_view kHead = R"({"apiVersion":"tranche.dev/v1alpha1","kind":)";

// What a quota has of H100s and of any model, in GPUs; it lends two thirds.
struct Limits {
  int64_t nominal = 0;
  int64_t borrow = 0;
};

std::string Quota(std::string_view name, std::string_view parent, std::string_view selector,
                  const Limits& limits) {
  std::string lines;
  for (const std::string_view model : {"h100", "any"}) {
    lines += fmt::format(
        R"({}{{"model":"{}","nominal":{{"gpus":"{}"}},"borrowLimit":{{"gpus":"{}"}},)"
        R"("lendLimit":{{"gpus":"{}"}}}})",
        lines.empty() ? "" : ",", model, limits.nominal, limits.borrow, limits.nominal * 2 / 3);
  }
  return fmt::format(R"({}"GPUQuota","metadata":{{"name":"{}"}},"spec":{{{}{}"lines":[{}]}}}})",
                     kHead, name, parent.empty() ? "" : fmt::format(R"("parent":"{}",)", parent),
                     selector, lines);
}

std::string Class(std::string_view name, int rank, std::string_view preemptible,
                  std::string_view factor) {
  return fmt::format(
      R"({}"GPUClass","metadata":{{"name":"{}"}},"spec":{{"priorityClassNames":["gpu-{}"],)"
      R"("rank":{},"preemptible":"{}","sharing":["Exclusive","TimeSliced"],)"
      R"("chargeFactor":"{}"}}}})",
      kHead, name, name, rank, preemptible, factor);
}

std::string Budget(int team, int64_t hours) {
  return fmt::format(R"({}"GPUBudget","metadata":{{"name":"{}-monthly"}},"spec":{{"quotaRef":"{}",)"
                     R"("gpuHours":"{}","window":{{"type":"Month"}},"rates":{{"h100":"1.0"}},)"
                     R"("onExhaustion":"{}"}}}})",
                     kHead, TeamName(team), TeamName(team), hours,
                     team % 2 == 0 ? "Demote" : "Block");
}

}  // namespace

absl::Status WriteTeams(const FleetOptions& options, const std::string& path) {
  const int64_t gpus = int64_t{options.nodes} * options.gpus_per_node;
  const auto used = static_cast<int64_t>(static_cast<double>(gpus) * options.fill);
  const int64_t use = std::max<int64_t>(1, used / options.teams);
  std::ofstream file(path);
  file << R"({"apiVersion":"v1","kind":"List","items":[)"
       << "\n"
       << Class("inference", 3, "Never", "1.0") << ",\n"
       << Class("training", 2, "Always", "1.0") << ",\n"
       << Class("notebook", 1, "Always", "1.0") << ",\n"
       << Class("scavenger", 0, "Always", "0.25") << ",\n"
       << Quota("org", "", "", {gpus / 10 + 1, 0});
  for (int i = 0; i < kDepartments; ++i) {
    file << ",\n" << Quota(fmt::format("department-{}", i), "org", "", {use, gpus});
  }
  for (int team = 0; team < options.teams; ++team) {
    const std::string name = TeamName(team);
    const bool last = team + 1 == options.teams;
    // Half more than it uses, or a quarter less; the last one has far less and may not borrow.
    const Limits limits = last            ? Limits{use / 4, 0}
                          : team % 4 == 3 ? Limits{use * 3 / 4, use * 2 + 64}
                                          : Limits{use * 3 / 2 + 64, use * 2 + 64};
    const std::string selector = fmt::format(
        R"("namespaceSelector":{{"matchLabels":{{"kubernetes.io/metadata.name":"{}"}}}},)", name);
    file << ",\n"
         << fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{0}",)"
                        R"("labels":{{"kubernetes.io/metadata.name":"{0}"}}}}}})",
                        name)
         << ",\n"
         << Quota(name, fmt::format("department-{}", team % kDepartments), selector, limits)
         << ",\n"
         << Budget(team, team + 2 == options.teams ? 0 : (use * 4 + 64) * 744);
  }
  file << "]}";
  file.close();
  return file ? absl::OkStatus()
              : absl::UnavailableError(
                    fmt::format("expected to write {}, found: {}", path, std::strerror(errno)));
}

}  // namespace tranche::bench
