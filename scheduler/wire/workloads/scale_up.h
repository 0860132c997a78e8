// What autoscalers say of pods they raise nodes for: Events on the pod.
//
// Errors: InvalidArgument naming what was expected, found and where.
// Source: cluster-autoscaler (processors/status/eventing_scale_up_processor.go) writes
// TriggeredScaleUp; Karpenter (pkg/controllers/provisioning/scheduling/events.go) writes Nominated,
// "Pod should schedule on: nodeclaim/NAME" where a machine is made for it, and a node/NAME, alone
// or after the machine's name, where it fits one that is there. Both write core/v1 Events with
// firstTimestamp and lastTimestamp.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche::wire {

inline constexpr std::string_view kTriggeredScaleUp = "TriggeredScaleUp";
inline constexpr std::string_view kNominatedByKarpenter = "Nominated";

struct ScaleUp {
  PodUid pod;
  std::optional<Instant> told;  // first; nullopt: the event does not say
  friend bool operator==(const ScaleUp&, const ScaleUp&) = default;
};

// nullopt: an Event of something else.
absl::StatusOr<std::optional<ScaleUp>> DecodeScaleUp(Element event);

}  // namespace tranche::wire
