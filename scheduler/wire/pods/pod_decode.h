// A Pod object -> PodFacts: the only place that knows how pods spell their GPU wishes.
//
// Every request style is read here, one style_NAME.cc each (request-dialects sections 2-14, 16).
// Nothing is dropped silently: what cannot be honoured becomes PodRequest::refusal with the value
// quoted.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// How much of a pod is wanted. kRequest leaves out how it may be taken away (owner, evictable,
// unschedulable, checkpointed_at, labels), of which kube-scheduler's questions need nothing.
enum class PodDetail : uint8_t { kAll, kRequest };

// Errors: InvalidArgument when this is no Pod object: metadata or its name missing, or a field of
// another JSON type than the API defines. GPU amounts never cause an error (see refusal).
// `apiVersion` and `kind` may be absent, as in what kube-scheduler sends. A pod without uid gets
// an empty PodUid.
absl::StatusOr<PodFacts> DecodePod(Element pod, PodDetail detail = PodDetail::kAll);

}  // namespace tranche::wire
