// Reclaims beyond the single pod: gangs, fractions, restarts, budgets that drain, quotas that
// shrink, what-if, and the preempt verb.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::DayBudget;
using test::FractionPod;
using test::Hours;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Reclaiming : public EngineReclaimTest {
 protected:
  void SetUp() override { Nodes({StockNode("n1", 8), StockNode("n2", 8)}); }
  // 16 H100: each team owns 8 and may borrow all.
  static std::vector<GpuQuota> TwoTeams() {
    return {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "8"),
            Quota("team-b").Under("org").Owns("b").Line("h100", "8")};
  }
  static std::vector<GpuClass> Classes() {
    return {Class("serve", 3, Preemptible::kNever), Class("train", 2), Class("scavenge", 0)};
  }
  void DeclareTeams() { Declare({.quotas = TwoTeams(), .classes = Classes()}); }
  static PodRequest Member(const std::string& ns, const std::string& gang, int number, int64_t gpus,
                           int size) {
    PodRequest request = Pod(ns, gang + "-" + std::to_string(number), gpus, "train");
    request.gang = gang;
    request.gang_size = size;
    return request;
  }
  void RunGang(const std::vector<PodRequest>& members, const std::string& node) {
    for (const PodRequest& member : members) engine_.UpsertPod(test::Pending(member), now_);
    for (const PodRequest& member : members) Run(member, node);
  }
};

TEST_F(Reclaiming, HalfAGpuTakesOneFractionAndNotAMachine) {
  DeclareTeams();
  Run(Pod("a", "own", 8, "train"), "n1");
  Pass(Minutes(1));
  for (int i = 0; i < 16; ++i) {
    Run(In("a", FractionPod("half-" + std::to_string(i), 500), "train"), "n2");
  }
  const PodRequest wants = In("b", FractionPod("wants", 500), "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  const std::vector<Reclaim> reclaims = engine_.Reclaims();
  ASSERT_EQ(reclaims.size(), 1U);
  EXPECT_EQ(reclaims[0].victims.size(), 1U);
  EXPECT_EQ(reclaims[0].victims[0].node, NodeName("n2"));
  EXPECT_EQ(reclaims[0].victims[0].state, QuotaState::kBorrowed);
}

// Kube-scheduler leaves full nodes out by itself, and asks about what has free GPUs of any kind.
TEST_F(Reclaiming, FullNodesThatNobodyAsksAboutAreTakenBackToo) {
  DeclareTeams();
  Nodes({StockNode("t4", 4, "Tesla-T4", 15'360)});
  Run(Pod("a", "own", 8, "train"), "n1");
  Pass(Minutes(1));
  Run(Pod("a", "borrowed", 8, "train"), "n2");
  PodRequest wants = Pod("b", "wants", 4, "train");
  wants.models_any = {"h100"};
  engine_.UpsertPod(test::Pending(wants), now_);
  const std::vector<std::string_view> asked = {"t4"};
  engine_.Filter(wants, asked, now_, answer_);
  ASSERT_EQ(answer_.refused.size(), 1U);
  EXPECT_EQ(answer_.refused[0].second, Reason::kWrongModel) << "of the node that was asked about";
  EXPECT_EQ(Why(wants), "WaitingForQuota") << "of the pod";
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/1 for wants from borrowed"));
  // One of a model that no node has is told what nothing changes.
  PodRequest never = Pod("b", "never", 1, "train");
  never.models_any = {"b200"};
  engine_.UpsertPod(test::Pending(never), now_);
  engine_.Filter(never, asked, now_, answer_);
  EXPECT_EQ(Why(never), "WrongModel");
}

TEST_F(Reclaiming, VictimsGoAsWholeGangs) {
  DeclareTeams();
  Run(Pod("a", "own", 8, "train"), "n1");
  Pass(Minutes(1));
  RunGang({Member("a", "pair", 1, 4, 2), Member("a", "pair", 2, 4, 2)}, "n2");
  EXPECT_EQ(Try(Pod("b", "wants", 2, "train")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/2 for wants from pair-1 pair-2"));
  EXPECT_EQ(engine_.Reclaims()[0].cost.gangs, 1);
}

TEST_F(Reclaiming, PodsBeyondTheGangsSizeGoByThemselves) {
  DeclareTeams();
  Run(Pod("a", "own", 8, "train"), "n1");
  Pass(Minutes(1));
  std::vector<PodRequest> elastic;
  for (int i = 1; i <= 4; ++i) elastic.push_back(Member("a", "elastic", i, 2, 2));
  RunGang(elastic, "n2");
  EXPECT_EQ(Try(Pod("b", "wants", 2, "train")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  ASSERT_EQ(engine_.Reclaims().size(), 1U);
  EXPECT_EQ(engine_.Reclaims()[0].victims.size(), 1U);
  EXPECT_EQ(engine_.Reclaims()[0].cost.gangs, 0);
}

TEST_F(Reclaiming, AGangIsPlannedWholeBeforeTheFirstEviction) {
  DeclareTeams();
  Run(Pod("a", "first", 4, "train"), "n1");
  Run(Pod("a", "second", 4, "train"), "n2");
  Pass(Minutes(1));
  Run(Pod("a", "third", 4, "train"), "n1");
  Run(Pod("a", "fourth", 4, "train"), "n2");
  const PodRequest one = Member("b", "ring", 1, 4, 2), two = Member("b", "ring", 2, 4, 2);
  EXPECT_EQ(Try(one), "GangIncomplete");
  EXPECT_EQ(Plan(), "") << "half a gang is nobody to make room for";
  EXPECT_EQ(Try(two), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/2 for ring-1 ring-2 from fourth third"));
  EXPECT_EQ(EvictAll(), "fourth third");
  Leave(Pod("a", "third", 4));
  Leave(Pod("a", "fourth", 4));
  EXPECT_TRUE(Place(one, nominated_["ring-1"]));
  EXPECT_EQ(Reclaims()[0].substr(0, 11), "R1 Reserved");
  EXPECT_TRUE(Place(two, nominated_["ring-2"]));
  EXPECT_EQ(Reclaims()[0].substr(0, 7), "R1 Done");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Reclaiming, ARestartBetweenTwoEvictionsGoesOn) {
  DeclareTeams();
  const PodRequest own = Pod("a", "own", 8, "train"), one = Pod("a", "one", 4, "train"),
                   two = Pod("a", "two", 4, "train"), wants = Pod("b", "wants", 8, "train");
  Run(own, "n1");
  Pass(Minutes(1));
  Run(one, "n2");
  Run(two, "n2");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Evict(), "one");
  const std::vector<Reclaim> written = engine_.Reclaims();
  const auto running = running_;

  Engine after{EngineOptions{}};
  for (const auto& node : {StockNode("n1", 8), StockNode("n2", 8)}) after.UpsertNode(node, now_);
  after.SetPolicies(test::Declare({.quotas = TwoTeams(), .classes = Classes()}), Defaults(), now_);
  for (const auto& [uid, pod] : running) after.UpsertPod(pod, now_);
  after.UpsertPod(test::Pending(wants), now_);
  after.RestoreReclaims(written);
  after.FinishRestore(now_);
  ReclaimWork work = std::exchange(after.effects().reclaims, {});
  ASSERT_EQ(work.evictions.size(), 1U);
  EXPECT_EQ(work.evictions[0].pod.name, "two");
  PodFacts leaving = running.at(two.uid);
  leaving.terminating = true;
  leaving.deletion_at = now_;
  after.UpsertPod(leaving, now_);
  after.SettleEviction(work.evictions[0].reclaim, two.uid, EvictionOutcome::kAccepted, {}, now_);
  after.DeletePod(one.uid, now_);
  after.DeletePod(two.uid, now_);
  EXPECT_EQ(after.Reclaims().at(0).phase, ReclaimPhase::kReserved);
  FilterAnswer answer;
  const std::vector<std::string_view> names = {"n1", "n2"};
  after.Filter(Pod("a", "thief", 4, "train"), names, now_, answer);
  EXPECT_THAT(answer.chosen, IsEmpty());
  after.Filter(wants, names, now_, answer);
  EXPECT_THAT(answer.chosen, ElementsAre(1U));
  EXPECT_THAT(after.Audit(), IsEmpty());
}

// The right to write GPUReclaims is no right to have pods evicted.
TEST_F(Reclaiming, AForgedRecordEvictsNobodyTheRulesProtect) {
  DeclareTeams();
  const PodRequest own = Pod("a", "own", 8, "train"), wants = Pod("b", "wants", 8, "train");
  Run(own, "n1");
  Reclaim forged;
  forged.name = "forged";
  ReclaimVictim& victim = forged.victims.emplace_back();
  victim.pod = own.name;
  victim.uid = own.uid;
  victim.node = NodeName("n1");
  victim.owner = own.name.str();
  victim.leaf = "team-a";
  forged.planned_at = now_;
  struct Row {
    const char* name;
    ReclaimRule rule;
    const char* source;
    bool with_member;
  };
  for (const Row& row : {Row{"for a pod", ReclaimRule::kR1, "", true},
                         Row{"for a budget", ReclaimRule::kDrain, "team-a-day", false},
                         Row{"for a quota", ReclaimRule::kShrink, "team-b", false}}) {
    SCOPED_TRACE(row.name);
    forged.rule = row.rule;
    forged.source = row.source;
    forged.members.clear();
    if (row.with_member) forged.members = {{wants.name, wants.uid, NodeName("n1"), false}};
    Engine engine{EngineOptions{}};
    for (const auto& node : {StockNode("n1", 8), StockNode("n2", 8)}) engine.UpsertNode(node, now_);
    engine.SetPolicies(test::Declare({.quotas = TwoTeams(), .classes = Classes()}), Defaults(),
                       now_);
    for (const auto& [uid, pod] : running_) engine.UpsertPod(pod, now_);
    engine.UpsertPod(test::Pending(wants), now_);
    engine.RestoreReclaims({forged});
    engine.FinishRestore(now_);
    EXPECT_THAT(std::exchange(engine.effects().reclaims, {}).evictions, IsEmpty());
    EXPECT_EQ(engine.Reclaims().at(0).phase, ReclaimPhase::kAborted);
    EXPECT_THAT(engine.Audit(), IsEmpty());
  }
}

TEST_F(Reclaiming, ABudgetThatDrainsHasItsWorkEvicted) {
  std::vector<GpuClass> classes = Classes();
  classes[1].grace_period = std::chrono::seconds(120);
  Declare({.quotas = TwoTeams(),
           .budgets = {DayBudget("team-a", 8, OnExhaustion::kDrain)},
           .classes = classes});
  const PodRequest work = Pod("a", "work", 4, "train"), kept = Pod("a", "kept", 1, "serve");
  Run(work, "n1");
  Run(kept, "n1");
  EXPECT_EQ(Plan(), "");
  Pass(Minutes(100));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("Drain Evicting 0/1 for team-a-day from work"));
  ASSERT_EQ(evictions_.size(), 1U);
  EXPECT_EQ(evictions_[0].grace, std::chrono::seconds(120));
  EXPECT_EQ(EvictAll(), "work");
  Metered();
  Leave(work);
  EXPECT_THAT(Reclaims(), ElementsAre("Drain Done 1/1 for team-a-day from work"));
  EXPECT_THAT(Metered(), ElementsAre("close work.0 at 6000")) << "and gets no hours back";
}

struct ShrinkRow {
  const char* name;
  OnShrink on_shrink;
  const char* nominal;  // of what was 8, with 8 more borrowed and a borrowLimit of 4
  const char* expected;
};

TEST_F(Reclaiming, ALoweredQuotaTakesBackWhatItSays) {
  const ShrinkRow rows[] = {
      {"keep", OnShrink::kKeep, "4", "nobody"},
      {"reclaim leaves what may be borrowed", OnShrink::kReclaim, "4", "second"},
      {"drain leaves nominal", OnShrink::kDrain, "4", "third second first"},
  };
  for (const ShrinkRow& row : rows) {
    SCOPED_TRACE(row.name);
    Engine engine{EngineOptions{}};
    const auto teams = [&](const std::string& nominal) {
      return test::Declare(
          {.quotas = {Quota("org").Line("h100", "8"), Quota("team-a")
                                                          .Under("org")
                                                          .Owns("a")
                                                          .Line("h100", nominal, "4")
                                                          .OnShrunk(row.on_shrink)},
           .classes = Classes()});
    };
    Instant now = now_;
    engine.UpsertNode(StockNode("n1", 8), now);
    engine.UpsertNode(StockNode("n2", 8), now);
    engine.SetPolicies(teams("8"), Defaults(), now);
    const std::vector<std::string_view> names = {"n1", "n2"};
    for (const char* name : {"zeroth", "first", "second", "third"}) {
      now += Minutes(1);
      const PodRequest request = Pod("a", name, name == std::string("third") ? 2 : 3, "train");
      engine.UpsertPod(test::Pending(request), now);
      FilterAnswer answer;
      engine.Filter(request, names, now, answer);
      ASSERT_FALSE(answer.chosen.empty()) << name;
      const NodeName node{std::string(names[answer.chosen[0]])};
      const BindPlan plan = engine.Bind(request.name, request.uid, node, now);
      ASSERT_EQ(plan.kind, BindPlan::Kind::kWrite);
      engine.SettleBind(request.uid, node, BindOutcome::kBound, now);
      PodFacts pod = test::Bound(request, node.str(), plan.allocation);
      pod.evictable = true;
      pod.running_at = now;
      engine.UpsertPod(pod, now);
    }
    now += Minutes(1);
    engine.SetPolicies(teams(row.nominal), Defaults(), now);
    std::string evicted;
    for (int round = 0; round < 10; ++round) {
      engine.PlanNext(now);
      for (const EvictionOrder& order : std::exchange(engine.effects().reclaims, {}).evictions) {
        evicted += (evicted.empty() ? "" : " ") + order.pod.name;
        engine.SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, {}, now);
        engine.DeletePod(order.uid, now);
      }
    }
    std::set<std::string> found, expected;
    std::istringstream found_text(evicted.empty() ? "nobody" : evicted);
    std::istringstream expected_text(row.expected);
    for (std::string word; found_text >> word;) found.insert(word);
    for (std::string word; expected_text >> word;) expected.insert(word);
    EXPECT_EQ(found, expected);
  }
}

TEST_F(Reclaiming, WhatIfShowsThePlanAndChangesNothing) {
  DeclareTeams();
  Run(Pod("a", "own", 8, "train"), "n1");
  Pass(Minutes(1));
  Run(Pod("a", "lent", 4, "train"), "n2");
  Run(Pod("a", "more", 4, "train"), "n2");
  const std::string before = engine_.Digest();
  const std::vector<PodRequest> pods = {Pod("b", "one", 4, "train"), Pod("b", "two", 4, "train"),
                                        Pod("b", "three", 4, "train")};
  const std::vector<WhatIfResult> results = engine_.WhatIf(pods, now_);
  ASSERT_EQ(results.size(), 3U);
  ASSERT_EQ(results[0].victims.size(), 1U);
  ASSERT_EQ(results[1].victims.size(), 1U);
  EXPECT_NE(results[0].victims[0].pod.name, results[1].victims[0].pod.name);
  EXPECT_EQ(results[0].rule, ReclaimRule::kR1);
  EXPECT_TRUE(results[0].fits);
  EXPECT_FALSE(results[2].fits);
  EXPECT_EQ(results[0].node, NodeName("n2"));
  EXPECT_THAT(results[2].victims, IsEmpty()) << "it would borrow";
  EXPECT_EQ(engine_.Digest(), before);
  EXPECT_THAT(Reclaims(), IsEmpty());
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// ---- the preempt verb -------------------------------------------------------------------------

class Verb : public Reclaiming {
 protected:
  void SetUp() override {
    Reclaiming::SetUp();
    DeclareTeams();
    Run(Prioritized(Pod("a", "own", 8, "train"), 10), "n1");
    Pass(Minutes(1));
    Run(Prioritized(Pod("a", "lent", 4, "train"), 10), "n2");
    Run(Prioritized(Pod("a", "more", 4, "train"), 20), "n2");
  }
  static PodRequest Prioritized(PodRequest request, int priority) {
    request.priority = priority;
    return request;
  }
  std::string Ask(const PodRequest& request, std::vector<PreemptNode> nodes) {
    std::string text;
    for (const PreemptNode& node : engine_.Preempt(request, nodes, now_)) {
      text += (text.empty() ? "" : "; ") + node.node + ":";
      for (const PodUid& uid : node.victims) text += " " + uid.str();
      if (node.pdb_violations > 0) text += " pdb " + std::to_string(node.pdb_violations);
    }
    return text;
  }
};

TEST_F(Verb, VictimsAreHeldToTheRules) {
  const PodUid own("uid-own"), lent("uid-lent"), more("uid-more"), plain("uid-plain");
  PodFacts cpu;
  cpu.request = test::EmptyRequest("plain");
  cpu.node = NodeName("n2");
  engine_.UpsertPod(cpu, now_);
  struct Row {
    const char* name;
    int64_t gpus;
    std::vector<PreemptNode> asked;
    const char* expected;
  };
  const Row rows[] = {
      {"in-quota work of another team stays", 4, {{"n1", {own}, 0}}, ""},
      {"what is needed", 8, {{"n2", {more, lent}, 0}}, "n2: uid-more uid-lent"},
      {"what is not needed is let go", 4, {{"n2", {more, lent}, 0}}, "n2: uid-lent"},
      {"what was not named is added", 8, {{"n2", {lent}, 0}}, "n2: uid-more uid-lent"},
      {"an empty list is filled", 8, {{"n2", {}, 0}}, "n2: uid-more uid-lent"},
      {"pods that are gone are not named",
       8,
       {{"n2", {PodUid("gone"), lent, more}, 0}},
       "n2: uid-more uid-lent"},
      {"pods without GPUs stay named, and of theirs alone its count stands",
       8,
       {{"n2", {plain, more, lent}, 3}},
       "n2: uid-plain uid-more uid-lent pdb 1"},
      {"unknown nodes", 4, {{"n9", {lent}, 0}}, ""},
      {"both nodes", 4, {{"n1", {own}, 0}, {"n2", {lent, more}, 0}}, "n2: uid-lent"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(Ask(Pod("b", "wants", row.gpus, "train"), row.asked), row.expected);
  }
}

TEST_F(Verb, IsSilentWhileOurOwnPlanRuns) {
  const PodRequest wants = Pod("b", "wants", 8, "train");
  Try(wants);
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Ask(wants, {{"n2", {PodUid("uid-lent"), PodUid("uid-more")}, 0}}), "");
}

TEST_F(Verb, RoomThatKubeSchedulerMakesIsKeptForItsPod) {
  // It evicts by itself: nominates, then deletes.
  engine_.FinishRestore(now_);
  PodFacts wants = test::Pending(Pod("b", "wants", 4, "train"));
  wants.nominated = NodeName("n2");
  engine_.UpsertPod(wants, now_);
  PodFacts lent = running_.at(PodUid("uid-lent"));
  lent.terminating = true;
  lent.deletion_at = now_ + std::chrono::seconds(30);
  engine_.UpsertPod(lent, now_);
  engine_.DeletePod(lent.request.uid, now_);
  EXPECT_EQ(Try(Pod("a", "thief", 4, "train")), "NoRoom");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
  EXPECT_EQ(Filter(wants.request).size(), 1U);
  EXPECT_TRUE(Place(wants.request, "n2"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
