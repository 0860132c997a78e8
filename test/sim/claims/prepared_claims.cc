#include "test/sim/claims/prepared_claims.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "test/sim/claims/claim_reads.h"
#include "test/sim/claims/device_slices.h"

namespace tranche::sim {
namespace {

// nullopt: one of them is not in the machine.
std::optional<Json> DevicesOf(const Machine& machine, const Json& allocation) {
  const std::vector<DraDevice> all = DevicesOf(machine);
  Json devices = Json::array();
  for (const Json& result : allocation.at("devices").at("results")) {
    const std::string name = result.at("device");
    const auto found =
        std::ranges::find_if(all, [&name](const DraDevice& one) { return one.name == name; });
    if (found == all.end()) return std::nullopt;
    Json device = {{"uuid", machine.cards[static_cast<std::size_t>(found->card)]},
                   {"index", found->card},
                   {"milli", found->instance < 0 ? 1000 : 0},
                   {"mib", machine.mib}};
    if (found->instance >= 0) {
      const MigInstance& cut = machine.instances[static_cast<std::size_t>(found->instance)];
      device["mib"] = cut.mib;
      device["mig"] = {{"profile", cut.profile}, {"start", cut.start}, {"size", cut.size}};
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

bool PreparedClaims::Prepare(const Stored& pod) {
  std::vector<std::pair<StoredPtr, Json>> ready;
  for (const ClaimUse& use : ClaimsOf(pod)) {
    const StoredPtr claim = store_.Find("resourceclaims", use.key);
    if (claim == nullptr || !IsReservedFor(claim->object(), pod.uid())) return false;
    const Json* const allocation = AllocationOf(claim->object());
    if (allocation == nullptr || NodeOfAllocation(*allocation) != machine_.name) return false;
    std::optional<Json> devices = DevicesOf(machine_, *allocation);
    if (!devices) return false;
    ready.emplace_back(claim, std::move(*devices));
  }
  for (auto& [claim, devices] : ready) {
    Claim& one = claims_[std::string(claim->uid())];
    one.key = claim->key();
    const bool is_first = one.pods.empty();
    one.pods.emplace(pod.uid());
    if (!is_first) continue;
    Happening granted{Happening::Kind::kGranted};
    granted.who = "dra-driver/" + machine_.name;
    granted.resource = "resourceclaims";
    granted.key = claim->key();
    granted.text = claim->uid();
    granted.after = {{"node", machine_.name}, {"devices", std::move(devices)}};
    history_.Add(std::move(granted));
  }
  return true;
}

void PreparedClaims::Unprepare(const std::string& pod_uid) {
  for (auto at = claims_.begin(); at != claims_.end();) {
    const auto claim = at++;
    if (claim->second.pods.erase(pod_uid) == 0 || !claim->second.pods.empty()) continue;
    Happening released{Happening::Kind::kReleased};
    released.who = "dra-driver/" + machine_.name;
    released.resource = "resourceclaims";
    released.key = claim->second.key;
    released.text = claim->first;
    history_.Add(std::move(released));
    claims_.erase(claim);
  }
}

}  // namespace tranche::sim
