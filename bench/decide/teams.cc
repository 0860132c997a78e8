#include "bench/decide/teams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "bench/decide/fleet.h"

namespace tranche::bench {
namespace {

constexpr int64_t kHoursOfMonth = 744;
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

std::string Class(const ProfileClass& of) {
  return fmt::format(
      R"({}"GPUClass","metadata":{{"name":"{}"}},"spec":{{"priorityClassNames":["gpu-{}"],)"
      R"("rank":{},"preemptible":"{}","sharing":["Exclusive","TimeSliced"],)"
      R"("chargeFactor":"{}"}}}})",
      kHead, of.name, of.name, of.rank, of.preemptible, of.charge_factor);
}

std::string Budget(int team, int64_t hours) {
  return fmt::format(R"({}"GPUBudget","metadata":{{"name":"{}-monthly"}},"spec":{{"quotaRef":"{}",)"
                     R"("gpuHours":"{}","window":{{"type":"Month"}},"rates":{{"h100":"1.0"}},)"
                     R"("onExhaustion":"{}"}}}})",
                     kHead, TeamName(team), TeamName(team), hours,
                     team % 2 == 0 ? "Demote" : "Block");
}

}  // namespace

absl::Status WriteTeams(const Profile& profile, const std::string& path) {
  const int64_t gpus = int64_t{profile.nodes} * profile.gpus_per_node;
  const auto used = static_cast<int64_t>(static_cast<double>(gpus) * profile.fill);
  const int64_t use = std::max<int64_t>(1, used / profile.teams);
  std::ofstream file(path);
  file << R"({"apiVersion":"v1","kind":"List","items":[)"
       << "\n";
  for (const ProfileClass& of : profile.classes) file << Class(of) << ",\n";
  file << Quota("org", "", "", {gpus / 10 + 1, 0});
  for (int i = 0; i < profile.departments; ++i) {
    file << ",\n" << Quota(fmt::format("department-{}", i), "org", "", {use, gpus});
  }
  for (int team = 0; team < profile.teams; ++team) {
    const std::string name = TeamName(team);
    const bool last = team + 1 == profile.teams;
    const ProfileTeam& kind = last ? profile.last : profile.KindOf(team);
    const std::string selector = fmt::format(
        R"("namespaceSelector":{{"matchLabels":{{"kubernetes.io/metadata.name":"{}"}}}},)", name);
    file << ",\n"
         << fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{0}",)"
                        R"("labels":{{"kubernetes.io/metadata.name":"{0}"}}}}}})",
                        name)
         << ",\n"
         << Quota(name, fmt::format("department-{}", team % profile.departments), selector,
                  {kind.nominal.Of(use), kind.borrow.Of(use)})
         << ",\n"
         << Budget(team, team + 2 == profile.teams ? 0 : profile.budget.Of(use) * kHoursOfMonth);
  }
  file << "]}";
  file.close();
  return file ? absl::OkStatus()
              : absl::UnavailableError(
                    fmt::format("expected to write {}, found: {}", path, std::strerror(errno)));
}

}  // namespace tranche::bench
