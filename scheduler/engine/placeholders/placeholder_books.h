// The placeholders of all nodes: which are wanted, which are there, which have to go.
//
// A card that pods follow a placeholder on needs exactly one placeholder that was given one card of
// the node and has said which. Tend looks at one node and says what is missing. What the books know
// of placeholders is what the cluster shows; orders and ends may be lost and are found wanting
// again. Pure: no clock, no I/O. Source: ADR 0024.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/facts/placeholder.h"
#include "scheduler/index/node_state.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

struct PlaceholderTimes {
  Millis patience{120'000};  // a placeholder that has not told its card by then is given up
  // One that was there before us and that nobody follows: a Binding of an earlier life of ours may
  // still arrive for as long as the API server works on one request.
  Millis linger{90'000};
  // No new placeholder on a node where one failed; doubling.
  Millis pause_first{10'000};
  Millis pause_most{300'000};
  Millis again{30'000};  // before a placeholder that has to go is deleted once more
};

// What the cluster shows of a placeholder.
struct PlaceholderSighting {
  PodName name;
  PodUid uid;
  NodeName node;
  int card = -1;  // of the node's books; -1: cannot be told
  GpuUuid told;   // empty: not yet
  bool leaving = false;
  bool ended = false;  // holds no card any more, but is there
};

// A card of a node's books that pods follow a placeholder on.
struct FollowedCard {
  int card = 0;
  GpuUuid uuid;  // what those see who have been told; empty: nobody was
};

// What is to be done about one node.
struct PlaceholderAnswer {
  std::vector<int> orders;                                // cards that need a placeholder made
  std::vector<std::pair<int, GpuUuid>> told;              // followed cards that are known
  std::vector<int> refused;                               // whoever waits there goes elsewhere
  std::vector<std::pair<PodUid, PlaceholderRole>> roles;  // of all that hold a card
  bool paused = false;                                    // no new placeholder here for now
  std::optional<Instant> due;                             // when to look again
  std::optional<FollowedCard> unkept;                     // pods see it and nobody holds it
};

class PlaceholderBooks {
 public:
  explicit PlaceholderBooks(PlaceholderTimes times) : times_(times) {}

  // We have one made for this card.
  void Ordered(const PodName& name, const NodeName& node, int card, Instant now);
  // It was not made, and will not be.
  void NotMade(const PodName& name, Instant now);
  void See(const PlaceholderSighting& sighting, Instant now);
  // The node it was on, if it is known.
  std::optional<NodeName> Gone(const PodUid& uid);
  // The first complete set of pods is in. Before, nothing is made or ended.
  void Complete(Instant now);

  // `followed`: ascending card; not `certain`: there may be more of them, and no placeholder is
  // ended for lack of them. Cost: O(placeholders of the node).
  using FollowedCards = std::vector<FollowedCard>;
  PlaceholderAnswer Tend(const NodeName& node, const FollowedCards& followed, bool certain,
                         Instant now);
  // Placeholders to be deleted, each once until it is due again.
  std::vector<PlaceholderEnd> TakeEnds() { return std::exchange(ends_, {}); }
  bool HasEnds() const { return !ends_.empty(); }

  bool On(const NodeName& node) const { return nodes_.contains(node); }
  bool Knows(const PodUid& uid) const { return names_.contains(uid); }
  std::vector<NodeName> Nodes() const;  // ascending

 private:
  struct Placeholder {
    PodUid uid;  // empty: ordered, not seen
    int card = -1;
    GpuUuid told;
    Instant since;
    std::optional<Instant> stays;  // until then, even with nobody who follows it
    bool leaving = false;
    bool ended = false;
    std::optional<Instant> asked;  // when its end was last asked for
  };
  struct Place {
    std::map<std::string, Placeholder> placeholders;  // by name: ascending age, as we name them
    std::optional<Instant> paused_until;
    int failures = 0;  // in a row
  };
  void Pause(Place& place, Instant now);
  void End(const std::string& name, Placeholder& placeholder, Instant now);
  std::map<int, std::string> LiveOf(Place& place, std::set<int>& blocked, Instant now);

  PlaceholderTimes times_;
  bool complete_ = false;
  std::map<NodeName, Place> nodes_;
  std::map<PodUid, std::pair<NodeName, std::string>> names_;
  std::map<std::string, NodeName> ordered_;  // not seen yet
  std::vector<PlaceholderEnd> ends_;
};

}  // namespace tranche
