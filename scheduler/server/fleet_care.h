// What is done to nodes by policy: other MIG layouts (GPUPolicy.mig), and emptying those that run
// little (GPUPolicy.consolidate); and what is said of pods for when their number is changed
// (GPUPolicy.deletionCost), and asked for gangs that wait for room (GPUPolicy.provisioning).
//
// Thread rule: Tick by one thread at a time; AddTo and ProvisioningOf from any.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scheduler/controllers/consolidator.h"
#include "scheduler/controllers/mig_controller.h"
#include "scheduler/controllers/scaling/deletion_costs.h"
#include "scheduler/controllers/scaling/provisioner.h"
#include "scheduler/host/host.h"
#include "scheduler/ports/cluster_api.h"
#include "scheduler/server/config.h"

namespace tranche {

class FleetCare {
 public:
  // All must outlive it. `look`: the cluster as values, as it is now.
  FleetCare(const ServeConfig& config, Host& host, ClusterApi& api, metrics::Metrics& metrics,
            std::function<AdviceCase()> look);

  // `now` does not go back.
  void Tick(Instant now);
  void AddTo(metrics::Scrape& scrape) const;
  // As Provisioner::StandingOf.
  std::optional<ProvisioningFound> ProvisioningOf(const std::string& ns,
                                                  const std::string& gang) const {
    return provisioner_.StandingOf(ns, gang);
  }

 private:
  MigController mig_;
  Consolidator consolidator_;
  DeletionCosts deletion_costs_;
  Provisioner provisioner_;
};

}  // namespace tranche
