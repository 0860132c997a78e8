// What is kept of pods that use resource claims (resource.k8s.io).
//
// A claim is charged once, to its own namespace, from its allocation until that ends, however many
// pods use it. What filter lets in is kept for a moment, so that pods that come together do not all
// get what one of them may have. Devices are chosen by kube-scheduler alone; here they are
// predicted to order nodes. Values; externally synchronised, as the engine is.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quota/tree/model_charge.h"
#include "scheduler/engine/claims/claim_scores.h"
#include "scheduler/engine/state/records.h"
#include "scheduler/facts/pod_claims.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/node_names.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// A pod that uses claims and asks for GPUs in no other way.
struct ClaimingPod : PodRecord {
  std::shared_ptr<const dra::PodClaims> claims;
  bool quota_gate = false;   // ours
  bool other_gates = false;  // ours for its gang, or somebody else's
  // Some node has GPUs its claims could get, or they hold some: known from the first filter on.
  bool wants_gpus = false;
  std::optional<Instant> told;  // requeued, or its gate's removal asked for
};

struct ClaimBooks {
  ClaimScores scores;
  std::map<PodUid, ClaimingPod> pods;
  std::set<std::pair<PodName, PodUid>> by_name;
  std::map<NodeName, std::set<PodUid>> on_node;
  // Kept for pods that were let in, by the key in the quota's books: until when; nullopt: until it
  // is asked again.
  std::map<PodUid, std::optional<Instant>> kept;
  // Pods that ask for extended resources, and the nodes where DRA serves these: best first, by the
  // last filter.
  std::map<PodUid, std::vector<NodeId>> served;
  std::set<PodUid> unknown;  // pods with a claim nobody has shown yet
  // Pods that held devices and have gone. Their claims say so a little later, and at the latest
  // then.
  std::map<PodUid, Instant> gone;
  bool complete = false;  // the first complete set of objects is in
  Instant looked_at;      // when waiting pods were looked at last
};

// The key a claim has in the quota's books.
inline PodUid KeyOfClaim(const std::string& claim_uid) { return PodUid("claim/" + claim_uid); }
inline std::string UidOfClaim(const PodUid& key) { return key.str().substr(sizeof("claim/") - 1); }
// What is kept for claims that are still to be made for the pod.
inline PodUid KeyOfClaimsToBe(const PodUid& pod) { return PodUid("claim/of-pod/" + pod.str()); }

}  // namespace tranche
