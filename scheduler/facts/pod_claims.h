// Which claims a pod uses, and in which containers. Plain values; any thread.
// Source: dra facts sections 2 and 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tranche::dra {

// One entry of spec.resourceClaims, in order: the order in which they are allocated.
struct PodClaim {
  std::string name;           // within the pod
  std::string claim;          // the claim; empty: not generated yet, or none was needed
  std::string template_name;  // it is generated from; empty: it is named
  friend bool operator==(const PodClaim&, const PodClaim&) = default;
};
struct ContainerClaim {
  std::string container;
  std::string name;     // of the PodClaim
  std::string request;  // empty: all of the claim
  friend bool operator==(const ContainerClaim&, const ContainerClaim&) = default;
};

// status.extendedResourceClaimStatus: which extended resources of which containers the claim that
// was generated for the pod serves.
struct ExtendedStatus {
  std::string claim;
  struct Mapping {
    std::string container;
    std::string resource;
    std::string request;  // of the claim
    friend bool operator==(const Mapping&, const Mapping&) = default;
  };
  std::vector<Mapping> mappings;
  friend bool operator==(const ExtendedStatus&, const ExtendedStatus&) = default;
};

// One extended resource of one container.
struct ExtendedAsk {
  std::string container;
  std::string resource;
  int64_t count = 0;
  friend bool operator==(const ExtendedAsk&, const ExtendedAsk&) = default;
};

struct PodClaims {
  std::vector<PodClaim> claims;
  std::vector<ContainerClaim> containers;
  std::vector<ExtendedAsk> asks;  // deviceclass.resource.kubernetes.io/CLASS
  std::optional<ExtendedStatus> extended;
  bool empty() const { return claims.empty() && asks.empty() && !extended; }
  friend bool operator==(const PodClaims&, const PodClaims&) = default;
};

}  // namespace tranche::dra
