// ProvisioningRequests, by which an autoscaler is asked for room for many pods at once.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
// Source: kubernetes/autoscaler cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/
// v1/types.go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// So many pods like that one.
struct ProvisioningSet {
  PodName pod;
  PodUid uid;
  int64_t count = 0;
};

struct ProvisioningWrite {
  NamespacedName name;
  std::string gang;                // of which it is, as of PodRequest
  std::string provisioning_class;  // spec.provisioningClassName
  std::vector<ProvisioningSet> sets;
};

// What its conditions say, the strongest first: Failed, CapacityRevoked and BookingExpired end it.
enum class ProvisioningState : uint8_t {
  kAsked,        // none of them
  kAccepted,     // an autoscaler tries
  kNotYet,       // Provisioned is False: it tries again
  kProvisioned,  // the nodes are there, or asked for
  kExpired,      // BookingExpired: they were, and are no longer kept
  kRevoked,      // CapacityRevoked
  kFailed,
};
inline constexpr int kProvisioningStates = 7;

inline bool HasEnded(ProvisioningState state) { return state >= ProvisioningState::kExpired; }

// One of ours, as the server has it.
struct ProvisioningFound {
  NamespacedName name;
  std::string gang;
  std::string provisioning_class;
  int64_t pods = 0;                    // of all sets
  std::vector<std::string> templates;  // names of its PodTemplates
  bool deleting = false;
  ProvisioningState state = ProvisioningState::kAsked;
  std::optional<Instant> since;  // of the condition that says so
  std::string reason;            // of that condition, a word
  std::string message;           // of that condition, cut
};

struct ProvisioningList {
  enum class Kind : uint8_t {
    kListed,
    kNoSuchKind,  // the cluster does not have the definition
    kForbidden,   // without a right to see them there is none to make or delete one either
    kFailed,      // no answer: `message`
  };
  Kind kind = Kind::kFailed;
  std::vector<ProvisioningFound> found;
  std::string message;
};

class ProvisioningRequests {
 public:
  virtual ~ProvisioningRequests() = default;
  // Those that carry our label.
  virtual void ListProvisioning(std::function<void(ProvisioningList)> done) = 0;
  // Reads a pod of each set, makes PodTemplates of what schedulers go by, and the request. Both are
  // owned by these pods, and are gone with them. kRejected with 409: one of that name is there.
  virtual void Provision(ProvisioningWrite write, std::function<void(WriteResult)> done) = 0;
  // And its PodTemplates. Gone already counts as done.
  virtual void Unprovision(ProvisioningFound request, std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
