// Reads of ResourceClaims and of pods that use them.
//
// Source: dra section 2.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/cluster/store.h"

namespace tranche::sim {

// An entry of a pod's spec.resourceClaims.
struct ClaimUse {
  std::string name;           // within the pod
  std::string key;            // "ns/claim"; empty: not made yet
  std::string template_name;  // empty: the claim is named by the pod
};
std::vector<ClaimUse> ClaimsOf(const Stored& pod);

// status.allocation; nullptr: there is none.
const Json* AllocationOf(const Json& claim);
// The node that an allocation is for.
std::string NodeOfAllocation(const Json& allocation);
// "pool/device" of what nobody else may have.
std::vector<std::string> DevicesIn(const Json& allocation);

// uids of status.reservedFor.
std::vector<std::string> ReservedFor(const Json& claim);
bool IsReservedFor(const Json& claim, std::string_view uid);
// The uid of the pod that it was made for; empty: none.
std::string OwnerOf(const Json& claim);
bool IsLeaving(const Json& object);

}  // namespace tranche::sim
