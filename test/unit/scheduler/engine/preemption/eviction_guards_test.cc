// The guards are asked which pods may be evicted, alone: no engine is built.
#include "scheduler/engine/preemption/eviction_guards.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace tranche {
namespace THIS_FILE {

using std::chrono::minutes;

const Instant kNow = Instant() + std::chrono::hours(100);

// A pod of class "training" in the enforced leaf "team", which runs since an hour ago.
struct World {
  World() {
    PolicySet policies;
    GpuClass gpu_class;
    gpu_class.name = "training";
    policies.classes.push_back(gpu_class);
    GpuQuota leaf;
    leaf.name = "team";
    leaf.mode = QuotaMode::kEnforce;
    policies.quotas.push_back(leaf);
    set = std::make_shared<const PolicySet>(std::move(policies));
    auto request = std::make_shared<PodRequest>();
    request->name = {"ns", "pod"};
    record.request = std::move(request);
    record.node = NodeName("node-1");
    record.traits.owner = "ns/job";
    record.traits.evictable = true;
    work.leaf = "team";
    work.workload_class = "training";
    work.since = kNow - minutes(60);
  }

  // Changes the class before it is asked about.
  void Change(const std::function<void(GpuClass&, GpuQuota&)>& change) {
    PolicySet policies = *set;
    change(policies.classes.front(), policies.quotas.front());
    set = std::make_shared<const PolicySet>(std::move(policies));
  }
  GuardVerdict Verdict() const { return guards.Of(PodUid("uid"), record, work, kNow); }

  std::shared_ptr<const PolicySet> set;
  PreemptionState state;
  EvictionGuards guards{set, state};
  PodRecord record;
  HeldWork work;
};

TEST(EvictionGuards, RunningWorkOfAnEnforcedQuotaMayGo) {
  const World world;
  EXPECT_TRUE(world.Verdict().touchable);
  EXPECT_EQ(world.Verdict().guard, Guard::kNone);
}

TEST(EvictionGuards, NoRuleTakesTheseWhateverTheTime) {
  World observed, never, leaving, bare, pending;
  observed.Change([](GpuClass&, GpuQuota& leaf) { leaf.mode = QuotaMode::kObserve; });
  never.Change([](GpuClass& one, GpuQuota&) { one.preemptible = Preemptible::kNever; });
  leaving.record.traits.leaves_at = kNow;
  bare.record.traits.evictable = false;
  pending.record.node = NodeName();
  for (const World* world : {&observed, &never, &leaving, &bare, &pending}) {
    EXPECT_FALSE(world->Verdict().touchable);
  }
}

TEST(EvictionGuards, AMinimumRuntimeGuardsUntilItHasPassed) {
  World world;
  world.Change([](GpuClass& one, GpuQuota&) { one.min_runtime = minutes(30); });
  EXPECT_EQ(world.Verdict().guard, Guard::kNone);
  world.work.running = kNow - minutes(10);
  EXPECT_EQ(world.Verdict().guard, Guard::kMinRuntime);
  EXPECT_EQ(world.Verdict().until, kNow + minutes(20));
}

TEST(EvictionGuards, WhatAnOwnerStartsAgainIsImmuneAndWhatRanAllAlongIsNot) {
  World world;
  world.state.history.Note("ns/job", "team", 1, kNow - minutes(2));
  EXPECT_EQ(world.Verdict().guard, Guard::kNone);
  world.work.since = kNow - minutes(1);
  EXPECT_EQ(world.Verdict().guard, Guard::kImmunity);
  EXPECT_EQ(world.Verdict().until, kNow + minutes(8));
}

TEST(EvictionGuards, ADayThatIsFullGuardsFromAllPlansButTheOneThatFilledIt) {
  World world;
  world.Change([](GpuClass& one, GpuQuota&) { one.max_evictions_per_day = 1; });
  world.state.history.Note("ns/job", "team", 1, kNow - minutes(1));
  EXPECT_EQ(world.Verdict().guard, Guard::kDailyLimit);
  Reclaim plan;
  ReclaimVictim victim;
  victim.owner = "ns/job";
  victim.evicted_at = kNow - minutes(1);
  plan.victims.push_back(victim);
  world.guards.LookAgainAt(&plan);
  EXPECT_EQ(world.Verdict().guard, Guard::kNone);
  world.guards.LookAgainAt(nullptr);
  EXPECT_EQ(world.Verdict().guard, Guard::kDailyLimit);
}

TEST(EvictionGuards, ADisruptionBudgetHasNoTime) {
  World world;
  world.record.traits.settled_until = kNow + minutes(5);
  EXPECT_EQ(world.Verdict().guard, Guard::kSettled);
  DisruptionBudget budget;
  budget.ns = "ns";
  budget.name = "pdb";
  budget.selector.emplace();
  world.state.disruption_budgets[{"ns", "pdb"}] = budget;
  EXPECT_TRUE(world.guards.IsProtected(world.record));
  EXPECT_EQ(world.Verdict().guard, Guard::kDisruptionBudget);
  EXPECT_EQ(world.Verdict().until, std::nullopt);
  world.state.disruption_budgets[{"ns", "pdb"}].allowed = 1;
  EXPECT_FALSE(world.guards.IsProtected(world.record));
}

TEST(EvictionGuards, EverythingRepeatedCostsMore) {
  World world;
  world.work.parts = {{"H100", {kQuantaPerGpu, kQuantaPerGpu}}};
  world.work.running = kNow - minutes(10);
  const int64_t once = world.guards.LossOf(world.record, world.work, CheckpointAges(), kNow);
  EXPECT_GT(once, 0);
  world.state.history.Note("ns/job", "team", 1, kNow - minutes(90));
  EXPECT_GT(world.guards.LossOf(world.record, world.work, CheckpointAges(), kNow), once);
}

}  // namespace THIS_FILE
}  // namespace tranche
