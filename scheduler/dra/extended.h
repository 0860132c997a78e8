// Extended resources that DRA serves: which class stands behind a key, and who pays once.
//
// A pod may ask `nvidia.com/gpu: 1` where a class names that key, or
// `deviceclass.resource.kubernetes.io/CLASS: 1` for any class; kube-scheduler then makes a claim of
// its own for the pod. Such a claim and the pod's request are one and the same GPU: until the claim
// is there the request is charged, from then on the claim. Pure; any thread.
// Source: dra facts section 4, KEP-5004.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/dra/model.h"
#include "scheduler/dra/pod_claims.h"
#include "scheduler/dra/selectors.h"

namespace tranche::dra {

inline constexpr std::string_view kImplicitPrefix = "deviceclass.resource.kubernetes.io/";
inline constexpr std::string_view kExtendedClaimAnnotation =
    "resource.kubernetes.io/extended-resource-claim";

// One extended resource of one container.
struct ExtendedAsk {
  std::string container;
  std::string resource;
  int64_t count = 0;
  friend bool operator==(const ExtendedAsk&, const ExtendedAsk&) = default;
};
// The class that serves the key; nullptr: DRA does not serve it.
const DeviceClass* ServingClass(std::string_view resource, const Selectors& classes);

// The request kube-scheduler would make for an ask; nullopt: DRA does not serve the key. Names are
// `container-<i>-request-<j>` with the places of container and ask.
std::optional<Request> RequestOf(const ExtendedAsk& ask, std::size_t container, std::size_t place,
                                 const Selectors& classes);

// The asks no generated claim serves: those to charge with the pod itself.
std::vector<ExtendedAsk> NotServed(std::span<const ExtendedAsk> asks,
                                   const std::optional<ExtendedStatus>& status);

// Does a pod's own accounting cover the claim already? True for one that was generated for extended
// resources of a pod whose status does not name it yet: between the claim's creation and the pod's
// status the pod is charged.
bool IsChargedWithPod(const Claim& claim, const std::optional<ExtendedStatus>& status_of_owner);

}  // namespace tranche::dra
