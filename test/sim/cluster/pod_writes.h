// What the API server does with pods alone: defaults at creation, binding, eviction, graceful
// deletion, phases that never go back.
//
// Sources: kube-client-protocol sections 11 to 13; real-control-plane section 6 (graceful deletion,
// priorities); kube-scheduler-extender sections 3.5 and 3.6.
//
// Thread rule: one thread.
#pragma once

#include <optional>
#include <string>

#include "test/sim/base/loop.h"
#include "test/sim/cluster/answer.h"
#include "test/sim/cluster/writes.h"

namespace tranche::sim {

inline constexpr int64_t kDefaultGraceSeconds = 30;

class PodWrites {
 public:
  PodWrites(const Loop& loop, Store& store, Writes& writes)
      : loop_(loop), store_(store), writes_(writes) {}

  // Since 1.35 a binding takes the nomination away.
  void set_clears_nominations(bool clears) { clears_nominations_ = clears; }

  // Fills in what admission and defaulting do before a new pod is stored: priority, scheduler,
  // grace, requests from limits, phase. `refusal`: 422 of amounts that cannot be, 403 of a
  // priority class that is not there.
  std::optional<Json> Defaulted(Json pod, Answer& refusal) const;
  Answer Bind(const Write& write);
  Answer Evict(const Write& write);
  Answer Delete(const Write& write);
  // Merges into the status; a terminal phase stays.
  Answer PatchStatus(const Write& write);

 private:
  // nullopt: budgets allow it.
  std::optional<Answer> ChargeBudget(const Stored& pod, const std::string& who);
  // `condition` is set on a pod that is given time.
  Answer Begin(const StoredPtr& pod, const Json& options, const Json& condition,
               const std::string& who);

  const Loop& loop_;
  Store& store_;
  Writes& writes_;
  bool clears_nominations_ = false;
};

// Whether a selector with matchLabels selects the object.
bool Selects(const Json& selector, const Json& object);
bool IsTerminal(const Json& pod);  // Succeeded or Failed
// Empty: none is there.
std::string PhaseOf(const Json& pod);
std::string NodeOf(const Json& pod);

}  // namespace tranche::sim
