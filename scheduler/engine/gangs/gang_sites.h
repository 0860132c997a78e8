// The nodes as a gang's planner sees them: which domains they lie in and how many members each
// takes, worked out on copies of their loads. Made for one question; reads the parts it is made of.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/selection/held_nodes.h"
#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/teams/team_rules.h"
#include "scheduler/gangs/gang_plan.h"

namespace tranche {

// The parts a gang's question is answered from.
struct GangParts {
  ClusterState& cluster;
  TeamRules& rules;
  Selection& selection;
  const HeldNodes& held_nodes;
};

class GangSites : public GangRoom {
 public:
  // `members`: those to be placed, in order. `avoided`: nodes left out. `by`: as it will be then,
  // when work that says so has ended.
  GangSites(const GangParts& parts, std::vector<std::shared_ptr<const PodRequest>> members,
            const std::map<NodeName, Instant>& avoided, Instant now,
            std::optional<Instant> by = std::nullopt);

  int Seats(std::size_t node, int kind, int most) override;
  void Take(std::size_t node, int kind, int count) override;
  void Reset() override;

  // The question to PlanGang; `placed`: nodes on which members of the gang run already.
  GangQuestion Ask(const std::vector<NodeName>& placed);

  // After a plan: the node and devices of each member.
  struct Seat {
    NodeId node = kNoNode;
    Picks picks;
  };
  std::vector<Seat> SeatsOf(const GangPlan& plan);

  // Why no plan was found: how many members find room, at best in one domain where one is required.
  std::string Describe();
  // What refuses the gang whatever the nodes are like; kNone: nothing.
  Reason whole() const { return whole_; }
  // What quota said of a node; kNone: it refused none.
  Reason quota() const { return quota_; }
  const RequestContext& context() const { return kinds_.front().context; }

 private:
  struct Kind {
    std::shared_ptr<const PodRequest> request;
    RequestContext context;
    PlaceRules rules;
    int members = 0;
  };
  struct Working {
    Load load;
    std::vector<std::vector<Picks>> taken;  // by kind, in the order they were taken
  };

  bool Suits(std::size_t node, int kind);
  bool HasEnded(const PodUid& uid) const;
  bool EndsSoon(const NodeState& state) const;
  // The node's load without what has ended by then.
  void LoadOf(const NodeState& state, Load& load) const;
  int Fill(const NodeState& state, Load& load, const Kind& kind, int most,
           std::vector<Picks>* taken);
  std::array<int, kGangLevels> DomainsOf(NodeId id);
  std::string DomainText(NodeId id, GangLevel level) const;

  ClusterState& cluster_;
  TeamRules& rules_;
  Selection& selection_;
  const HeldNodes& held_nodes_;
  const Instant now_;
  const std::optional<Instant> by_;
  std::vector<std::shared_ptr<const PodRequest>> members_;
  std::vector<int> kind_of_;  // by member
  std::vector<Kind> kinds_;
  std::vector<NodeId> nodes_;
  std::vector<std::vector<signed char>> suits_;   // by node, kind; -1: not asked yet
  std::map<std::size_t, Working> working_;        // nodes that were taken of
  std::map<std::pair<StateId, int>, int> seats_;  // of untouched nodes in a state, by kind
  std::array<std::map<std::string, int>, kGangLevels> domains_;
  std::array<std::vector<std::string>, kGangLevels> domain_names_;
  std::optional<GangLevel> within_;
  Reason whole_ = Reason::kNone;
  Reason quota_ = Reason::kNone;
  Placer placer_;
  Picks picks_;
};

}  // namespace tranche
