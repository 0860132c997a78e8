// The engine's books, shared by its source files; nobody else includes this.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/index/node_names.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/state_table.h"
#include "scheduler/scoring/mix.h"
#include "scheduler/scoring/score.h"

namespace tranche {

// A cached answer: what a request shape gets from a node state.
struct Verdict {
  uint32_t generation = 0;  // of the state; 0: never evaluated
  uint32_t mix_version = 0;
  Cost cost = 0;
  Reason reason = Reason::kNone;
};

// Everything about a request that decides where it fits; pods of equal shape share verdicts.
struct Shape {
  std::vector<Verdict> by_state;
  uint64_t last_used = 0;
};

struct PodRecord {
  std::shared_ptr<const PodRequest> request;
  bool seen = false;      // by the cluster, not only by a filter call
  bool terminal = false;  // Succeeded or Failed; never comes back
  bool counted = false;   // as an arrival
  NodeName node;          // bound there
  // Bind under way or without an answer; the holding on `reserved` is the reservation.
  NodeName reserved;
  bool writing = false;
  Instant reserved_since;
  // The claim of the last filter.
  NodeId claimed = kNoNode;
  uint64_t claim_serial = 0;
  std::vector<NodeId> ranked;  // answer of the last filter, best first
  std::optional<Instant> poked;
  // The last filter without any fitting node.
  Reason last_reason = Reason::kNone;
  bool filtered = false;
};

struct NodeEntry {
  NodeState state;
  StateId hard = kNoState;
  StateId soft = kNoState;
  Reason closed = Reason::kUnknownNode;
  bool vanished = false;             // its devices went to zero while it stayed
  std::optional<Instant> stable_at;  // hazard 34
  std::deque<Instant> refusals;      // by the kubelet, within the window; hazard 13
  int refusal_rounds = 0;
  std::optional<Instant> refusing_until;
};

// What the hot loop reads of a node, packed.
struct NodeHot {
  StateId hard = kNoState;
  StateId soft = kNoState;
  Reason closed = Reason::kUnknownNode;
};

struct Candidate {
  uint64_t order = 0;     // lower is better; the top bit: fits only if claims are ignored
  uint32_t position = 0;  // in the caller's list
  NodeId node = kNoNode;
};

struct Engine::Impl {
  explicit Impl(EngineOptions engine_options) : options(engine_options) {}

  // ---- books (engine.cc)
  NodeId InternNode(const NodeName& name);
  void Refresh(NodeId id, Instant now);  // state ids and closed reason after any change
  Reason ClosedReason(const NodeEntry& entry, Instant now) const;
  void Advance(Instant now);  // everything that is due
  void ForgetOldest();        // pods only filter knows, beyond their time
  PodRecord* Find(const PodUid& uid);
  PodRecord& Touch(const PodRequest& request);
  void Erase(const PodUid& uid);
  void ReleaseOn(const NodeName& node, const PodUid& uid, Instant now);
  void DropClaim(const PodUid& uid, PodRecord& record, Instant now);
  void DropReservation(const PodUid& uid, PodRecord& record, Instant now);
  void NoteRefusal(const NodeName& node, Instant now);
  // Room may have appeared on the node: pokes whom it helps (poke.cc).
  void NoteRoom(NodeId id, Instant now);
  void NoteReopened(NodeId id, Instant now);
  bool Poke(const PodUid& uid, NodeId id, Instant now);

  // ---- choosing (filter.cc)
  Shape* ShapeOf(const PodRequest& request);
  const Verdict& Lookup(Shape* shape, const PodRequest& request, NodeId id, bool soft);
  // Orders the fitting ones among `ids`; keeps the best `width`. `refused` may be null.
  void Select(const PodRequest& request, const std::vector<NodeId>& ids, std::size_t width,
              std::vector<std::pair<uint32_t, Reason>>* refused);
  Reason WholeRefusal(const PodRequest& request) const;
  // Of the reasons Select met, the one closest to fitting: what a waiting pod most likely waits
  // for.
  Reason NearestReason() const;
  void Claim(const PodRequest& request, PodRecord& record, NodeId id, Instant now);
  // Picks devices on the node as it would be claimed or bound: with claims in mind if possible.
  Reason PickDevices(const PodRequest& request, const NodeEntry& entry, Picks& picks);

  // ---- for people (views.cc, explain.cc)
  NodeView ViewNode(NodeId id) const;
  PodView ViewPod(const PodUid& uid, const PodRecord& record) const;

  EngineOptions options;
  GpuPolicy policy;
  Instant latest;  // the newest time any call came with

  NodeNames names;
  std::vector<std::unique_ptr<NodeEntry>> nodes;  // by NodeId
  std::vector<NodeHot> hot;                       // by NodeId
  StateTable states{4096};
  std::multimap<Instant, NodeId> reopenings;

  std::unordered_map<PodUid, PodRecord> pods;  // looked up, never iterated for an answer
  std::set<std::pair<PodName, PodUid>> pods_by_name;
  std::deque<std::tuple<Instant, PodUid, uint64_t>> claim_queue;  // ascending end
  std::set<std::pair<Instant, PodUid>> reservations;
  // Records only filter calls made, with the time of the first, oldest first.
  std::deque<std::pair<Instant, PodUid>> unseen;
  bool IsPlain(const PodUid& uid) const { return plain.contains(uid) || plain_seen.contains(uid); }
  std::unordered_set<PodUid> plain_seen;  // pods without GPUs the cluster shows us
  std::unordered_set<PodUid> plain;       // those only filter saw, bounded
  std::deque<PodUid> plain_order;         // oldest first
  uint64_t claim_serial = 0;
  int64_t claims = 0;
  std::deque<std::pair<Instant, PodUid>> refused_lately;  // by filter, oldest first
  std::vector<std::pair<PodName, PodUid>> pokes;          // not yet taken

  MixLearner learner;
  Scorer scorer;
  std::unordered_map<std::string, Shape> shapes;
  uint64_t shape_clock = 0;

  // Scratch, kept between calls so that the hot path does not allocate.
  std::vector<NodeId> ids;
  std::vector<Candidate> best;
  std::array<uint32_t, static_cast<std::size_t>(Reason::kCount)> reason_counts{};
  Picks picks;
  std::string text;
  Verdict direct;
};

// What about this node stands in the way, with numbers; for explain. `reason` is not kNone.
std::string DescribeMisfit(const NodeEntry& entry, const PodRequest& request, Reason reason,
                           Instant now);
// The request in a few words: "1 GPU", "0.5 GPU", "2 x 1g.10gb".
std::string DescribeRequest(const PodRequest& request);

}  // namespace tranche
