// Waiting pods that room may have to be made for, and whose turn it is.
//
// Pods that get the same plan wait together: while nothing changes, one look at them is enough.
// Externally synchronised, as the state is. Cost: O(1) to note a pod; Next O(groups of pods that
// are alike).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/engine/gangs/gangs.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

// A gang, or one pod, that room is made for.
struct Preemptor {
  std::vector<std::shared_ptr<const PodRequest>> members;  // ascending uid
  RequestContext context;                                  // of the first
  std::string gang;                                        // ns/gang; empty: a gang of one
};

// Can what was refused for that be had by taking back what others have: room or quota? Not what a
// limit forbids for ever, nor hours of a budget.
bool OthersMayGiveIt(Reason reason);

// May a plan be made for such a request?
bool MayPlan(const RequestContext& context);

// How long a pod like it waits at most before others are evicted for it, for a better moment or
// for a node.
Millis PatienceOf(const Preemptor& preemptor);

// What planning came to for requests that are alike.
struct PlanMemory {
  uint64_t version = 0;  // of the books
  Instant planned;
  Instant not_before;
  int misses = 0;
  std::optional<PlanBlock> block;
  std::optional<Instant> patient_since = {};  // it waits for a better moment since then
};

// Waiting pods that get the same plan: of one team and class, and alike in what they ask for.
struct WaitingGroup {
  int rank = 0;
  std::set<std::pair<Instant, PodUid>> pods;  // by when they began to wait
};

class PreemptorQueue {
 public:
  PreemptorQueue(ClusterState& cluster, const PreemptionState& reclaims, TeamRules& rules,
                 const Gangs& gangs)
      : cluster_(cluster), reclaims_(reclaims), rules_(rules), gangs_(gangs) {}

  // The pod waits and may have to be given room, or does no longer.
  void Note(const PodUid& uid, const PodRecord& record);
  void Forget(const PodUid& uid);
  // What is alike depends on the policies in force.
  void Regroup();
  // Higher classes first; within a class who was evicted, then who waits longest.
  std::optional<PodUid> Next(Instant now);
  // When Next will have one; nullopt: not before something changes.
  std::optional<Instant> DueAt(Instant now) const;
  // The pod with those it waits for; nullopt: no plan may be made for it.
  std::optional<Preemptor> Of(const PodUid& uid) { return Find(uid, Extent::kWhole); }
  bool Has(const PodUid& uid) const { return place_of_.contains(uid); }
  // All that wait here, by what makes requests alike.
  const std::map<std::string, WaitingGroup>& groups() const { return groups_; }
  // What planning for the like of it came to. Good until the next call.
  PlanMemory& MemoryOf(const Preemptor& preemptor);
  // The same of what is given back without anybody who waits, by name.
  PlanMemory& MemoryOf(const std::string& release) { return memory_[release]; }
  const PlanMemory* FindMemory(const std::string& release) const;
  // What stands in the way of a plan for the pod; nullopt: nothing that is known.
  std::optional<PlanBlock> BlockOf(const PodUid& uid) const;

 private:
  // All that wait together, or the first of them, by which they are known.
  enum class Extent : uint8_t { kWhole, kFirst };
  std::optional<Preemptor> Find(const PodUid& uid, Extent extent);
  // Requests with equal keys get the same plan.
  std::string KeyOf(const Preemptor& preemptor) const;

  ClusterState& cluster_;
  const PreemptionState& reclaims_;
  TeamRules& rules_;
  const Gangs& gangs_;
  // Waiting pods for which nothing was planned yet, by what makes requests alike.
  std::map<std::string, WaitingGroup> groups_;
  struct Place {
    std::string key;  // of its group
    Instant since;
  };
  std::unordered_map<PodUid, Place> place_of_;
  std::map<std::string, PlanMemory> memory_;  // by what makes requests alike
};

}  // namespace tranche
