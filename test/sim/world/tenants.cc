#include "test/sim/world/tenants.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace tranche::sim {
namespace {

Json Custom(const char* kind, const std::string& name, Json spec) {
  return {{"apiVersion", "tranche.dev/v1alpha1"},
          {"kind", kind},
          {"metadata", {{"name", name}}},
          {"spec", std::move(spec)}};
}

Json Namespace(const std::string& name, Json labels) {
  labels["kubernetes.io/metadata.name"] = name;
  return {{"apiVersion", "v1"},
          {"kind", "Namespace"},
          {"metadata", {{"name", name}, {"labels", std::move(labels)}}},
          {"status", {{"phase", "Active"}}}};
}

Json Priority(const char* name, int64_t value, bool never) {
  Json object = {{"apiVersion", "scheduling.k8s.io/v1"},
                 {"kind", "PriorityClass"},
                 {"metadata", {{"name", name}}},
                 {"value", value}};
  if (never) object["preemptionPolicy"] = "Never";
  return object;
}

void AddClasses(Draws& draws, Tenants& tenants) {
  const bool planned = draws.Below(2) == 0;  // Tranche alone preempts
  tenants.objects.emplace_back("priorityclasses", Priority("dev", 10, planned));
  tenants.objects.emplace_back("priorityclasses", Priority("batch", 100, planned));
  tenants.objects.emplace_back("priorityclasses", Priority("batch-never", 100, true));
  tenants.objects.emplace_back("priorityclasses", Priority("important", 1000, planned));
  if (draws.Below(2) == 0) {
    tenants.objects.emplace_back("gpuclasses",
                                 Custom("GPUClass", "development",
                                        {{"priorityClassNames", Json::array({"dev"})},
                                         {"rank", 1},
                                         {"minRuntime", fmt::format("{}s", draws.Between(0, 20))},
                                         {"gracePeriod", fmt::format("{}s", draws.Between(1, 20))},
                                         {"chargeFactor", "0.5"}}));
  }
}

void AddBudget(Draws& draws, const std::string& quota, Tenants& tenants) {
  const std::string name = quota + "-hours";
  // Some last, some run out while the simulation runs.
  const int64_t thousandths = draws.Below(2) == 0 ? 100'000 : draws.Between(50, 2'000);
  Json spec = {{"quotaRef", quota},
               {"gpuHours", fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000)},
               {"window", {{"type", draws.Below(2) == 0 ? "Week" : "Month"}, {"timeZone", "UTC"}}},
               {"onExhaustion", draws.Below(2) == 0 ? "Block" : "Demote"}};
  tenants.objects.emplace_back("gpubudgets", Custom("GPUBudget", name, std::move(spec)));
  tenants.budgets.push_back(name);
}

}  // namespace

Json QuotaLines(Draws& draws, const std::vector<Machine>& machines, int teams) {
  const bool has_pools =
      std::ranges::any_of(machines, [](const Machine& machine) { return !machine.pool.empty(); });
  const bool by_pool = has_pools && draws.Below(2) == 0;
  std::map<std::pair<std::string, std::string>, int64_t> cards;  // by model and pool
  for (const Machine& machine : machines) {
    if (machine.cards.empty()) continue;
    const bool of_all = by_pool && !machine.pool.empty() && draws.Below(3) == 0;
    cards[{of_all ? "any" : machine.model, by_pool ? machine.pool : ""}] +=
        static_cast<int64_t>(machine.cards.size());
  }
  Json lines = Json::array();
  for (const auto& [of, count] : cards) {
    const int64_t share = std::max<int64_t>(1, count / teams);
    Json line = {{"model", of.first},
                 {"nominal", {{"gpus", std::to_string(draws.Between(share / 2 + 1, share + 2))}}}};
    if (draws.Below(2) == 0) line["borrowLimit"] = {{"gpus", std::to_string(draws.Between(0, 8))}};
    if (draws.Below(4) == 0) {
      line["lendLimit"] = {{"gpus", std::to_string(draws.Between(0, share))}};
    }
    if (!of.second.empty()) line["pool"] = of.second;
    lines.push_back(std::move(line));
  }
  return lines;
}

namespace {

Json& PolicyOf(Tenants& tenants) {
  const auto is_policy = [](const auto& object) { return object.first == "gpupolicies"; };
  auto policy = std::ranges::find_if(tenants.objects, is_policy);
  if (policy == tenants.objects.end()) {
    tenants.objects.emplace_back("gpupolicies", Custom("GPUPolicy", "fleet", Json::object()));
    policy = std::prev(tenants.objects.end());
  }
  return policy->second;
}

}  // namespace

void AllowUnenforcedSharing(Tenants& tenants) {
  PolicyOf(tenants)["spec"]["sharing"]["unenforced"] = "Allow";
}

void Consolidate(Tenants& tenants) { PolicyOf(tenants)["spec"]["consolidate"] = "On"; }

void DrainNoticed(Tenants& tenants) { PolicyOf(tenants)["spec"]["onInterruption"] = "Drain"; }

void DeclarePool(Tenants& tenants, const std::string& pool) {
  tenants.objects.emplace_back(
      "gpupools", Custom("GPUPool", pool, {{"nodes", {{"matchLabels", {{kPoolLabel, pool}}}}}}));
  const Json line = {{"model", "any"}, {"pool", pool}, {"nominal", {{"gpus", "0"}}}};
  tenants.objects.emplace_back("gpuquotas",
                               Custom("GPUQuota", kPoolKeeper, {{"lines", Json::array({line})}}));
}

void GuardNamespaces(Tenants& tenants) {
  for (const std::string& ns : tenants.namespaces) {
    tenants.objects.emplace_back(
        "poddisruptionbudgets",
        Json{{"apiVersion", "policy/v1"},
             {"kind", "PodDisruptionBudget"},
             {"metadata", {{"name", kGuard}, {"namespace", ns}}},
             {"spec", {{"minAvailable", 0}, {"selector", {{"matchLabels", Json::object()}}}}}});
  }
}

void NominateEarly(Tenants& tenants) { PolicyOf(tenants)["spec"]["placement"]["nominate"] = "On"; }

Tenants DrawTenants(Draws& draws, const std::vector<Machine>& machines, int hami_minor) {
  Tenants tenants;
  for (const char* name : kSystemNamespaces) {
    tenants.objects.emplace_back("namespaces", Namespace(name, Json::object()));
  }
  AddClasses(draws, tenants);
  if (hami_minor >= 9 && draws.Below(2) == 0) {
    tenants.objects.emplace_back(
        "gpupolicies", Custom("GPUPolicy", "fleet",
                              {{"agents", {{"hamiVersion", fmt::format("2.{}", hami_minor)}}}}));
  }
  const bool has_quotas = draws.Below(8) > 0;
  const int teams = static_cast<int>(draws.Between(2, 5));
  if (has_quotas) {
    tenants.objects.emplace_back("gpuquotas", Custom("GPUQuota", "org", Json::object()));
  }
  for (int team = 0; team < teams; ++team) {
    const std::string name = fmt::format("team-{}", team);
    Json labels = {{"team", name}};
    if (draws.Below(2) == 0) {
      labels["tranche.dev/schedule"] = draws.Below(2) == 0 ? "true" : "hami";
    }
    tenants.objects.emplace_back("namespaces", Namespace(name, std::move(labels)));
    tenants.namespaces.push_back(name);
    // The last team may have no quota, and runs as it likes.
    if (!has_quotas || (team == teams - 1 && draws.Below(4) == 0)) continue;
    Json spec = {{"parent", "org"},
                 {"namespaceSelector", {{"matchLabels", {{"team", name}}}}},
                 {"lines", QuotaLines(draws, machines, teams)}};
    if (draws.Below(3) == 0)
      spec["reclaim"] = {{"minRuntime", fmt::format("{}s", draws.Between(0, 30))}};
    tenants.objects.emplace_back("gpuquotas", Custom("GPUQuota", name, std::move(spec)));
    tenants.quotas.push_back(name);
    if (draws.Below(3) == 0) AddBudget(draws, name, tenants);
  }
  return tenants;
}

}  // namespace tranche::sim
