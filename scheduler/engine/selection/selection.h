// Choosing nodes: the selection that filter, prioritize, gangs and what-if share.
//
// A decision costs one name look-up and one table look-up per candidate, plus one evaluation for
// every node state the request's shape has not met yet (ADR 0001). Externally synchronised, as the
// state is; nothing is allocated per candidate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/engine/selection/domains.h"
#include "scheduler/engine/selection/held_nodes.h"
#include "scheduler/engine/selection/verdict.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/engine/teams/namespace_use.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

__extension__ using Order = unsigned __int128;

struct Candidate {
  Order order = 0;        // lower is better, see selection.cc
  uint32_t position = 0;  // in the caller's list
  NodeId node = kNoNode;
};

class Selection {
 public:
  Selection(ClusterState& cluster, TeamRules& rules, const NamespaceUse& namespaces,
            const HeldNodes& held_nodes)
      : cluster_(cluster), rules_(rules), namespaces_(namespaces), held_nodes_(held_nodes) {}

  // Orders the fitting ones among `candidates`; keeps the best `width`. `refused` may be null.
  void Select(const RequestContext& context, const std::vector<NodeId>& candidates,
              std::size_t width, Instant now, std::vector<std::pair<uint32_t, Reason>>* refused);
  // What Select kept, best first.
  const std::vector<Candidate>& best() const { return best_; }
  void DropBest() { best_.clear(); }
  // Even the best lies over another pod's tentative placement.
  bool best_lies_over_another() const;
  // Select met a node that fits and that quota does not refuse.
  bool quota_allows_one() const { return quota_allows_one_; }
  // Of the reasons Select met, the one closest to fitting.
  Reason NearestReason() const;
  // One node more was refused for that.
  void NoteReason(Reason reason) { ++reason_counts_[static_cast<std::size_t>(reason)]; }

  // Does it fit the node as it is, tentative placements aside?
  Reason Fits(const RequestContext& context, NodeId id);
  // Picks devices on the node as it would be placed: with tentative placements in mind if possible.
  Reason PickDevices(const RequestContext& context, const NodeEntry& entry, Picks& picks);
  // The best node's devices are counted as taken for other questions, until the pod asks again.
  void PlaceTentatively(const RequestContext& context, PodRecord& record, NodeId id, Instant now);

  // ---- one by one: Begin, then Lookup for any nodes
  Shape* ShapeOf(const RequestContext& context);  // null: verdicts cannot be shared
  void Begin(const PodRequest& request);
  // Instead of Begin, where only firm verdicts are looked up and no costs.
  void BeginFits(const PodRequest& request) { version_ = cluster_.scorer.version(request); }
  Verdict& Lookup(Shape* shape, const RequestContext& context, NodeId id, Taken taken);
  void ForgetShapes() { shapes_.clear(); }

 private:
  struct Round;
  void Foresee(const Round& round, const std::vector<NodeId>& candidates,
               std::size_t position) const;
  // Why the node does not take the pod; kNone: it does, and `order` says how good it is.
  Reason Consider(Round& round, NodeId id, Order& order);
  // Why the node is out of the question, whatever room it has; else how far it is from the gang.
  bool PassesHold(Round& round, NodeId id) const;
  Reason ClosedTo(Round& round, NodeId id, int& distance) const;
  // It is better than the worst of `width` that are kept, or there are fewer.
  void Keep(const Candidate& candidate, std::size_t width);
  // What Lookup does for a state that the shape has not met.
  void Evaluate(const RequestContext& context, NodeId id, Taken taken, Verdict& verdict);

  ClusterState& cluster_;
  TeamRules& rules_;
  const NamespaceUse& namespaces_;
  const HeldNodes& held_nodes_;

  std::unordered_map<std::string, Shape> shapes_;
  uint64_t shape_clock_ = 0;
  uint64_t selection_ = 0;  // counts them
  uint32_t version_ = 0;    // of the scorer, for the request at hand
  std::vector<Candidate> best_;
  std::array<uint32_t, static_cast<std::size_t>(Reason::kCount)> reason_counts_{};
  bool quota_allows_one_ = false;
  // Scratch, kept between calls so that the hot path does not allocate.
  Picks picks_;
  std::string text_;
  Verdict direct_;
};

}  // namespace tranche
