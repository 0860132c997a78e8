// What a team can count on: how large a pod of its own work would start, and how soon, as things
// stand.
//
// For every line with a nominal, pods of 1, 2, 3, ... whole GPUs are put to the books as if they
// had come now: would they fit, and if not, what would the planner do for them? Whatever protects
// the victims of that plan must pass, then the plan is found at the latest a round later, and its
// victims have their grace. A larger pod is asked about as long as it would be in quota and a node
// could hold it. So the answer holds for the books it was made from: who starts later may change
// it, and it is made anew at most every minute.
//
// Tells of pods of no PriorityClass that tolerate all taints and name no nodes. Victims are taken
// to leave within their grace. Reads the state and changes nothing but scratch of the selection.
// Externally synchronised, as the state is. Cost of GoOn: one question to the planner.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/policy_set.h"
#include "scheduler/engine/preemption/awaited_nodes.h"
#include "scheduler/engine/preemption/reclaim_planner.h"
#include "scheduler/engine/state/views.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class NominalReach {
 public:
  static constexpr Millis kAnew{60'000};

  NominalReach(const PlanParts& parts, TeamRules& rules, const ReclaimPlanner& planner,
               const AwaitedNodes& awaited)
      : parts_(parts),
        cluster_(parts.cluster),
        rules_(rules),
        planner_(planner),
        awaited_(awaited) {}

  // Puts the next question; false: none is to be put now.
  bool GoOn(Instant now);
  // Of the quota's lines with a nominal, in their order; null: not known yet, or nothing is said.
  const std::vector<LineReach>* Of(const std::string& quota) const;

 private:
  struct Line {
    std::string quota;
    std::string ns;  // one of its own
    std::string model;
    LineReach reach;
    bool unsaid = false;  // no node gives whole GPUs of the kind
  };

  void Begin(Instant now);
  void Ask(Instant now);
  // Of one GPU more than is known to start. False: that is not the team's own, or of no node.
  bool NextSize(Instant now);
  bool IsOwn(const Line& line, int64_t gpus, Instant now);
  // Nodes that could hold the pod, were they open and empty.
  std::vector<NodeId> Holders();
  // The pod starts, at the latest after `guards`, then `grace`.
  void Note(Millis guards, Millis grace);
  void NotePlan(const AskedPlan& asked, Instant now);
  // The pod does not start by itself: nothing is said of this size and beyond.
  void End(std::string code, std::string why);
  void EndWithoutPlan();
  void EndLine();
  // Until those who are on their way out anyway are gone.
  Millis Leaving(Instant now) const;
  Millis GraceOf(const PodUid& uid) const;
  // Until the hourly limit of the team itself lets these victims go; nullopt: it never does.
  std::optional<Millis> HourOf(const AskedPlan& asked, Instant now) const;

  PlanParts parts_;
  ClusterState& cluster_;
  TeamRules& rules_;
  const ReclaimPlanner& planner_;
  const AwaitedNodes& awaited_;

  std::map<std::string, std::vector<LineReach>> stated_;  // by quota
  std::shared_ptr<const PolicySet> set_;                  // that lines_ are of
  std::vector<Line> lines_;
  std::size_t at_ = 0;  // in lines_
  uint64_t version_ = 0;
  bool timed_ = false;  // something stated has a guard in it, which runs out
  std::optional<Instant> again_at_;
  // The size at hand.
  std::optional<Preemptor> pod_;
  PlanQuestions questions_;
  std::optional<PlanBlock> block_;
};

}  // namespace tranche
