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

#include "quota/preemption/lost_work.h"
#include "quota/quota_book.h"
#include "scheduler/advice/case.h"
#include "scheduler/advice/demand.h"
#include "scheduler/engine/claim_accounting.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/gangs/gang_seats.h"
#include "scheduler/engine/gate_books.h"
#include "scheduler/engine/preemption/eviction_guards.h"
#include "scheduler/engine/preemption/preemption_state.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/earmarks.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/engine/teams/namespace_use.h"
#include "scheduler/engine/verdict.h"
#include "scheduler/engine/views/explain_text.h"
#include "scheduler/engine/views/node_view.h"
#include "scheduler/index/card_sets.h"

namespace tranche {

__extension__ using Order = unsigned __int128;

struct Candidate {
  Order order = 0;        // lower is better, see filter.cc
  uint32_t position = 0;  // in the caller's list
  NodeId node = kNoNode;
};

// What has no part of its own yet. It derives from the parts that have, until a verb is a list of
// steps over them.
struct Engine::Impl : ClusterState, Earmarks, NamespaceUse {
  explicit Impl(const EngineOptions& engine_options)
      : ClusterState(engine_options),
        Earmarks(static_cast<ClusterState&>(*this)),
        NamespaceUse(static_cast<const ClusterState&>(*this)) {}

  // ---- books (engine.cc)
  void Advance(Instant now);  // everything that is due
  void TellNode(const NodeName& name, Instant now, Engine& engine);
  void ForgetOldest();  // pods only filter knows, beyond their time
  // The steps of UpsertPod.
  void UpsertPlain(const PodFacts& pod, bool ended, Instant now);
  void EndPod(PodRecord& record, const PodFacts& pod, Instant now);
  void PlacePod(PodRecord& record, PodFacts& pod, Instant now);
  void Erase(const PodUid& uid);
  void ReleaseOn(const NodeName& node, const PodUid& uid, Instant now);
  void DropReservation(const PodUid& uid, PodRecord& record, Instant now);
  // Room may have appeared on the node: pokes whom it helps (poke.cc).
  void NoteRoom(NodeId id, Instant now);
  void NoteReopened(NodeId id, Instant now);
  void NoteRetold(NodeId id, Instant now);
  bool Poke(const PodUid& uid, NodeId id, Instant now);

  // ---- what was asked for (demand.cc)
  // The pod wants devices, or has them.
  void NoteDemand(PodRecord& record, Instant now);
  void EndDemand(PodRecord& record, Instant now);

  // ---- choosing (filter.cc)
  void RankPlain(const PodRequest& request, Instant now, std::vector<int>& ranks);
  Shape* ShapeOf(const RequestContext& context);
  void BeginSelection(const PodRequest& request);  // prices; before a round of Lookup
  Verdict& Lookup(Shape* shape, const RequestContext& context, NodeId id, bool soft);
  // Does it fit the node as it is, claims aside?
  Reason Fits(const RequestContext& context, NodeId id);
  // Orders the fitting ones among `ids`; keeps the best `width`. `refused` may be null.
  struct Round;
  // Why the node does not take the pod; kNone: it does, and `order` says how good it is.
  Reason Consider(Round& round, NodeId id, Order& order);
  // Why the node is out of the question, whatever room it has; else how far it is from the gang.
  Reason ClosedTo(const Round& round, NodeId id, int& distance) const;
  void Keep(const Candidate& candidate, std::size_t width);
  void Select(const RequestContext& context, const std::vector<NodeId>& ids, std::size_t width,
              Instant now, std::vector<std::pair<uint32_t, Reason>>* refused);
  // Of the reasons Select met, the one closest to fitting.
  Reason NearestReason() const;
  void Claim(const RequestContext& context, PodRecord& record, NodeId id, Instant now);
  // ---- the steps of Filter (filter.cc)
  void PassPlain(const PodRequest& request, FilterAnswer& answer);
  PodRecord& NoteFiltered(const PodRequest& request, Instant now);
  // Narrows the question to where the pod's gang allows it; the gang's refusal.
  Reason AskGang(const PodRecord& record, RequestContext& context, Neighbours& near, Instant now);
  void ShowAwaited(const PodUid& uid, FilterAnswer& answer);
  bool GivesWay(const RequestContext& context, PodRecord& record, Instant now,
                FilterAnswer& answer);
  void KeepAnswer(const RequestContext& context, PodRecord& record, const FilterAnswer& answer,
                  Instant now);
  // Picks devices on the node as it would be claimed or bound: with claims in mind if possible.
  Reason PickDevices(const RequestContext& context, const NodeEntry& entry, Picks& picks);

  // ---- binding (bind.cc): the steps of Bind; false: the plan says how it ended
  bool NeedsDevices(const PodRecord* record, NodeId id, BindPlan& plan);
  bool MayBind(const RequestContext& context, const PodRecord& record, NodeId id, BindPlan& plan,
               Instant now);
  bool Reserve(const RequestContext& context, PodRecord& record, NodeId id, BindPlan& plan,
               Instant now);
  bool AdmitPicks(const RequestContext& context, PodRecord& record, NodeId id, Admission& admission,
                  BindPlan& plan, Instant now);
  void PlanWrite(PodRecord& record, NodeId id, BindPlan& plan, Instant now);

  // ---- teams (admission.cc)
  RequestContext ContextOf(const PodRequest& request);
  void ForgetKindAnswers();
  const KindAnswer& AskQuota(const RequestContext& context, NodeId id, Instant now);
  Reason Admit(const RequestContext& context, std::span<const ModelCharge> parts, Instant now,
               Admission& admission);
  void NoteQuotaRefusal(const RequestContext& context, PodRecord& record, Instant now);
  // Another borrower that fits now and comes first; nullopt: none.
  std::optional<PodUid> YieldsTo(const RequestContext& context, const PodRecord& record,
                                 Instant now);
  bool ComesFirst(const PodRecord& left, const PodRecord& right, Instant now) const;
  std::string DescribeQuota(const RequestContext& context, const PodRecord& record, Instant now);
  // The first refusal of what quota said in this call; empty: none.
  std::string DescribeQuotaAnswers(const RequestContext& context, Instant now);
  std::string DescribeSharing(const RequestContext& context, const NodeEntry& entry) const;
  // Pods that quota refused and that would be let in now go back to kube-scheduler's queue.
  void PokeAdmitted(Instant now);
  bool PokeIfFits(const PodUid& uid, Instant now);

  // ---- ResourceQuotas (namespace_caps.cc)
  void NoteCapRelease(const PodUid& uid, Instant now);
  void PokeCapped(const std::string& ns, Instant now);  // who waits for room in it

  // ---- metering (metering.cc)
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
  void RefundLost(const PodUid& uid, int interval, const NodeName& node, Instant until);
  std::optional<Allocation> AllocationOn(const NodeName& node, const PodUid& uid) const;

  // ---- reclaims: who may be taken from (reclaim_guards.cc)
  void NoteTraits(const PodUid& uid, PodRecord& record, const PodFacts& pod, Instant now);
  // Terminating, and expected to be gone in time.
  bool IsLeaving(const PodRecord& record, Instant now) const;

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
  std::string Begin(Reclaim reclaim, Instant now);
  std::vector<ReclaimVictim> VictimsOf(const class ReclaimCase& reclaim_case,
                                       const ReclaimPlan& plan, Instant now) const;
  ReclaimVictim VictimOf(const PodUid& uid, int64_t lost, Instant now) const;
  static bool MayPlan(const RequestContext& context);

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
  void JoinGang(const PodUid& uid, PodRecord& record, Instant now);
  void LeaveGang(const PodUid& uid, PodRecord& record, Instant now);
  void NotePlainMember(const PodRequest& request, bool lives);
  void NoteGang(const std::string& key);
  void NoteGangProgress(const PodRecord& record, Instant now);
  bool IsSeated(const PodUid& uid, const PodRecord& record) const;
  GangTurn TakeTurn(const PodUid& uid, const PodRecord& record, Instant now);
  std::vector<PodUid> WaitingMembers(const Gang& gang) const;
  // Keeps places for all who wait; false: there are none.
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

  // ---- room that is kept (kept_room.cc)
  RoomShares SharesWith(const PodUid& uid) const;
  // kube-scheduler has nominated a node and evicts there: the room is kept (hazard 18).
  void NoteNominated(const PodUid& uid, PodRecord& record, const NodeName& node, Instant now);
  void KeepNominated(const NodeName& node, Instant now);
  void EndNominated(const PodUid& uid, PodRecord& record, Instant now);
  // Every victim is gone, and the pod's devices wait for it on that node.
  bool IsReserved(const PodUid& uid, const NodeName& node) const;
  // The node on which devices are kept for the pod while its victims leave; kNoNode: none.
  NodeId AwaitedNode(const PodUid& uid);
  bool GivesWayToReturned(const RequestContext& context, const PodRecord& record, Instant now,
                          PodUid& first);

  // ---- the preempt verb (preempt.cc)
  std::optional<std::vector<PodUid>> NeededOf(const RequestContext& context, NodeId id,
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
  std::optional<std::pair<NodeId, Picks>> SeatByEvicting(Trial& trial, const PodRequest& request,
                                                         WhatIfResult& result, Instant now);
  void ExplainReclaim(const PodUid& uid, Explanation& explanation);
  std::optional<PlanBlock> BlockOf(const PodUid& uid) const;
  AdviceNode AdviceNodeOf(const NodeEntry& entry, const NodeName& name) const;
  PodView ViewPod(const PodUid& uid, const PodRecord& record);
  void DescribeWait(const RequestContext& context, const PodUid& uid, const PodRecord& record,
                    PodView& view);
  void ViewHeld(NodeId id, const PodUid& uid, const PodRecord& record, PodView& view) const;
  // Of several pods of one name the one that has not ended, or the last; nullptr: none.
  const PodRecord* FindNewest(const PodName& pod) const;
  NodeVerdict JudgeNode(const RequestContext& context, NodeId id, bool waits, Instant now);
  std::string AdvicePending(const RequestContext& context, const PodRecord& record);
  // ---- the parts of Audit (audit.cc)
  bool IsKnownTo(const PodRecord* record, const Holding& holding, NodeId id) const;
  void AuditNodes(std::vector<std::string>& faults);
  void AuditPods(std::vector<std::string>& faults);
  void AuditCharges(std::vector<std::string>& faults);

  std::unordered_map<std::string, std::size_t> policy_of_namespace;  // a cache
  bool ledger_closed = false;
  std::map<PodUid, OpenInterval> unclaimed;      // held as the ledger says, no pod was seen yet
  std::unordered_map<PodUid, int> intervals;     // of pods metered before this process, by history
  Instant heartbeat;                             // of the ledger, at start
  std::set<std::pair<Instant, PodUid>> wakeups;  // when a budget will let the pod in
  std::set<PodUid> contenders;           // quota refused them; they wait for what others borrow
  std::vector<KindAnswer> kind_answers;  // by kind, of the question at hand
  std::vector<uint32_t> kinds_asked;

  PreemptionState reclaims;
  EvictionGuards guards{set, reclaims};
  GangBooks gangs;
  GateBooks gates;     // for GateKeeper
  DraBooks dra_books;  // for DraDesk

  // Records only filter calls made, with the time of the first, oldest first.
  std::deque<std::pair<Instant, PodUid>> unseen;
  // How far the node's agent is with the pod, as its object says.
  void FollowAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod, Instant now);
  // The pod has ended on its node.
  void EndAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod, Instant now);
  // ---- placeholders (placeholder_pods.cc)
  void UpsertKeeper(PodFacts pod, Instant now);
  bool DropKeeper(const PodUid& uid, Instant now);        // false: no keeper has that uid
  void StartKeepers(Instant now);                         // the first complete set of pods is in
  std::deque<std::pair<Instant, PodUid>> refused_lately;  // by filter, oldest first

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

}  // namespace tranche
