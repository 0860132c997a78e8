#include "test/sim/claims/claim_reads.h"

#include <algorithm>

namespace tranche::sim {
namespace {

const Json* Find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

const Json* FindIn(const Json& object, const char* part, const char* key) {
  const Json* const inner = Find(object, part);
  return inner == nullptr ? nullptr : Find(*inner, key);
}

}  // namespace

std::vector<ClaimUse> ClaimsOf(const Stored& pod) {
  std::vector<ClaimUse> uses;
  const Json* const claims = FindIn(pod.object(), "spec", "resourceClaims");
  if (claims == nullptr) return uses;
  const Json* const made = FindIn(pod.object(), "status", "resourceClaimStatuses");
  for (const Json& claim : *claims) {
    ClaimUse& use = uses.emplace_back();
    use.name = claim.at("name");
    use.template_name = claim.value("resourceClaimTemplateName", "");
    std::string named = claim.value("resourceClaimName", "");
    for (const Json& status : made == nullptr ? Json::array() : *made) {
      if (status.at("name") == use.name) named = status.value("resourceClaimName", "");
    }
    if (!named.empty()) use.key = std::string(pod.ns()) + "/" + named;
  }
  return uses;
}

const Json* AllocationOf(const Json& claim) { return FindIn(claim, "status", "allocation"); }

std::string NodeOfAllocation(const Json& allocation) {
  return allocation.at("nodeSelector")
      .at("nodeSelectorTerms")
      .at(0)
      .at("matchFields")
      .at(0)
      .at("values")
      .at(0);
}

std::vector<std::string> DevicesIn(const Json& allocation) {
  std::vector<std::string> devices;
  for (const Json& result : allocation.at("devices").at("results")) {
    if (result.value("adminAccess", false)) continue;
    devices.push_back(result.at("pool").get<std::string>() + "/" +
                      result.at("device").get<std::string>());
  }
  return devices;
}

std::vector<std::string> ReservedFor(const Json& claim) {
  std::vector<std::string> uids;
  const Json* const list = FindIn(claim, "status", "reservedFor");
  if (list == nullptr) return uids;
  for (const Json& consumer : *list) uids.push_back(consumer.at("uid"));
  return uids;
}

bool IsReservedFor(const Json& claim, std::string_view uid) {
  const std::vector<std::string> uids = ReservedFor(claim);
  return std::ranges::find(uids, uid) != uids.end();
}

std::string OwnerOf(const Json& claim) {
  const Json* const owners = FindIn(claim, "metadata", "ownerReferences");
  return owners == nullptr || owners->empty() ? "" : owners->at(0).value("uid", "");
}

bool IsLeaving(const Json& object) { return object.at("metadata").contains("deletionTimestamp"); }

}  // namespace tranche::sim
