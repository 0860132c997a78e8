// What kube-scheduler's allocator would pick for a pod's claims on a node.
//
// The same first fit: claims and requests in order, of a request the first choice that works,
// devices in the order of the books, backtracking over constraints, shared counters and capacities.
// Deterministic: equal cases get equal answers. "Unknown" is said wherever a selector is beyond our
// subset of CEL, a search is too long, or releases of Kubernetes differ; it never rules a node out.
// One thread at a time (Selectors). Cost: at most `most_steps` steps of a scan over the node's
// devices; usually one a device asked for. Source: dra facts section 4; structured allocator of
// kubernetes/kubernetes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/dra/free.h"
#include "scheduler/dra/model.h"
#include "scheduler/dra/selectors.h"

namespace tranche::dra {

inline constexpr int kMostSteps = 10'000;

// For many searches on behalf of one call, which together may not go on for ever. A search that
// takes no more than kFreeSteps takes nothing of it: that is all the ordinary ones.
struct StepBudget {
  static constexpr int kFreeSteps = 32;
  int left = 20'000;
};

struct Prediction {
  enum class Kind : uint8_t {
    kFits,
    kNoFit,
    kAborts,  // an error, on which kube-scheduler gives up the pod, not just the node
    kUnknown,
  };
  Kind kind = Kind::kUnknown;
  std::vector<std::vector<AllocatedDevice>> devices;  // kFits: by claim, as its status will say
  std::string request;     // otherwise: "namespace/claim request" it is about
  std::string why;         // and what is the matter
  bool cut_short = false;  // kUnknown for want of steps in the call's budget alone
};

// Claims that are allocated already are passed over, whatever node they are on; their list of
// devices is empty.
Prediction Predict(const NodeBooks& books, std::span<const Claim* const> claims,
                   Selectors& selectors, int most_steps = kMostSteps);
// The same within a budget, from which its steps are taken.
Prediction Predict(const NodeBooks& books, std::span<const Claim* const> claims,
                   Selectors& selectors, StepBudget& budget);

}  // namespace tranche::dra
