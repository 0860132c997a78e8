// Rooms of the engine, each built from those left of it, for tests of one part alone: neither
// Engine nor EngineParts is made. A test of a part derives from the room before it and constructs
// the part itself.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/gangs/gangs.h"
#include "scheduler/engine/preemption/awaited_nodes.h"
#include "scheduler/engine/preemption/eviction_guards.h"
#include "scheduler/engine/preemption/preemptor_queue.h"
#include "scheduler/engine/preemption/reclaim_case.h"
#include "scheduler/engine/requeue/nominations.h"
#include "scheduler/engine/requeue/requeuer.h"
#include "scheduler/engine/selection/foreseen_charges.h"
#include "scheduler/engine/selection/held_nodes.h"
#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/earmarks.h"
#include "scheduler/engine/state/kept_room.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/teams/metering.h"
#include "scheduler/engine/teams/namespace_use.h"
#include "scheduler/engine/teams/team_queue.h"
#include "scheduler/engine/teams/team_rules.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"

namespace tranche::test {

// A pod of the namespace that asks for whole GPUs.
inline PodRequest TeamPod(const std::string& ns, const std::string& name, int64_t gpus,
                          const std::string& priority_class = "") {
  PodRequest request = WholePod(name, gpus);
  request.name.ns = ns;
  request.priority_class = priority_class;
  return request;
}

// One of a gang of that size.
inline PodRequest Member(const std::string& ns, const std::string& gang, int number, int size,
                         int64_t gpus = 8) {
  PodRequest request = TeamPod(ns, fmt::format("{}-{}", gang, number), gpus);
  request.gang = gang;
  request.gang_size = size;
  request.gang_rank = number;
  return request;
}

// Two teams of an organisation, 4 H100 each, which may borrow from each other.
inline std::vector<GpuQuota> TwoTeams() {
  return {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "4"),
          Quota("team-b").Under("org").Owns("b").Line("h100", "4")};
}

// The state with nodes and pods in it.
struct StateRoom {
  explicit StateRoom(const EngineOptions& options = {}) : cluster(options) {}

  NodeId Node(NodeFacts facts) {
    const NodeId id = cluster.InternNode(facts.name);
    NodeEntry& entry = *cluster.nodes[id];
    entry.state.SetFacts(std::move(facts), 0, &cluster.machines);
    entry.kind = cluster.KindOf(entry.state.inventory());
    cluster.Refresh(id, now);
    return id;
  }
  NodeId IdOf(const std::string& node) const { return cluster.names.Find(node); }
  // Before the first question: what is cached of policies is not forgotten.
  void Declare(Objects objects, GpuPolicy defaults = {}) {
    cluster.set = test::Declare(std::move(objects));
    cluster.policies = cluster.set->policies;
    cluster.policies.push_back(std::move(defaults));
    cluster.book.SetPolicies(cluster.set, now);
  }

  // The cluster shows the pod, which waits. `reason`: filter refused it.
  PodRecord& Wait(const PodRequest& request, Reason reason = Reason::kNone) {
    PodRecord& record = cluster.Touch(request);
    record.seen = true;
    record.filtered = reason != Reason::kNone;
    record.last_reason = reason;
    record.waits_since = now;
    cluster.NotePending(request.uid, record);
    return record;
  }
  // The pod's devices on that node, the first that do.
  Earmark DevicesOn(const PodRequest& request, const std::string& node) {
    const NodeState& state = cluster.nodes[IdOf(node)]->state;
    Picks picks;
    Worth worth;
    EXPECT_EQ(cluster.scorer.Evaluate(RoomOf(state, state.hard()), request,
                                      cluster.default_policy(), picks, worth),
              Reason::kNone)
        << request.name.str();
    const QuotaMembership membership =
        cluster.book.MembershipOf(request.name.ns, request.priority_class);
    return earmarks.EarmarkOf(IdOf(node), request, membership, picks, now);
  }
  // It is bound there and holds its devices; no quota is charged.
  PodRecord& Place(const PodRequest& request, const std::string& node) {
    Holding holding;
    holding.uid = request.uid;
    holding.allocation = DevicesOn(request, node).allocation;
    PodRecord& record = cluster.Touch(request);
    holding.request = record.request;
    record.seen = true;
    record.node = NodeName(node);
    record.held_since = now;
    record.traits.evictable = true;
    record.traits.owner = request.name.str();
    cluster.NotePending(request.uid, record);
    cluster.nodes[IdOf(node)]->state.Hold(std::move(holding));
    cluster.Refresh(IdOf(node), now);
    return record;
  }
  // It runs there, charged to its team.
  PodRecord& Runs(const PodRequest& request, const std::string& node) {
    HeldWork work = DevicesOn(request, node).work;
    work.running = now;
    PodRecord& record = Place(request, node);
    cluster.book.Hold(request.uid, std::move(work));
    return record;
  }
  // It is no more.
  void End(const PodRequest& request) {
    const std::string node = cluster.Find(request.uid)->node.str();
    cluster.book.Release(request.uid, now);
    cluster.nodes[IdOf(node)]->state.Release(request.uid);
    cluster.ErasePod(request.uid);
    cluster.Refresh(IdOf(node), now);
  }
  // A plan that keeps the node for a waiting pod while these leave.
  Reclaim& UnderWay(const std::string& name, const PodRequest& member, const std::string& node,
                    const std::vector<PodRequest>& victims) {
    Reclaim& reclaim = reclaims.all[name];
    reclaim.name = name;
    reclaim.rule = ReclaimRule::kR1;
    reclaim.phase = ReclaimPhase::kEvicting;
    reclaim.members.push_back({member.name, member.uid, NodeName(node)});
    reclaims.of_member[member.uid] = name;
    for (const PodRequest& request : victims) {
      ReclaimVictim& victim = reclaim.victims.emplace_back();
      victim.pod = request.name;
      victim.uid = request.uid;
      reclaims.of_victim[request.uid] = name;
    }
    reclaims.runs[name] = {};
    return reclaim;
  }

  // ---- what has gone out since the last call
  std::vector<std::string> Requeued() {
    std::vector<std::string> names;
    for (const auto& [pod, uid] : std::exchange(cluster.outbox.effects().requeue, {}))
      names.push_back(pod.name);
    return names;
  }
  // "open one.0 at 60", "refund one.0 from 60 to 90 NodeLost"; a mark for estimates.
  std::vector<std::string> Metered() {
    static constexpr const char* kKinds[] = {"open", "running", "close", "void", "refund"};
    const auto seconds = [](Instant at) { return (at - At(0)).count() / 1000; };
    std::vector<std::string> texts;
    for (const MeterEvent& event : std::exchange(cluster.outbox.effects().metering, {})) {
      const std::string when =
          event.kind == MeterKind::kRefund
              ? fmt::format("from {} to {}", seconds(event.at), seconds(event.until))
              : fmt::format("at {}", seconds(event.at));
      texts.push_back(fmt::format(
          "{} {}.{} {}{}{}{}", kKinds[static_cast<int>(event.kind)], event.pod.name, event.interval,
          when, event.note.empty() ? "" : " ", event.note, event.estimated ? " estimated" : ""));
    }
    return texts;
  }

  Instant now = At(0);
  ClusterState cluster;
  Earmarks earmarks{cluster};
  PreemptionState reclaims;
  KeptRoom kept{cluster, reclaims};
};

struct TeamsRoom : StateRoom {
  using StateRoom::StateRoom;
  NamespaceUse namespaces{cluster};
  TeamRules rules{cluster, namespaces};
  TeamQueue team_queue{cluster, rules, namespaces, reclaims};
  Metering metering{cluster};
};

struct SelectionRoom : TeamsRoom {
  using TeamsRoom::TeamsRoom;
  ForeseenCharges foreseen{cluster};
  HeldNodes held_nodes{cluster};
  Selection selection{cluster, rules, namespaces, held_nodes};
};

struct RequeueRoom : SelectionRoom {
  using SelectionRoom::SelectionRoom;
  Requeuer requeue{cluster, namespaces, rules, team_queue, selection, foreseen, kept};
  EarlyNominations early_nominations{cluster, reclaims, rules, selection};
  Nominations nominations{cluster, earmarks, reclaims, rules, requeue, early_nominations};
};

struct GangsRoom : RequeueRoom {
  using RequeueRoom::RequeueRoom;
  // One more of its gang waits.
  PodRecord& Joins(const PodRequest& request) {
    PodRecord& record = Wait(request);
    gangs.Join(request.uid, record, now);
    return record;
  }
  GangParts gang_parts{cluster, rules, selection, held_nodes};
  Gangs gangs{gang_parts, held_nodes, earmarks, reclaims, requeue, nominations};
};

struct PreemptionRoom : GangsRoom {
  using GangsRoom::GangsRoom;
  // Quota or room is lacking: room may have to be made for it.
  const PodUid& Hungry(const PodRequest& request, Reason reason = Reason::kWaitingForQuota) {
    const PodRecord& record = Wait(request, reason);
    preemptors.Note(request.uid, record);
    return record.request->uid;
  }
  EvictionGuards guards{cluster.set, reclaims};
  PreemptorQueue preemptors{cluster, reclaims, rules, gangs};
  AwaitedNodes awaited{cluster};
  ClaimBooks claim_books;
  ClaimHolders claim_holders{cluster, claim_books};
  PlanParts plan_parts{cluster, claim_holders, reclaims, guards, selection};
};

}  // namespace tranche::test
