// What the admission webhook makes of a pod: the patch for a new one, and what is refused.
//
// Everything here is a convenience or a guard: a pod that passed no webhook is treated the same by
// filter and bind, except that the API server itself refuses fractions of nvidia.com/gpu. Pure
// functions. Source: request-dialects sections 4.1, 11 and 16, hazards row 57.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/reason.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/protocol/admission_review.h"

namespace tranche::wire {

// GPUs in one machine, at most. A container that asks for more would wait for ever.
inline constexpr int64_t kMostGpusOfANode = 64;

struct MutationRules {
  std::string_view scheduler_name;  // for pods that ask for GPUs and name no scheduler of their own
  std::span<const std::string> take_over;  // schedulers whose pods are ours all the same
  bool strip_results = true;  // false: the user may set what schedulers and agents write
  // A container with nvidia.com/gpumem or gpucores and no nvidia.com/gpu gets one GPU, as HAMi's
  // webhook does it, and so does one with a part of a GPU: without the count the kubelet would not
  // call HAMi's device plugin. (On nodes of the stock plugin it would give away a whole card.)
  bool count_hami_shares = false;
  // Of pods that are ours: nvidia.com/gpumem, gpumem-percentage and gpucores of containers with
  // nvidia.com/gpu go into the annotation tranche.dev/hami-limits.
  bool move_hami_limits = false;
};

class PodMutation {
 public:
  using Keys = std::array<std::string_view, 3>;

  // `pod` is a Pod about to be created; it and `rules` outlive this. Containers that ask for memory
  // or cores of a vGPU of Volcano or vgpu-manager, and not for how many, get one: the kubelet calls
  // their agents for the count.
  PodMutation(Object pod, const MutationRules& rules);

  // Set: the pod must not be created as it is.
  const std::optional<std::string>& refusal() const { return refusal_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // What it asks for is not what the document says, until the patch is applied.
  bool changes_request() const { return changes_request_; }
  // The pod names no scheduler, the default one, the rules' own or one of take_over: ours to place.
  bool is_ours() const;
  // Has our scheduler place it, and warns where it named another. Requires: is_ours().
  void SetScheduler();
  // Warns that another scheduler is asked for a pod that wants GPUs. Requires: !is_ours().
  void WarnOfOtherScheduler();
  void AddGates(GateSet gates);
  // Tells Karpenter and cluster-autoscaler to leave the pod alone, each unless the pod says
  // something of it.
  void SpareFromAutoscalers();
  // Shows the container with the share the cards that a Binding names (placeholder_pod.h), where
  // neither the kubelet's plugin nor the pod itself says them. `request`: as changed.
  void ShowDevices(const PodRequest& request);
  std::string patch() const { return patch_.text(); }

 private:
  struct PodContainer;
  struct Fraction;
  // work(container) for each, init containers first. Requires: spec_.
  template <typename Work>
  void ForEachContainer(Work work) const;
  void StripResults();
  void RewriteFractions();
  void ReadFraction(const PodContainer& one, std::optional<Fraction>& found);
  void WriteFraction(const Fraction& fraction);
  void CountShares(std::string_view count, const Keys& parts);
  void MoveHamiLimits();
  void SetAnnotation(std::string_view key, std::string_view value);

  Object pod_;
  const MutationRules& rules_;
  std::optional<Object> spec_;
  std::optional<Object> annotations_;
  bool annotations_made_ = false;  // the patch has added the map
  bool changes_request_ = false;
  std::optional<std::string> refusal_;
  std::vector<std::string> warnings_;
  JsonPatch patch_;
};

// May the pod with this spec.schedulerName come to us? The default scheduler may be ours too.
bool IsOurs(std::string_view named, std::string_view scheduler_name);

// The document with a patch applied that is not empty, as JSON text. Errors: InvalidArgument where
// the patch does not go with it. Cost: a second copy of the pod, some 50 microseconds.
absl::StatusOr<std::string> ApplyPatch(Element document, std::string_view patch);

// Why a new pod must not be created, whatever the cluster has: its request can never be met.
struct Impossible {
  Reason reason = Reason::kNone;
  std::string message;
};
std::optional<Impossible> FindImpossible(const PodFacts& pod);
// The first annotation that only schedulers and agents write; empty: none.
std::string_view FindResultKey(Object pod);
// The first such annotation that the two do not share with the same value; empty: none.
std::string_view FindChangedResult(Object before, Object after);

}  // namespace tranche::wire
