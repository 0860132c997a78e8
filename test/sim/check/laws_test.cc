// Checkers of quota, evictions, reasons and liveness, each shown its fault and the same
// story without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/check/scene.h"

namespace tranche::sim {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// org lends; red owns two GPUs and may borrow one, blue owns two.
void Teams(Scene& scene) {
  scene.StockNode("n1", 8).Quota("org", "", 0).Quota("red", "org", 2, 1).Quota("blue", "org", 2);
  scene.Namespace("red", "red").Namespace("blue", "blue");
  scene.Class("low", 1, "Always").Class("high", 3, "Always").Class("never", 3, "Never");
}

TEST(SimQuotas, NobodyGetsMoreThanItsTeamMayHave) {
  struct Row {
    const char* what;
    int first;  // of red
    int blue;
    int second;  // of red
    bool wrong;
  };
  const Row kRows[] = {{"within nominal", 1, 0, 1, false},
                       {"borrows what is idle", 2, 0, 1, false},
                       {"borrows beyond its limit", 2, 0, 2, true},
                       {"borrows what is in use", 2, 2, 1, true}};
  for (const Row& row : kRows) {
    Scene scene;
    Teams(scene);
    scene.Pod("red/one", row.first).Pod("blue/one", row.blue).Pod("red/two", row.second);
    scene.At(10).Bind("red/one", "n1", Cards(0, row.first), "red");
    if (row.blue > 0) scene.Bind("blue/one", "n1", Cards(3, row.blue), "blue");
    scene.At(20).Bind("red/two", "n1", Cards(5, row.second), "red");
    EXPECT_EQ(scene.Found().contains("quotas"), row.wrong) << row.what << "\n" << scene.Texts();
  }
}

TEST(SimQuotas, AnEditCountsOnceItCouldBeKnown) {
  for (const bool known : {false, true}) {
    Scene scene;
    Teams(scene);
    scene.Pod("red/one", 2);
    scene.At(10).Quota("red", "org", 0, 0);
    scene.At(known ? 20 : 11).Bind("red/one", "n1", Cards(0, 2), "red");
    EXPECT_EQ(scene.Found().contains("quotas"), known) << scene.Texts();
  }
}

// red is called crimson from some moment on, and its namespace goes to blue: what ran there was
// crimson's by then, and stays so. Where the edits are close, nobody can tell which came first.
TEST(SimQuotas, WhatRunsIsItsQuotasThoughThatGetsAnotherName) {
  struct Row {
    const char* what;
    double renamed, moved;
    const char* asks;  // for two GPUs, at 50
    bool wrong;
  };
  const Row kRows[] = {
      {"blue's room is its own", 20, 40, "blue", false},
      {"crimson has used its nominal", 20, 40, "crimson", true},
      {"its namespace went a moment later", 20, 21, "crimson", false},
      {"its namespace went a moment before", 21, 20, "blue", false},
  };
  for (const Row& row : kRows) {
    Scene scene;
    Teams(scene);
    scene.Leads(kLeader, 1).Quota("red", "org", 2, 0).Quota("blue", "org", 2, 0);
    scene.Pod("red/one", 2).Pod("other/two", 2);
    scene.At(10).Bind("red/one", "n1", Cards(0, 2), "red");
    const auto rename = [&] {
      scene.At(row.renamed).Remove("gpuquotas", "red").Quota("crimson", "org", 2, 0);
      scene.Edit("gpuquotas", "crimson", "/spec/namespaceSelector/matchLabels/team", "red");
    };
    const auto move = [&] { scene.At(row.moved).Namespace("red", "blue"); };
    if (row.renamed < row.moved) rename();
    move();
    if (row.renamed > row.moved) rename();
    scene.At(50).Bind("other/two", "n1", Cards(2, 2), row.asks);
    EXPECT_EQ(scene.Found().contains("quotas"), row.wrong) << row.what << "\n" << scene.Texts();
  }
}

// Another machine has taken its node's name.
TEST(SimQuotas, WhatRunsIsChargedAsTheMachineItWasGiven) {
  constexpr const char* kOther = "NVIDIA-A100-SXM4-80GB";
  for (const bool same : {false, true}) {
    Scene scene;
    Teams(scene);
    scene.Quota("red", "org", 2, 0).StockNode("n2", 8, same ? "NVIDIA-H100-80GB-HBM3" : kOther);
    scene.Pod("red/one", 2).Pod("red/two", 2);
    scene.At(10).Bind("red/one", "n2", Cards(0, 2), "red").At(20).StockNode("n2", 8);
    scene.At(100).Bind("red/two", "n1", Cards(0, 2), "red");
    EXPECT_EQ(scene.Found().contains("quotas"), same) << scene.Texts();
  }
}

TEST(SimQuotas, AnObservingTeamIsNotHeld) {
  Scene scene;
  Teams(scene);
  scene.Edit("gpuquotas", "red", "/spec/mode", "Observe").Pod("red/one", 8);
  scene.At(20).Bind("red/one", "n1", Cards(0, 8), "red");
  EXPECT_THAT(scene.Found(), IsEmpty()) << scene.Texts();
}

// blue/wants is in blue's nominal; red/old holds red's, red/new is borrowed.
void Borrowing(Scene& scene) {
  Teams(scene);
  scene.Pod("red/old", 2).Pod("red/new", 1).Pod("blue/wants", 2);
  scene.At(10).Bind("red/old", "n1", Cards(0, 2), "red");
  scene.At(20).Bind("red/new", "n1", Cards(2, 1), "red");
}

TEST(SimEvictions, OnlyWhatIsBorrowedGoesForAnotherTeam) {
  for (const char* const victim : {"red/new", "red/old"}) {
    Scene scene;
    Borrowing(scene);
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {victim}).Evict(victim);
    const bool in_quota = std::string(victim) == "red/old";
    EXPECT_EQ(scene.Found().contains("evictions"), in_quota) << scene.Texts();
  }
}

// What counted for a quota that is gone fills the nominal of the one that took it over.
TEST(SimEvictions, WhatCameFromAQuotaThatIsGoneFillsItsHeirsNominal) {
  for (const bool renamed : {true, false}) {
    Scene scene;
    Teams(scene);
    scene.Leads(kLeader, 1).Quota("was-red", "org", 2).Namespace("red", "was-red");
    scene.Pod("red/old", 2).Pod("red/new", 1).Pod("blue/wants", 2);
    scene.At(10).Bind("red/old", "n1", Cards(0, 2), "was-red");
    scene.At(20).Namespace("red", "red");
    if (renamed) scene.Remove("gpuquotas", "was-red");
    scene.At(30).Bind("red/new", "n1", Cards(2, 1), "red");
    scene.At(100).Reclaim("r1", "R3", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    EXPECT_EQ(scene.Found().contains("evictions"), !renamed) << scene.Texts();
  }
}

// Two borrowed in its place: red has its nominal without it.
TEST(SimEvictions, WhatATeamCanSpareMayBeChosenByR1Alone) {
  for (const char* const rule : {"R1", "R3"}) {
    Scene scene;
    Borrowing(scene);
    scene.Pod("red/more", 1);
    scene.At(30).Bind("red/more", "n1", Cards(3, 1), "red");
    scene.At(100).Reclaim("r1", rule, "blue", "blue/wants", "n1", {"red/old"}).Evict("red/old");
    EXPECT_EQ(scene.Found().contains("evictions"), std::string(rule) == "R3") << scene.Texts();
  }
}

TEST(SimEvictions, WhatTakesMemoryAloneTakesAsMuchOfTheComputeOfItsQuota) {
  Scene scene;
  Teams(scene);
  scene.Pod("red/cores", 1).Pod("red/memory", 2).Pod("blue/wants", 2);
  scene.At(10).Bind("red/cores", "n1", {{"GPU-0", 700, 0}}, "red");
  scene.At(20).Bind("red/memory", "n1", {{"GPU-1", 0, 80'000}, {"GPU-2", 0, 40'000}}, "red");
  scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/memory"}).Evict("red/memory");
  EXPECT_THAT(scene.Found(), IsEmpty()) << scene.Texts();
}

TEST(SimEvictions, WhatWasBorrowedAMomentAgoMayGo) {
  Scene scene;
  Borrowing(scene);
  scene.At(99).End("red/old");
  scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
  EXPECT_THAT(scene.Found(), IsEmpty()) << scene.Texts();
}

// The product may have heard of an end or not: a pod that is gone may have kept others out of the
// nominal that fill it now. What changes later says nothing of that moment.
TEST(SimEvictions, EachMomentThatTheProductMayHaveSeenCounts) {
  struct Row {
    const char* what;
    int ended_at;
    int pair;  // GPUs of the second of three; the last goes, 75 seconds may be late
    bool wrong;
  };
  const Row kRows[] = {{"the second fills the nominal since the first ended", 50, 2, false},
                       {"the first filled it with the second until it ended", 50, 1, false},
                       {"all that is there fits, for longer than news takes", 20, 1, true}};
  for (const Row& row : kRows) {
    Scene scene({.lag = std::chrono::seconds(75)});
    Teams(scene);
    scene.Pod("red/first", 1).Pod("red/second", row.pair).Pod("red/last", 1).Pod("blue/wants", 2);
    scene.At(10).Bind("red/first", "n1", Cards(0, 1), "red");
    scene.At(12).Bind("red/second", "n1", Cards(1, row.pair), "red");
    scene.At(14).Bind("red/last", "n1", Cards(3, 1), "red");
    scene.At(row.ended_at).End("red/first");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/last"}).Evict("red/last");
    scene.At(200).StockNode("n1", 8, "Tesla-T4").Quota("red", "org", row.wrong ? 0 : 9);
    EXPECT_EQ(scene.Found().contains("evictions"), row.wrong) << row.what << "\n" << scene.Texts();
  }
}

TEST(SimEvictions, WhatAnotherSchedulerPlacedCountsForItsTeam) {
  for (const int theirs : {2, 1}) {
    Scene scene;
    Teams(scene);
    scene.Leads(kLeader, 1);
    scene.Pod("red/theirs", theirs).Pod("red/ours", 1).Pod("blue/wants", 2);
    scene.At(10).Edit("pods", "red/theirs", "/spec/nodeName", "n1", "stranger");
    scene.At(20).Bind("red/ours", "n1", Cards(2, 1), "red");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/ours"}).Evict("red/ours");
    EXPECT_EQ(scene.Found().contains("evictions"), theirs == 1) << scene.Texts();
  }
}

// red/gang was there first: its room was kept before red/new ran, which is beyond the nominal then.
TEST(SimEvictions, RoomThatIsKeptCountsForItsTeam) {
  for (const char* const who : {kLeader, "kube-gpu-scheduler/1"}) {
    for (const bool comes : {true, false}) {
      Scene scene;
      Teams(scene);
      scene.Pod("red/gang", 2).Pod("red/new", 1).Pod("blue/wants", 2);
      scene.At(10).Edit("pods", "red/gang", "/status/nominatedNodeName", "n1", who);
      scene.At(20).Bind("red/new", "n1", Cards(2, 1), "red");
      if (comes) scene.At(90).Bind("red/gang", "n1", Cards(0, 2), "red");
      scene.At(100).Reclaim("r1", "R5", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
      EXPECT_EQ(scene.Found().contains("evictions"), who != std::string(kLeader))
          << who << comes << scene.Texts();
    }
  }
}

// What was made for blue/wants on n1 goes to nobody else while it waits.
TEST(SimEvictions, RoomThatWasMadeGoesToWhomItWasMadeFor) {
  const struct {
    const char* what;
    const char* phase;
    std::optional<double> binds_elsewhere;
    bool wrong;
  } rows[] = {{"it never comes", "Reserved", {}, true},
              {"it comes elsewhere later", "Reserved", 122, true},
              {"it was about to be bound elsewhere", "Reserved", 120.5, false},
              {"its reclaim has ended", "Aborted", {}, false}};
  for (const auto& row : rows) {
    Scene scene;
    scene.StockNode("n1", 1).StockNode("n2", 1).Pod("blue/wants", 1).Pod("red/new", 1);
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {}, row.phase);
    scene.At(120).Bind("red/new", "n1", Cards(0, 1));
    if (row.binds_elsewhere) scene.At(*row.binds_elsewhere).Bind("blue/wants", "n2", Cards(1, 1));
    EXPECT_EQ(scene.Found().contains("evictions"), row.wrong) << row.what << scene.Texts();
  }
}

// What one leader had reserved for red/new, another that found no node of it has not.
TEST(SimEvictions, ABindThatANewLeaderFoundUndoneBeginsAnew) {
  for (const bool anew : {false, true}) {
    Scene scene;
    Teams(scene);
    scene.Pod("red/old", 2).Pod("red/new", 1).Pod("blue/wants", 2).Leads(kLeader, 1);
    const auto ask = [&](const char* verb, Json answer) {
      scene.Say({.kind = Happening::Kind::kAsked,
                 .key = "red/new",
                 .text = verb,
                 .after = std::move(answer)});
    };
    scene.At(10);
    ask("filter", Json::object());
    ask("bind", Json());
    scene.At(20).Bind("red/old", "n1", Cards(0, 2), "red").At(30);
    if (anew) scene.Leads("tranche-0/2", 2);
    scene.At(40);
    ask("filter", Json::object());
    scene.Bind("red/new", "n1", Cards(2, 1), "red", kLeader, anew ? 2 : 1);
    scene.At(100).Reclaim("r1", "R5", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    EXPECT_EQ(scene.Found().contains("evictions"), !anew) << scene.Texts();
  }
}

TEST(SimEvictions, APlanNamesTheVictim) {
  Scene scene;
  Borrowing(scene);
  scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {}).Evict("red/new");
  EXPECT_THAT(scene.Found(), ElementsAre("evictions")) << scene.Texts();
}

TEST(SimEvictions, ARecordThatCouldNotBeWrittenMayEndWithItsWriter) {
  struct Row {
    const char* what;
    int failures;  // rate of the API server's
    double ended;
    bool wrong;
  };
  const Row kRows[] = {{"before the next tries", 1, 130, false},
                       {"after them", 1, 140, true},
                       {"every write is taken", 0, 105, true}};
  for (const Row& row : kRows) {
    CheckOptions options;
    options.faults.rates[static_cast<int>(Fault::kApiServer)] = row.failures;
    Scene scene(std::move(options));
    Borrowing(scene);
    scene.At(100).Evict("red/new");
    scene.At(row.ended).Say({.kind = Happening::Kind::kEnded, .who = kLeader});
    EXPECT_EQ(scene.Found().contains("evictions"), row.wrong) << row.what << scene.Texts();
  }
}

TEST(SimEvictions, ClassesAndGuardsAreKept) {
  struct Row {
    const char* preemptible;
    const char* min_runtime;
    bool restarts;  // in place, 25 s before it is evicted
    bool wrong;
  };
  const Row kRows[] = {{"Always", "30s", false, false},
                       {"Always", "30s", true, false},
                       {"Always", "30m", false, true},
                       {"Never", "0s", false, true}};
  for (const Row& row : kRows) {
    Scene scene;
    Borrowing(scene);
    scene.Class("work", 2, row.preemptible, row.min_runtime);
    scene.Edit("pods", "red/new", "/spec/priorityClassName", "work");
    for (const char* const at : {"2026-03-02T00:00:25Z", "2026-03-02T00:01:15Z"}) {
      scene.Edit("pods", "red/new", "/status/containerStatuses",
                 Json::array({{{"state", {{"running", {{"startedAt", at}}}}}}}), "kubelet");
      if (!row.restarts) break;
    }
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    EXPECT_EQ(scene.Found().contains("evictions"), row.wrong)
        << row.preemptible << row.min_runtime << scene.Texts();
  }
}

// Late news of when it began to run are no excuse: it was bound before.
TEST(SimEvictions, ATeamsWorkIsLeftAloneAtFirst) {
  for (const bool long_there : {false, true}) {
    CheckOptions late;
    late.lag = std::chrono::seconds(75);
    Scene scene(late);
    Teams(scene);
    scene.Leads(kLeader, 1).Edit("gpuquotas", "red", "/spec/reclaim", {{"minRuntime", "30s"}});
    scene.Pod("red/one", 2).Pod("red/two", 1).Pod("blue/wants", 2);
    scene.At(100).Bind("red/one", "n1", Cards(0, 2), "red");
    scene.At(200).Say({.kind = Happening::Kind::kAsked, .key = "red/two", .text = "filter"});
    scene.Bind("red/two", "n1", Cards(2, 1), "red");
    scene.At(long_there ? 240 : 220).Reclaim("r", "R1", "blue", "blue/wants", "n1", {"red/two"});
    scene.Evict("red/two").At(1000);
    EXPECT_EQ(scene.Found().contains("evictions"), !long_there) << scene.Texts();
  }
}

TEST(SimEvictions, WhatWasMadeFreeIsKept) {
  for (const char* const taker : {"blue/wants", "blue/other"}) {
    Scene scene;
    scene.StockNode("n1", 2).Pod("red/new", 2).Pod("blue/wants", 2).Pod("blue/other", 1);
    scene.At(10).Bind("red/new", "n1", Cards(0, 2));
    scene.At(100).Reclaim("r1", "R1", "", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    scene.At(110).End("red/new");
    scene.Reclaim("r1", "R1", "", "blue/wants", "n1", {"red/new"}, "Reserved");
    const bool other = std::string(taker) == "blue/other";
    scene.At(120).Bind(taker, "n1", Cards(0, other ? 1 : 2));
    EXPECT_EQ(scene.Found().contains("evictions"), other) << scene.Texts();
  }
}

TEST(SimEvictions, WhatOthersTookAMomentAgoWasNotKnownToBeTaken) {
  for (const bool known : {false, true}) {
    Scene scene;
    scene.StockNode("n1", 4).Pod("blue/wants", 2).Pod("blue/other", 1).Pod("a/theirs", 2);
    scene.At(90).Reclaim("r1", "R1", "", "blue/wants", "n1", {}, "Reserved");
    scene.At(known ? 100 : 119).Edit("pods", "a/theirs", "/spec/nodeName", "n1", "stranger");
    scene.At(120).Bind("blue/other", "n1", Cards(0, 1));
    EXPECT_EQ(scene.Found().contains("evictions"), known) << scene.Texts();
  }
}

// The leader's API: the pods' entries as given, and one verdict for every explain.
Ask Answers(Json pods, Json verdict) {
  return [pods = std::move(pods),
          verdict = std::move(verdict)](const std::string& target) -> std::optional<Json> {
    if (target == "/api/v1/pods") return Json{{"pods", pods}};
    return Json{{"nodes", Json::array({verdict})}};
  };
}
Json Entry(const char* name, const char* state, Json node = nullptr) {
  return {{"namespace", "a"},
          {"name", name},
          {"uid", std::string("u-a/") + name},
          {"state", state},
          {"node", std::move(node)}};
}
Json Verdict(bool fits, const char* code) {
  return {{"name", "n1"}, {"fits", fits}, {"reason", fits ? Json() : Json{{"code", code}}}};
}

TEST(SimReasons, WhatExplainSaysIsTrue) {
  struct Row {
    int gpus;  // of the node, of which one is taken
    Json verdict;
    bool wrong;
  };
  const Row kRows[] = {{1, Verdict(false, "NoRoom"), false},
                       {1, Verdict(true, ""), true},
                       {2, Verdict(true, ""), false},
                       {2, Verdict(false, "NoRoom"), true},
                       {2, Verdict(false, "NodeUnstable"), false}};
  for (const Row& row : kRows) {
    Scene scene;
    scene.StockNode("n1", row.gpus).Pod("a/one", 1).Pod("a/two", 1);
    scene.Bind("a/one", "n1", Cards(0, 1));
    EXPECT_EQ(scene.Found(Answers(Json::array(), row.verdict)).contains("reasons"), row.wrong)
        << row.gpus << row.verdict.dump() << scene.Texts();
  }
}

struct Books {
  const char* what;
  int gpus;
  Json one, two;
  bool wrong;
};

TEST(SimLiveness, WhoFitsRunsAndTheBooksAreTheClusters) {
  const Json kBound = Entry("one", "bound", "n1");
  const Books kRows[] = {
      {"full, and so one waits", 1, kBound, Entry("two", "pending"), false},
      {"there is room", 2, kBound, Entry("two", "pending"), true},
      {"reserved for ever", 1, kBound, Entry("two", "reserved", "n1"), true},
      {"the books lack a pod", 1, Entry("two", "pending"), Entry("two", "pending"), true},
      {"the books have it elsewhere", 1, Entry("one", "bound", "n2"), Entry("two", "pending"),
       true},
      {"the books have it waiting", 1, Entry("one", "pending"), Entry("two", "pending"), true},
      {"the books have a ghost", 1, kBound, Entry("three", "bound", "n1"), true},
  };
  for (const Books& row : kRows) {
    Scene scene;
    scene.StockNode("n1", row.gpus).Pod("a/one", 1).Pod("a/two", 1);
    scene.At(10).Bind("a/one", "n1", Cards(0, 1)).At(20).Quiet().At(620);
    const Ask ask = Answers(Json::array({row.one, row.two}), Verdict(false, "NodeUnstable"));
    EXPECT_EQ(scene.Found(ask).contains("liveness"), row.wrong) << row.what << scene.Texts();
  }
}

TEST(SimLiveness, WhatAnotherSchedulerLeavesWaitingIsItsOwn) {
  const Ask ask = Answers(Json::array({Entry("two", "pending")}), Verdict(false, "NodeUnstable"));
  for (const bool ours : {true, false}) {
    Scene scene;
    scene.Say({.kind = Happening::Kind::kStarted, .who = "kube-gpu-scheduler/1"});
    scene.StockNode("n1", 1).Pod("a/two", 1);
    scene.Edit("pods", "a/two", "/spec/schedulerName", ours ? "gpu-scheduler" : "another");
    scene.At(20).Quiet().At(620);
    EXPECT_EQ(scene.Found(ask).contains("liveness"), ours) << scene.Texts();
  }
}

TEST(SimLiveness, NobodyIsPokedInCirclesOrTerminatingForEver) {
  const Ask ask = Answers(Json::array({Entry("one", "bound", "n1")}), Verdict(false, "NoRoom"));
  struct Row {
    int pokes;
    bool leaves;
    bool wrong;
  };
  const Row kRows[] = {{3, false, false}, {100, false, true}, {0, true, true}};
  for (const Row& row : kRows) {
    Scene scene;
    scene.StockNode("n1", 1).Pod("a/one", 1).Pod("a/two", 1).Bind("a/one", "n1", Cards(0, 1));
    if (row.leaves) scene.Evict("a/one", "user");
    scene.At(20).Quiet();
    for (int i = 0; i < row.pokes; ++i) {
      scene.At(30 + i).Edit("pods", "a/two", "/status/conditions", Json::array({i}), kLeader);
    }
    scene.At(620);
    EXPECT_EQ(scene.Found(ask).contains("liveness"), row.wrong) << row.pokes << scene.Texts();
  }
}

TEST(SimLiveness, SomebodyLeads) {
  Scene scene;
  scene.Quiet().At(600);
  EXPECT_THAT(scene.Found([](const std::string&) { return std::nullopt; }),
              ElementsAre("liveness"));
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
