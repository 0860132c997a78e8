// How many pods of a gang start together, as objects of its controllers say.
//
// Errors: InvalidArgument naming what was expected, found and where.
// Source: Volcano and scheduler-plugins (apis/scheduling), kubernetes/api scheduling/v1beta1.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// API groups that have a PodGroup; the third is Kubernetes' own.
inline constexpr std::string_view kVolcanoGroup = "scheduling.volcano.sh";
inline constexpr std::string_view kPluginsGroup = "scheduling.x-k8s.io";
inline constexpr std::string_view kNativeGroup = "scheduling.k8s.io";

struct GangSize {
  std::string ns;
  std::string gang;  // as PodRequest::gang
  int size = 0;      // 0: not said
  friend bool operator==(const GangSize&, const GangSize&) = default;
};

// The gang of a PodGroup of that API group. Requires: one of those above.
std::string GangOfPodGroup(std::string_view group, std::string_view name);
// spec.minMember, or of Kubernetes' own spec.schedulingPolicy, whose policy `basic` is a size of 1:
// its pods have their turns one by one. At most 10,000.
absl::StatusOr<GangSize> DecodePodGroup(Element object, std::string_view group);
// An object whose kind's pods are a gang (GangOfOwner is not empty).
absl::StatusOr<GangSize> DecodeGangOwner(Element object, std::string_view kind);

}  // namespace tranche::wire
