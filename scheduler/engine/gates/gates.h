// Scheduling gates of ours: who should get one at its creation, and whose gate is taken away.
//
// A pod with our quota gate stands in line like any other that quota refuses: it contends, plans
// are made for it, and it is told why it waits. Only kube-scheduler and cluster autoscalers do not
// see it. Gates go in the order in which quota would be given, each counting those before it, so
// that not all of a team's pods are let through to be refused by filter. Those of a team that were
// let in and wait for room count for some minutes, or autoscalers would raise machines for more
// than its quota gives. A gate that stays too long would cost a pod its GPUs, one that goes too
// early costs a line in a log: doubt takes it away.
// Externally synchronised, as the state is. Cost: O(nodes) for a pod that is asked about, and a
// look at up to a thousand of its team; a round asks at most sixteen of each team and class.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/engine/gangs/gangs.h"
#include "scheduler/engine/preemption/preemptor_queue.h"
#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/kept_room.h"
#include "scheduler/engine/teams/team_queue.h"
#include "scheduler/engine/teams/team_rules.h"
#include "scheduler/facts/gates.h"

namespace tranche {

class Gates {
 public:
  Gates(ClusterState& cluster, TeamRules& rules, TeamQueue& team_queue, Selection& selection,
        const KeptRoom& kept, const Gangs& gangs, PreemptorQueue& preemptors)
      : cluster_(cluster),
        rules_(rules),
        team_queue_(team_queue),
        selection_(selection),
        kept_(kept),
        gangs_(gangs),
        preemptors_(preemptors) {}

  // The pod or its gates have changed, or it is about to go.
  void Note(const PodUid& uid, const PodRecord& record);
  void Forget(const PodUid& uid);
  void Tend(Instant now);
  GateSet For(const PodRequest& request, Instant now);

 private:
  using Team = std::pair<std::string, std::string>;  // namespace and priority class
  using Turn = std::pair<Instant, PodUid>;           // waits since

  // A pod whose quota gate is being taken away: what it will be charged counts until it is placed.
  struct Admitted {
    HeldWork work;
    Instant until;  // then it stands in line again, if its gate is still there
  };
  // What quota says to a pod that could be served somewhere, whether there is room now or not.
  struct QuotaAnswer {
    Reason reason = Reason::kNone;  // kNone: it is let in, or has no quota to keep
    std::vector<ModelCharge> parts;
    std::optional<Instant> eligible_at;
  };

  void NoteInside(const PodUid& uid, const PodRecord& record, bool waits);
  void LetIn(Instant now);
  std::vector<PodUid> Next(Instant now);
  void NoteWaits(const PodUid& uid, PodRecord& record, const QuotaAnswer& answer, Instant now);
  // Of the kinds of node that could serve it, does quota let it in on one, `times` over and for
  // those ahead of it? Where the cluster has no GPU yet, an autoscaler may bring those that the
  // lines of its quota name.
  QuotaAnswer Ask(const PodRequest& request, int64_t times, Instant now);
  void AskOfLines(const RequestContext& context, int64_t times, Instant now, QuotaAnswer& answer);
  // True: quota lets it in for that charge; else the answer is why not, the most hopeful of all.
  bool LetsIn(const RequestContext& context, std::vector<ModelCharge> parts, int64_t times,
              Instant now, QuotaAnswer& answer);
  // Of its team's pods of its kind that were let in and wait for room, not of its gang: how many of
  // it they are worth.
  int64_t AheadOf(const PodRequest& request, Instant now) const;
  // How many pods of its gang have no place yet, with it: they need quota together.
  int64_t UnplacedOf(const PodRequest& request) const;

  ClusterState& cluster_;
  TeamRules& rules_;
  TeamQueue& team_queue_;
  Selection& selection_;
  const KeptRoom& kept_;
  const Gangs& gangs_;
  PreemptorQueue& preemptors_;

  std::map<Team, std::set<Turn>> for_quota_;
  std::unordered_map<PodUid, std::pair<Team, Turn>> places_;  // in for_quota_
  std::set<PodUid> for_gang_;
  std::map<Team, std::map<PodUid, Instant>> inside_;  // without our gate, and until when they count
  std::unordered_map<PodUid, Team> insiders_;         // in inside_
  std::map<PodUid, Admitted> admitted_;
  std::map<PodUid, Instant> completed_;  // gang gates being taken away: when to try again
  // When quota was looked at last: state of the books and time.
  uint64_t looked_ = 0;
  Instant looked_at_;
};

}  // namespace tranche
