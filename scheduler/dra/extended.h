// Extended resources that DRA serves: which class stands behind a key, and who pays once.
//
// A pod may ask `nvidia.com/gpu: 1` where a class names that key, or
// `deviceclass.resource.kubernetes.io/CLASS: 1` for any class; kube-scheduler then makes a claim of
// its own for the pod. Such a claim and the pod's request are one and the same GPU, which the claim
// is charged. Pure; any thread.
// Source: dra facts section 4, KEP-5004.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/dra/model.h"
#include "scheduler/facts/pod_claims.h"
#include "scheduler/dra/selectors.h"

namespace tranche::dra {

inline constexpr std::string_view kImplicitPrefix = "deviceclass.resource.kubernetes.io/";
inline constexpr std::string_view kExtendedClaimAnnotation =
    "resource.kubernetes.io/extended-resource-claim";

// The class that serves the key; nullptr: DRA does not serve it.
const DeviceClass* ServingClass(std::string_view resource, const Selectors& classes);

// The request kube-scheduler would make for an ask; nullopt: DRA does not serve the key. Names are
// `container-<i>-request-<j>` with the places of container and ask.
std::optional<Request> RequestOf(const ExtendedAsk& ask, std::size_t container, std::size_t place,
                                 const Selectors& classes);

// The asks no generated claim serves: those to charge with the pod itself.
std::vector<ExtendedAsk> NotServed(std::span<const ExtendedAsk> asks,
                                   const std::optional<ExtendedStatus>& status);

}  // namespace tranche::dra
