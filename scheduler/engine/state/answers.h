// What the verbs answer: values, so that encoding needs no lock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/facts/agent.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/facts/reclaim.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// Answer to filter. Positions index the candidate list of the question.
struct FilterAnswer {
  bool untouched = false;                            // no GPU asked: all candidates pass
  std::vector<uint32_t> chosen;                      // best first, at most the filter width
  std::vector<std::pair<uint32_t, Reason>> refused;  // ascending position; fitting ones left out
                                                     // of `chosen` are not listed
  Reason reason = Reason::kNone;                     // nothing fits: the refusal closest to fitting
  Reason observed = Reason::kNone;                   // what a quota in mode Observe would have said

  // Every candidate is refused for the same reason.
  void RefuseAll(std::size_t candidates, Reason why) {
    refused.clear();
    for (uint32_t i = 0; i < candidates; ++i) refused.emplace_back(i, why);
    reason = why;
  }
};

// What a bind must write, or why it may not.
struct BindPlan {
  enum class Kind : uint8_t {
    kWrite,         // POST the binding; the reservation stands until SettleBind
    kAlreadyBound,  // seen bound to this very node: success
    kRefused,       // reason and detail say why
    kInFlight,      // another call for this pod and node is writing now
  };
  Kind kind = Kind::kRefused;
  Reason reason = Reason::kNone;
  std::string detail;
  PodName pod;
  PodUid uid;
  NodeName node;
  bool asks_gpu = false;                // false: bind without any annotation, or
  bool clears = false;                  // with a record of no devices, over one that a user wrote
  Allocation allocation;                // kWrite with asks_gpu or clears
  const PodRequest* request = nullptr;  // the engine's copy, valid until the next call
  // What the node's agent must be told, if it is called at all.
  AgentKind agent = AgentKind::kNone;
  int agent_minor = 0;  // HAMi's version
  Mebibytes memory_unit;
  std::vector<Mebibytes> card_memory;  // of the node's cards
  int64_t stamp = 0;                   // unix nanoseconds, strictly increasing
  bool lock = false;                   // the agent goes by a lock on the node
  // False: the agent has another pod to serve first, or the card is not known yet. TakeAgentWork
  // tells when to write.
  bool turn = true;
};

// How a bind ended, as far as is known.
enum class BindOutcome : uint8_t {
  kBound,     // proven: the pod has this node and our annotation
  kNotBound,  // proven: it will never be bound by this attempt
  kUnknown,   // the answer was lost; the reservation stays
};

// A node of the preempt verb: whom kube-scheduler would evict there.
struct PreemptNode {
  std::string node;
  std::vector<PodUid> victims;
  int64_t pdb_violations = 0;
};

// One round of planning, for metrics.
struct PlanOutcome {
  enum class Result : uint8_t {
    kPlan,
    kFits,        // it fits already, or will when terminating work is gone
    kImpossible,  // nobody may be evicted for it, or it would not help
    kBlocked,     // only guards, budgets or other plans stand in the way
    kUnresolved,
  };
  Result result = Result::kImpossible;
  ReclaimRule rule = ReclaimRule::kNone;  // kPlan
  bool optimal = false;                   // kPlan
  int64_t evaluations = 0;
};

// What there is to say of claims before their pod exists.
struct ClaimForecast {
  bool wants_gpus = false;
  bool quota_waits = false;
};

}  // namespace tranche
