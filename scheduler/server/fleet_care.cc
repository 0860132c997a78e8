#include "scheduler/server/fleet_care.h"

#include <string>
#include <utility>

#include "scheduler/advice/repartition.h"
#include "scheduler/api/advice_api.h"

namespace tranche {
namespace {

void Hold(Host& host, const NodeName& node, const std::string& why) {
  host.engine.With(EngineCaller::kEvents,
                   [&](Engine& engine, Instant now) { engine.SetHeld(node, why, now); });
}

bool Empty(Host& host, const NodeName& node, std::optional<ReclaimRule> rule) {
  return host.engine.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
    return engine.SetEmptied(node, rule, now);
  });
}

MigController::Hooks MigHooks(Host& host, std::function<AdviceCase()> look) {
  MigController::Hooks hooks;
  hooks.fresh = [&host] { return host.cluster.readiness() == Readiness::kReady; };
  hooks.mode = [&host] { return host.policies.fleet_rules().mig; };
  hooks.look = std::move(look);
  hooks.plan = [](const AdviceCase& fleet) { return PlanRepartition(fleet, kPlanLimits); };
  hooks.hold = [&host](const NodeName& node, const std::string& why) { Hold(host, node, why); };
  hooks.may_empty = [&host](Instant now) {
    const std::optional<MigWindow> window = host.policies.fleet_rules().mig_window;
    return window && window->hours.HoldAt(window->zone, now);
  };
  hooks.empty = [&host](const NodeName& node) {
    return Empty(host, node, ReclaimRule::kMigLayout);
  };
  hooks.spare = [&host](const NodeName& node) { Empty(host, node, std::nullopt); };
  return hooks;
}

Consolidator::Hooks ConsolidatorHooks(Host& host, std::function<AdviceCase()> look) {
  Consolidator::Hooks hooks;
  hooks.fresh = [&host] { return host.cluster.readiness() == Readiness::kReady; };
  hooks.wanted = [&host] { return host.policies.fleet_rules().consolidate == Consolidate::kOn; };
  hooks.look = std::move(look);
  hooks.hold = [&host](const NodeName& node, const std::string& why) { Hold(host, node, why); };
  hooks.empty = [&host](const NodeName& node) {
    return Empty(host, node, ReclaimRule::kConsolidate);
  };
  hooks.spare = [&host](const NodeName& node) { Empty(host, node, std::nullopt); };
  return hooks;
}

DeletionCosts::Hooks DeletionCostHooks(Host& host, std::function<AdviceCase()> look) {
  DeletionCosts::Hooks hooks;
  hooks.fresh = [&host] { return host.cluster.readiness() == Readiness::kReady; };
  hooks.wanted = [&host] { return host.policies.fleet_rules().deletion_cost == DeletionCost::kOn; };
  hooks.look = std::move(look);
  return hooks;
}

Provisioner::Hooks ProvisionerHooks(Host& host, std::function<AdviceCase()> look) {
  Provisioner::Hooks hooks;
  hooks.fresh = [&host] { return host.cluster.readiness() == Readiness::kReady; };
  hooks.mode = [&host] { return host.policies.fleet_rules().provisioning; };
  hooks.look = std::move(look);
  hooks.expect = [&host](const std::vector<ExpectedNode>& expected) {
    host.engine.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      for (const ExpectedNode& one : expected) engine.NoteScaleUp(one.pod, one.told, now);
    });
  };
  return hooks;
}

}  // namespace

FleetCare::FleetCare(const ServeConfig& config, Host& host, ClusterApi& api,
                     metrics::Metrics& metrics, std::function<AdviceCase()> look)
    : mig_(api, api, api, metrics, MigConfigMap{config.mig_config_ns, config.mig_config_name},
           MigHooks(host, look)),
      consolidator_(api, metrics, ConsolidatorHooks(host, look)),
      deletion_costs_(api, metrics, DeletionCostHooks(host, look)),
      provisioner_(api, api, api, ProvisionerHooks(host, look)) {}

void FleetCare::Tick(Instant now) {
  mig_.Tick(now);
  consolidator_.Tick(now);
  deletion_costs_.Tick(now);
  provisioner_.Tick(now);
}

void FleetCare::AddTo(metrics::Scrape& scrape) const {
  scrape.mig_changes_pending = mig_.pending();
  provisioner_.AddTo(scrape);
  scrape.emptyings_pending = consolidator_.pending() + mig_.emptying();
}

}  // namespace tranche
