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

#include "quota/lost_work.h"
#include "quota/quota_book.h"
#include "scheduler/advice/case.h"
#include "scheduler/advice/demand.h"
#include "scheduler/engine/agent_queues.h"
#include "scheduler/engine/dra_books.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/gang_books.h"
#include "scheduler/engine/gate_books.h"
#include "scheduler/engine/node_words.h"
#include "scheduler/engine/plain_pods.h"
#include "scheduler/engine/reclaim_books.h"
#include "scheduler/engine/records.h"
#include "scheduler/engine/verdict.h"
#include "scheduler/index/card_sets.h"
#include "scheduler/index/charge_of.h"
#include "scheduler/index/namespace_caps.h"
#include "scheduler/index/node_names.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/state_table.h"
#include "scheduler/index/zone_lag.h"
#include "scheduler/scoring/score.h"

namespace tranche {

// What a team's rules make of one request, for one call.
struct Question {
  const PodRequest* request = nullptr;
  const GpuPolicy* policy = nullptr;
  std::size_t policy_index = 0;
  Standing standing;
  const std::vector<SharingMode>* sharing = nullptr;  // nullptr: any
  Reason whole = Reason::kNone;                       // refuses every node
  NodeId only = kNoNode;                              // its place is there; kNoNode: anywhere
  bool kept = false;                                  // devices are kept for it
  const Neighbours* near = nullptr;                   // whom it belongs to; null: nobody
  bool metered = false;                               // quota or budgets have a say
  bool capped = false;                                // ResourceQuotas of the namespace have one
};

// What quota says to the request on nodes of one kind; made when the first such node is met.
struct KindAnswer {
  bool known = false;
  Reason reason = Reason::kNone;
  bool borrows = false;
  bool demoted = false;
  std::optional<Instant> eligible_at;
  std::vector<ModelCharge> parts;
};

// What the hot loop reads of a node, packed.
struct NodeHot {
  StateId hard = kNoState;
  StateId soft = kNoState;
  Reason closed = Reason::kUnknownNode;
  uint32_t kind = 0;
};

__extension__ using Order = unsigned __int128;

struct Candidate {
  Order order = 0;        // lower is better, see filter.cc
  uint32_t position = 0;  // in the caller's list
  NodeId node = kNoNode;
};

// The node with that load, as the scorer looks at it.
inline NodeRoom RoomOf(const NodeState& state, const Load& load) {
  return {&state.inventory(), &load, state.cpu_capacity(), state.CpuFree(load)};
}

struct Engine::Impl {
  explicit Impl(EngineOptions engine_options)
      : options(engine_options),
        agents(engine_options.agent_patience),
        keepers(engine_options.keeper_times) {}

  // ---- books (engine.cc)
  NodeId InternNode(const NodeName& name);
  void Refresh(NodeId id, Instant now);  // state ids and closed reason after any change
  Reason ClosedReason(const NodeEntry& entry, Instant now) const;
  void Advance(Instant now);  // everything that is due
  void TellNode(const NodeName& name, Instant now, Engine& engine);
  void ForgetOldest();  // pods only filter knows, beyond their time
  PodRecord* Find(const PodUid& uid);
  PodRecord& Touch(const PodRequest& request);
  void Erase(const PodUid& uid);
  // Pods without GPUs on the node request more or less than before.
  void NotePlainCpu(const NodeName& node, Instant now);
  void ReleaseOn(const NodeName& node, const PodUid& uid, Instant now);
  void DropClaim(const PodUid& uid, PodRecord& record, Instant now);
  void DropReservation(const PodUid& uid, PodRecord& record, Instant now);
  void NoteRefusal(const NodeName& node, Instant now);
  // Room may have appeared on the node: pokes whom it helps (poke.cc).
  void NoteRoom(NodeId id, Instant now);
  void NoteReopened(NodeId id, Instant now);
  // What its exporter may not show, after any change of what is held there.
  void FollowZones(NodeId id, Instant now);
  // Other objects say something else of the node than before.
  void NoteRetold(NodeId id, Instant now);
  bool Poke(const PodUid& uid, NodeId id, Instant now);

  // ---- what was asked for (demand.cc)
  // The pod wants devices, or has them.
  void NoteDemand(PodRecord& record, Instant now);
  void EndDemand(PodRecord& record, Instant now);

  // ---- choosing (filter.cc)
  void RankPlain(const PodRequest& request, Instant now, std::vector<int>& ranks);
  Shape* ShapeOf(const Question& question);
  // Once before a round of Lookup: the prices of the moment, and which verdicts are stale.
  void BeginSelection(const PodRequest& request);
  Verdict& Lookup(Shape* shape, const Question& question, NodeId id, bool soft);
  // Does it fit the node as it is, claims aside?
  Reason Fits(const Question& question, NodeId id);
  // Orders the fitting ones among `ids`; keeps the best `width`. `refused` may be null.
  void Select(const Question& question, const std::vector<NodeId>& ids, std::size_t width,
              Instant now, std::vector<std::pair<uint32_t, Reason>>* refused);
  // Of the reasons Select met, the one closest to fitting: what a waiting pod most likely waits
  // for.
  Reason NearestReason() const;
  void Claim(const Question& question, PodRecord& record, NodeId id, Instant now);
  // Picks devices on the node as it would be claimed or bound: with claims in mind if possible.
  Reason PickDevices(const Question& question, const NodeEntry& entry, Picks& picks);

  // ---- teams (admission.cc)
  Question QuestionOf(const PodRequest& request);
  void ForgetKindAnswers();
  const KindAnswer& AskQuota(const Question& question, NodeId id, Instant now);
  Reason Admit(const Question& question, std::span<const ModelCharge> parts, Instant now,
               Admission& admission);
  void NoteQuotaRefusal(const Question& question, PodRecord& record, Instant now);
  // Another borrower that fits now and comes first; nullopt: none.
  std::optional<PodUid> YieldsTo(const Question& question, const PodRecord& record, Instant now);
  bool ComesFirst(const PodRecord& left, const PodRecord& right, Instant now) const;
  std::string DescribeQuota(const Question& question, const PodRecord& record, Instant now);
  // The first refusal of what quota said in this call; empty: none.
  std::string DescribeQuotaAnswers(const Question& question, Instant now);
  std::string DescribeSharing(const Question& question, const NodeEntry& entry) const;
  // Pods that quota refused and that would be let in now go back to kube-scheduler's queue.
  void PokeAdmitted(Instant now);
  bool PokeIfFits(const PodUid& uid, Instant now);

  // ---- ResourceQuotas (namespace_caps.cc); what the pod itself holds is left out
  bool CapsAllowLeast(const PodRequest& request) const;  // wherever it would run
  bool CapsRefuse(const Question& question, NodeId id) const;
  std::string DescribeCaps(const PodRequest& request, NodeId id) const;  // kNoNode: wherever
  void NoteCapUse(NodeId id);  // after any change of what is held there
  void NoteCapRelease(const PodUid& uid, Instant now);
  void PokeCapped(const std::string& ns, Instant now);  // who waits for room in it
  void AuditCaps(std::vector<std::string>& faults) const;

  // ---- metering (metering.cc)
  uint32_t KindOf(const Inventory& inventory);
  void CountCards(const NodeEntry& entry, int sign);
  void ForgetTeams();  // what was cached of the policies in force
  // The pod's holding on the node is charged from `at` on, once.
  void Open(const PodUid& uid, PodRecord& record, NodeId id, Instant at, bool demoted,
            bool estimated);
  void Close(const PodUid& uid, PodRecord& record, MeterKind kind, Instant at);
  void NoteRunning(const PodUid& uid, const PodFacts& pod);
  void EndOutage(NodeId id, Instant now);
  void OpenUncharged(NodeId id, Instant now);
  // Work that no quota owned when it began comes under the one that owns its namespace now, from
  // now on: teams that get a quota while they run GPUs have used it.
  void Adopt(Instant now);
  MeterEvent Event(MeterKind kind, const PodUid& uid, int interval, const NodeName& node,
                   const HeldWork& work, Instant at) const;
  void Journal(MeterEvent event);
  void RefundLost(const PodUid& uid, int interval, const NodeName& node, Instant until);
  HeldWork WorkOf(const PodRequest& request, const Standing& standing, Instant since) const;
  std::optional<Allocation> AllocationOn(const NodeName& node, const PodUid& uid) const;
  void NotePending(const PodUid& uid, const PodRecord& record) {
    if (record.seen && IsPending(record)) {
      pending.insert(uid);
    } else {
      pending.erase(uid);
    }
  }
  bool IsPending(const PodRecord& record) const {
    return !record.terminal && record.node.empty() && record.reserved.empty() &&
           record.request->asks_gpu();
  }

  // ---- reclaims: who may be taken from (reclaim_guards.cc)
  void NoteTraits(const PodUid& uid, PodRecord& record, const PodFacts& pod, Instant now);
  // Terminating, and expected to be gone in time.
  bool IsLeaving(const PodRecord& record, Instant now) const;
  struct GuardVerdict GuardOf(const PodUid& uid, const PodRecord& record, const HeldWork& work,
                              Instant now) const;
  const GpuQuota* SpecOf(const std::string& quota) const;
  const GpuClass* ClassNamed(const std::string& name) const;
  // The reclaim that is looked at again: what it has evicted itself guards nobody from it.
  const Reclaim* own_reclaim = nullptr;
  bool EvictedItself(const std::string& owner) const;
  // Does a PodDisruptionBudget that allows nothing cover the pod?
  bool IsProtected(const PodRecord& record) const;

  // ---- reclaims: planning (reclaim_plan.cc)
  // The pod waits and may have to be given room.
  void NoteHungry(const PodUid& uid, const PodRecord& record);
  std::optional<PodUid> NextHungry(Instant now);
  // When NextHungry will have one; nullopt: not before something changes.
  std::optional<Instant> HungryAt(Instant now) const;
  void ForgetHungry(const PodUid& uid);
  void RegroupHungry();
  std::optional<struct Aggressor> AggressorOf(const PodUid& uid);
  std::string MemoryKey(const struct Aggressor& aggressor);
  PlanOutcome PlanFor(const PodUid& uid, Instant now);
  std::optional<PlanBlock> FindBlock(const struct Aggressor& aggressor, Instant now);
  void BeginPlan(const struct Aggressor& aggressor, class ReclaimCase& reclaim_case,
                 const struct ReclaimAnswer& answer, Instant now);
  std::string ReclaimName(const std::string& stem, Instant now);
  // What the pod would lose if it went now.
  int64_t LossOf(const PodRecord& record, const HeldWork& work, const CheckpointAges& ages,
                 Instant now) const;
  std::string Begin(Reclaim reclaim, Instant now);
  std::vector<ReclaimVictim> VictimsOf(const class ReclaimCase& reclaim_case,
                                       const ReclaimPlan& plan, Instant now) const;
  ReclaimVictim VictimOf(const PodUid& uid, int64_t lost, Instant now) const;
  static bool MayPlan(const Question& question);

  // ---- reclaims: giving back without anybody who waits (reclaim_drain.cc)
  std::optional<PlanOutcome> PlanRelease(Instant now);
  std::optional<Instant> ReleaseAt(Instant now);
  PlanOutcome PlanDrain(std::size_t budget, Instant now);
  PlanOutcome PlanShrinkOf(const std::string& leaf, Instant now);
  void NoteShrunk(const PolicySet& before);

  // ---- reclaims: carrying out (reclaim_run.cc)
  void NextEviction(const std::string& name, Instant now);
  // Does the plan of a reclaim still hold? Drops victims that are no longer needed.
  bool Revalidate(Reclaim& reclaim, Instant now);
  bool LookAgain(Reclaim& reclaim, Instant now);
  void Changed(Reclaim& reclaim);
  void Finish(Reclaim& reclaim, ReclaimPhase phase, std::string reason, Instant now);
  // A pod holds nothing any more, or is no more.
  void NoteVictimGone(const PodUid& uid, Instant now);
  void NoteVictimLeaving(const PodUid& uid, Instant now);
  void NoteMemberGone(const PodUid& uid, Instant now);
  void NoteMemberPlaced(const PodUid& uid, const NodeName& node, Instant now);
  void TendReclaims(Instant now);
  std::optional<Instant> ReclaimsDue(Instant now) const;
  void RefundLostWork(const PodUid& uid, const PodRecord& record, Instant at);
  void ContinueReclaims(Instant now);  // after a restart
  // Keeps devices for the members that wait, as the record says; false: that cannot be done.
  bool Reearmark(Reclaim& reclaim, Instant now);
  void SeeIfReserved(Reclaim& reclaim, Instant now);
  bool FitsItsEarmark(const ReclaimMember& member, Instant now);
  void NoteEvicted(const std::string& name, const PodUid& uid, Instant now);
  bool StillReleases(Reclaim& reclaim, const std::vector<PodUid>& left, Instant now);

  // ---- gangs (gangs.cc)
  struct GangCount {
    int size = 0;     // 0: nobody says
    int placed = 0;   // bound, or being bound
    int bound = 0;    // of these, seen bound
    int waiting = 0;  // could be placed
    int gated = 0;    // could be, but for gates of ours
    int plain = 0;
    bool gathered() const { return size > 0 && placed + waiting + gated + plain >= size; }
    bool complete() const { return size > 0 && placed + waiting + plain >= size; }
  };
  static std::string GangKey(const PodRequest& request);
  int SizeOf(const std::string& key, const Gang& gang) const;
  GangCount CountOf(const std::string& key, const Gang& gang) const;
  // The pod is in the gang it names, or no longer.
  void JoinGang(const PodUid& uid, PodRecord& record, Instant now);
  void LeaveGang(const PodUid& uid, PodRecord& record, Instant now);
  void NotePlainMember(const PodRequest& request, bool lives);
  void NoteGang(const std::string& key);
  void NoteGangProgress(const PodRecord& record, Instant now);
  bool IsSeated(const PodUid& uid, const PodRecord& record) const;
  GangTurn TakeTurn(const PodUid& uid, const PodRecord& record, Instant now);
  std::vector<PodUid> WaitingMembers(const Gang& gang) const;
  // Finds places for all who wait and keeps them; false: there are none.
  bool SeatGang(const std::string& key, Gang& gang, Instant now);
  bool TrySeats(Gang& gang, const std::vector<PodUid>& waiting, Instant now);
  void Unseat(Gang& gang, Instant now);
  void Lapse(const std::string& key, Gang& gang, Instant now);
  void EvictPart(const std::string& key, const Gang& gang, Instant now);
  void TendGangs(Instant now);
  // When the pod will have ended, by its own word; nullopt: it does not say, or has outlived it.
  std::optional<Instant> EndOf(const PodUid& uid, Instant now) const;
  // Keeps the nodes on which a gang that has waited long can start the soonest.
  void TendHold(Instant now);
  std::optional<std::string> GangToHoldFor(Instant now) const;
  void PlanHold(const Gang& gang, Instant now);
  // The node is kept for a gang, and the pod would still be there when that starts.
  bool IsHeldFrom(const PodRequest& request, NodeId id, Instant now) const;
  std::optional<Instant> GangsDue(Instant now) const;
  void RestoreGangs(Instant now);
  std::string DescribeGang(const PodRecord& record) const;
  // Where other pods of its gang are; false: nowhere.
  bool NeighboursOf(const PodRecord& record, const GpuPolicy& policy, Neighbours& found) const;
  // 0: in the same clique (or on the same node), 1: rack, ..., kGangLevels: none of these.
  int DistanceTo(const Neighbours& neighbours, NodeId id) const;
  // The node's domain of that level; empty: none is known.
  std::string DomainOf(NodeId id, GangLevel level, const DomainLabels& labels) const;

  // ---- earmarks (earmark.cc)
  void PutEarmark(const PodUid& uid, PodRecord& record, Earmark earmark, Instant now);
  void DropEarmark(const PodUid& uid, PodRecord& record, Instant now);
  // These devices of the node, for the pod, with what they are charged.
  Earmark EarmarkOf(NodeId id, const PodRequest& request, const Standing& standing,
                    const Picks& devices, Instant now) const;
  // Takes the pod's earmark out of the books while a question is asked on its behalf.
  class Lift {
   public:
    Lift(Impl& engine, const PodUid& uid, Instant now);
    ~Lift();
    Lift(const Lift&) = delete;
    Lift& operator=(const Lift&) = delete;
    // The pod has its devices: the earmark does not come back.
    void Discard();
    // The pod's own; null: none, or discarded.
    const Earmark* earmark() const { return earmark_.get(); }

   private:
    void LiftOthers(const Reclaim& own);
    void PutBack(const PodUid& uid, const Earmark& earmark);
    Impl& engine_;
    PodUid uid_;
    Instant now_;
    std::unique_ptr<Earmark> earmark_;
    std::vector<std::pair<PodUid, Earmark>> others_;
    uint64_t version_ = 0;
  };
  // kube-scheduler has nominated a node and evicts there: the room is kept (hazard 18).
  void NoteNominated(const PodUid& uid, PodRecord& record, const NodeName& node, Instant now);
  void KeepNominated(const NodeName& node, Instant now);
  void EndNominated(const PodUid& uid, PodRecord& record, Instant now);
  // Every victim is gone, and the pod's devices wait for it on that node.
  bool IsReserved(const PodUid& uid, const NodeName& node) const;
  // The node on which devices are kept for the pod while its victims leave; kNoNode: none.
  NodeId AwaitedNode(const PodUid& uid);
  bool GivesWayToReturned(const Question& question, const PodRecord& record, Instant now,
                          PodUid& first);

  // ---- the preempt verb (preempt.cc)
  std::optional<std::vector<PodUid>> NeededOf(const Question& question, NodeId id,
                                              std::span<const PodUid> victims);
  int64_t CountViolations(std::span<const PodUid> victims) const;
  std::vector<PodUid> InOrder(std::span<const PodUid> named, std::span<const PodUid> needed);

  // ---- for people (views.cc, team_views.cc, explain.cc)
  int64_t PendingQuanta(const PodRecord& record);
  std::string Oversubscription() const;  // the first promise the hardware cannot keep; empty: none
  void DivideSurplus(std::vector<QuotaView>& views) const;
  struct Trial {
    std::vector<NodeId> nodes;
    std::vector<std::pair<NodeId, PodUid>> placed;
    std::set<PodUid> gone;  // victims of plans made on the way
  };
  void Try(Trial& trial, const PodRequest& request, WhatIfResult& result, Instant now);
  // Makes room for the pod on paper; nullopt: that cannot be done.
  std::optional<std::pair<NodeId, Picks>> SeatByEvicting(Trial& trial, const PodRequest& request,
                                                         WhatIfResult& result, Instant now);
  void ExplainReclaim(const PodUid& uid, Explanation& explanation);
  std::optional<PlanBlock> BlockOf(const PodUid& uid) const;
  AdviceNode AdviceNodeOf(const NodeEntry& entry, const NodeName& name) const;
  NodeView ViewNode(NodeId id) const;
  PodView ViewPod(const PodUid& uid, const PodRecord& record);

  EngineOptions options;
  std::shared_ptr<const PolicySet> set = std::make_shared<const PolicySet>();
  std::vector<GpuPolicy> policies = {GpuPolicy()};  // in order of precedence; the last for all
  std::unordered_map<std::string, std::size_t> policy_of_namespace;  // a cache
  const GpuPolicy& default_policy() const { return policies.back(); }
  QuotaBook book;
  NamespaceCaps caps;
  bool ledger_closed = false;
  std::map<PodUid, OpenInterval> unclaimed;   // held as the ledger says, no pod was seen yet
  std::unordered_map<PodUid, int> intervals;  // of pods metered before this process, by history
  Instant heartbeat;                          // of the ledger, at start
  std::vector<MeterEvent> metering;
  std::vector<WindowClosing> closings;
  uint64_t meter_sequence = 0;
  std::set<std::pair<Instant, PodUid>> wakeups;  // when a budget will let the pod in
  std::set<PodUid> pending;                      // GPU pods the cluster shows that wait for a node
  std::set<PodUid> contenders;  // quota refused them; they wait for what others borrow
  std::unordered_map<std::string, uint32_t> kinds;
  std::vector<KindAnswer> kind_answers;  // by kind, of the question at hand
  std::vector<uint32_t> kinds_asked;
  std::map<std::string, int64_t> capacity;  // cards by model
  Instant latest;                           // the newest time any call came with

  NodeNames names;
  std::vector<std::unique_ptr<NodeEntry>> nodes;  // by NodeId
  std::vector<NodeHot> hot;                       // by NodeId
  StateTable states{4096};
  std::multimap<Instant, NodeId> reopenings;

  ReclaimBooks reclaims;
  GangBooks gangs;
  GateBooks gates;     // for GateKeeper
  DraBooks dra_books;  // for DraDesk
  MachineTables machines;
  NodeWords words;
  bool cluster_complete = false;  // the first complete set of pods is in

  std::unordered_map<PodUid, PodRecord> pods;  // looked up, never iterated for an answer
  std::set<std::pair<PodName, PodUid>> pods_by_name;
  std::deque<std::tuple<Instant, PodUid, uint64_t>> claim_queue;  // ascending end
  std::set<std::pair<Instant, PodUid>> reservations;
  // Records only filter calls made, with the time of the first, oldest first.
  std::deque<std::pair<Instant, PodUid>> unseen;
  bool IsPlain(const PodUid& uid) const { return plain.contains(uid) || plain_seen.Has(uid); }
  PlainPodBooks plain_seen;          // pods without GPUs the cluster shows us
  std::unordered_set<PodUid> plain;  // those only filter saw, bounded
  std::deque<PodUid> plain_order;    // oldest first
  AgentQueues agents;
  // How far the node's agent is with the pod, as its object says.
  void FollowAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod, Instant now);
  std::vector<AgentOrphan> agent_orphans;  // not yet taken
  // The pod has ended on its node.
  void EndAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod, Instant now);
  KeeperBooks keepers;
  std::set<PodUid> keeper_waits;           // bound to nodes in our books, their cards not known yet
  std::vector<AgentTurn> keeper_turns;     // not yet taken
  std::vector<KeeperOrder> keeper_orders;  // not yet taken
  // ---- keepers (keeping.cc)
  void UpsertKeeper(PodFacts pod, Instant now);
  bool DropKeeper(const PodUid& uid, Instant now);  // false: no keeper has that uid
  void TendKeepers(NodeId id, Instant now);         // after any change of what is held there
  void StartKeepers(Instant now);                   // the first complete set of pods is in
  void OrderKeeper(NodeId id, int card, Instant now);
  void TellFollowers(NodeState& state, const KeeperAnswer& answer);
  int64_t stamp = 0;  // the last one given to a bind
  // Unix nanoseconds, above every one before: agents serve pods in this order.
  int64_t NextStamp(Instant now);
  uint64_t claim_serial = 0;
  int64_t claims = 0;
  std::deque<std::pair<Instant, PodUid>> refused_lately;  // by filter, oldest first
  std::vector<std::pair<PodName, PodUid>> pokes;          // not yet taken

  Scorer scorer;
  DemandLog demand;
  std::unordered_map<std::string, Shape> shapes;
  uint64_t shape_clock = 0;
  uint64_t selection = 0;          // counts them
  uint32_t selection_version = 0;  // of the scorer, for the request at hand

  // Scratch, kept between calls so that the hot path does not allocate.
  std::vector<NodeId> ids;
  std::vector<Candidate> best;
  std::array<uint32_t, static_cast<std::size_t>(Reason::kCount)> reason_counts{};
  bool quota_allows_one = false;  // Select met a node that fits and that quota does not refuse
  Picks picks;
  std::string text;
  Verdict direct;
};

// What would change the answer; empty: nothing anybody could do.
std::string AdviceFor(Reason reason);
// What about this node stands in the way, with numbers; for explain. `reason` is not kNone.
std::string DescribeMisfit(const NodeEntry& entry, const PodRequest& request,
                           const GpuPolicy& policy, Reason reason, Instant now);
// The request in a few words: "1 GPU", "0.5 GPU", "2 x 1g.10gb".
std::string DescribeRequest(const PodRequest& request);

}  // namespace tranche
