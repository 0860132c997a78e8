// What is to be done about ProvisioningRequests, from the gangs that wait and the requests of ours
// that there are: which to make, which to delete, and which pods are to be told of theirs.
//
// One request a gang, under a name made of the gang's, so that a restart finds it. It stays while
// the gang lacks nothing but room. What an autoscaler ended (failed, expired, revoked) stays for
// half an hour, so that nobody asks again at once, and its pods are told nothing any more: then
// the autoscaler may raise nodes for each of them as ever. Then it goes, and is asked for anew.
//
// Pods that are told to use a request (autoscaling.x-k8s.io/consume-provisioning-request) raise no
// nodes by themselves. A request that only checks never raises any, so there they are told once it
// was found that there is room. A gang of which a pod uses a request of somebody else is left to
// him.
//
// Pure functions. Source: kubernetes/autoscaler cluster-autoscaler/processors/provreq/
// pods_filter.go, cluster-autoscaler/proposals/provisioning-request.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/spec.h"
#include "scheduler/advice/room_wishes.h"
#include "scheduler/ports/pod_marks.h"
#include "scheduler/ports/provisioning.h"

namespace tranche {

inline constexpr const char* kConsumeProvisioning =
    "autoscaling.x-k8s.io/consume-provisioning-request";

// A gang waits so long before it is asked for: what is placed in a moment needs nothing.
inline constexpr Millis kProvisioningPatience{10'000};
// So long what was ended is not asked for again.
inline constexpr Millis kProvisioningRest{1'800'000};
// One that could not be made is tried again.
inline constexpr Millis kProvisioningRetry{60'000};
inline constexpr int kMostRequestsAMinute = 6;
inline constexpr std::size_t kMostRequests = 50;  // at a time
inline constexpr std::size_t kMostMarks = 50;     // pods told something, a look
inline constexpr std::size_t kMostRemoved = 50;   // a look

// "tranche-" and 16 hexadecimal digits of the gang's name, whatever text that is.
std::string ProvisioningNameOf(std::string_view gang);

// The value of spec.provisioningClassName. Requires: not kOff.
std::string_view ProvisioningClassOf(Provisioning mode);

// "asked", "accepted", "not_yet", "provisioned", "expired", "revoked" or "failed".
const char* NameOf(ProvisioningState state);
// What the state means for the gang, and what the autoscaler says itself.
std::string SaidOf(const ProvisioningFound& found);

// A node is on its way for the pod; the autoscaler said so first at `told`.
struct ExpectedNode {
  PodUid pod;
  Instant told;
  friend bool operator==(const ExpectedNode&, const ExpectedNode&) = default;
};

struct ProvisioningPlan {
  std::vector<ProvisioningWrite> make;
  std::vector<ProvisioningFound> remove;
  std::vector<PodMarkWrite> marks;
  std::vector<ExpectedNode> expected;
  // A pod of each gang of which a request stands, by the request's name: who is told what is said.
  std::map<NamespacedName, RoomWish::Member> spokesmen;
};

// `asked`: when a request was last made under the name, or tried to be.
ProvisioningPlan PlanProvisioning(Provisioning mode, const AdviceCase& fleet,
                                  const std::vector<ProvisioningFound>& found,
                                  const std::map<NamespacedName, Instant>& asked);

}  // namespace tranche
