// Objects of resource.k8s.io, versions v1, v1beta2 and v1beta1, as the values of scheduler/dra.
//
// v1beta1 keeps a request's fields in the request itself and a device's in `basic`; both shapes are
// read wherever they occur. Fields of gates that are off, or of later versions, are passed over
// where they do not change what is concluded. Pure; any thread; cost O(object).
// Errors: InvalidArgument naming what was expected, found and where: a field of another type than
// the API defines, a limit of the API broken (128 devices, 8 counter sets of 32 counters, 48
// attributes and capacities a device, 32 requests of 8 choices, 32 selectors of 10 KiB, 32
// constraints, 32 results, 256 consumers), a quantity beyond 9,223 trillion.
// Source: dra facts sections 2 and 7; kubernetes/api resource/v1, v1beta1 types.
#pragma once

#include "absl/status/statusor.h"
#include "scheduler/dra/model.h"
#include "scheduler/facts/pod_claims.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

absl::StatusOr<dra::DeviceClass> DecodeDeviceClass(Element object);
absl::StatusOr<dra::Slice> DecodeSlice(Element object);
absl::StatusOr<dra::Claim> DecodeClaim(Element object);
// A ResourceClaimTemplate as the claim it would make, which has the template's name.
absl::StatusOr<dra::Claim> DecodeClaimTemplate(Element object);
// The taint without a selector is of no device. Selectors by class or expression, which Kubernetes
// had until 1.35, are an error.
absl::StatusOr<dra::TaintRule> DecodeTaintRule(Element object);
// Any of these.
absl::StatusOr<dra::Object> DecodeDraObject(Element object, dra::ObjectRef::Kind kind);

// The claims of a Pod object.
absl::StatusOr<dra::PodClaims> DecodePodClaims(Element pod);

}  // namespace tranche::wire
