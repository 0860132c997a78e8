// Turns of pods at the agents of nodes.
//
// An agent that is called without being told for which pod guesses it. Of pods it could confuse
// (equal node, equal SlotOf) one at a time is bound; the others wait here, in the order of their
// binds, until the agent has served it, or it has ended, or the agent has not answered for as long
// as agents themselves wait.
// Source: request-dialects section 15.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/facts/agent.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/placeholder.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// How a wait for a turn ended.
struct AgentTurn {
  PodUid uid;
  bool granted = false;  // false: it left the line, or its node is gone; nothing was written
  // Its devices as they are to be written, where they were not known at its bind (placeholders.h).
  std::optional<Allocation> allocation = {};
};

// A pod that ended before it was served, and that its agent would still serve before others: its
// annotations are to say that it is done.
struct AgentOrphan {
  PodName pod;
  PodUid uid;
  AgentKind agent = AgentKind::kNone;
};

// What the engine wants done about agents and placeholders.
struct AgentWork {
  std::vector<AgentTurn> turns;
  std::vector<AgentOrphan> orphans;
  std::vector<AgentTurn> placeholder_turns;  // of those who waited for a placeholder; go last
  // Pods to be made; SettlePlaceholder tells of those that were not.
  std::vector<PlaceholderOrder> placeholders;
  std::vector<PlaceholderEnd> placeholder_ends;  // pods to be deleted
  bool empty() const {
    return turns.empty() && orphans.empty() && placeholder_turns.empty() && placeholders.empty() &&
           placeholder_ends.empty();
  }
};

class AgentQueues {
 public:
  // `patience`: after so long a pod that was not served is passed over.
  explicit AgentQueues(Millis patience) : patience_(patience) {}

  // The pod is to be bound there. True: at once; false: when TakeTurns names it.
  bool Enter(const NodeName& node, int64_t slot, const PodUid& uid, Instant now);
  // Seen bound and not served; `since`: when it was bound. News that are too old are passed over.
  void NoteServing(const NodeName& node, int64_t slot, const PodUid& uid, Instant since,
                   Instant now);
  // Served, refused, ended, or never bound.
  void Leave(const PodUid& uid, Instant now);
  // Pods that wait for a turn at this node will not have it.
  void Close(const NodeName& node);
  // Passes over those whose patience has ended.
  void Advance(Instant now);
  std::optional<Instant> Due() const;

  std::vector<AgentTurn> TakeTurns() { return std::exchange(turns_, {}); }

  bool Knows(const PodUid& uid) const { return of_pod_.contains(uid); }
  // How many come before it; nullopt: it does not wait.
  std::optional<int64_t> Ahead(const PodUid& uid) const;
  std::vector<PodUid> Known() const;  // ascending
  int64_t waiting() const { return waiting_; }
  int64_t serving() const { return static_cast<int64_t>(of_pod_.size()) - waiting_; }
  int64_t passed_over() const { return passed_over_; }  // ever

 private:
  using Key = std::pair<NodeName, int64_t>;
  struct Line {
    std::map<PodUid, Instant> serving;  // one, but for what was found at start
    std::deque<PodUid> waiting;
  };
  void Serve(const Key& key, Line& line, const PodUid& uid, Instant since);
  void Next(const Key& key, Instant now);

  Millis patience_;
  std::map<Key, Line> lines_;
  std::map<PodUid, Key> of_pod_;
  std::set<std::pair<Instant, PodUid>> ends_;  // of patience
  std::vector<AgentTurn> turns_;
  int64_t waiting_ = 0;
  int64_t passed_over_ = 0;
};

}  // namespace tranche
