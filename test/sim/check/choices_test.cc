// Which work of a team that borrows R1 may choose, as the checker of evictions judges it, and what
// a process knows of its own binds, as that of quotas does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "test/sim/check/scene.h"

namespace tranche::sim {
namespace THIS_FILE {

void TwoTeams(Scene& scene) {
  scene.StockNode("n1", 8).Quota("org", "", 0).Quota("red", "org", 2, 1).Quota("blue", "org", 2);
  scene.Namespace("red", "red").Namespace("blue", "blue");
  scene.Class("low", 1, "Always").Class("high", 3, "Always");
}

TEST(SimQuotas, AProcessKnowsWhatItPromisedBefore) {
  struct Row {
    const char* what;
    std::vector<std::string> promised;  // at 9; two is bound at 11, when one has taken all there is
    const char* who;                    // binds one, at 10
    bool wrong;
  };
  const Row kRows[] = {
      {"one came first", {"red/one", "red/two"}, kLeader, true},
      {"two came first", {"red/two", "red/one"}, kLeader, false},
      {"one is another's, of which nobody may have heard", {"red/two"}, "tranche-2/1", false}};
  for (const Row& row : kRows) {
    Scene scene({.lag = std::chrono::seconds(2)});
    TwoTeams(scene);
    scene.Pod("red/one", 2).Pod("red/two", 2);
    for (const std::string& pod : row.promised) scene.At(9).Promise(pod);
    scene.At(10).Bind("red/one", "n1", Cards(0, 2), "red", row.who);
    scene.At(11).Bind("red/two", "n1", Cards(2, 2), "red");
    EXPECT_EQ(scene.Found().contains("quotas"), row.wrong) << row.what << "\n" << scene.Texts();
  }
}

// A budget that was used up takes the nominal away, also one that somebody removed later.
TEST(SimEvictions, WithABudgetThatDemotesNobodyCanTellWhatIsInQuota) {
  struct Row {
    const char* what;
    const char* quota;
    const char* exhausted;
    double removed;  // the eviction is at 100
    bool wrong;
  };
  const Row kRows[] = {{"of the team", "red", "Demote", 200, false},
                       {"of all", "org", "Demote", 200, false},
                       {"gone before", "red", "Demote", 50, true},
                       {"of another team", "blue", "Demote", 200, true},
                       {"one that lets nobody in", "red", "Block", 200, true}};
  for (const Row& row : kRows) {
    Scene scene;
    TwoTeams(scene);
    scene.Pod("red/old", 2).Pod("red/new", 1).Pod("blue/wants", 2);
    scene.At(10).Bind("red/old", "n1", Cards(0, 2), "red");
    scene.At(20).Bind("red/new", "n1", Cards(2, 1), "red");
    const Json spec = {{"quotaRef", row.quota}, {"onExhaustion", row.exhausted}};
    scene.Write("gpubudgets", "hours", {{"metadata", {{"name", "hours"}}}, {"spec", spec}});
    if (row.removed < 100) scene.At(row.removed).Remove("gpubudgets", "hours");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/old"}).Evict("red/old");
    if (row.removed > 100) scene.At(row.removed).Remove("gpubudgets", "hours");
    EXPECT_EQ(scene.Found().contains("evictions"), row.wrong) << row.what << scene.Texts();
  }
}

// Both of red hold two by the ledger; the bind of the younger one failed, which nobody heard of
// yet.
TEST(SimEvictions, APlaceInTheLedgerIsAPlaceWhateverCameOfItsBind) {
  for (const double closed : {150.0, 50.0}) {
    Scene scene;
    TwoTeams(scene);
    scene.Pod("red/old", 2).Pod("red/new", 2).Pod("blue/wants", 2);
    scene.At(10).Bind("red/old", "n1", Cards(0, 2), "red");
    scene.At(20).Promise("red/new");
    if (closed < 100) scene.At(closed).Promise("red/new", "void");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/old"}).Evict("red/old");
    if (closed > 100) scene.At(closed).Promise("red/new", "void");
    EXPECT_EQ(scene.Found().contains("evictions"), closed < 100) << scene.Texts();
  }
}

// Room for two of the team's h100 was kept for red/kept, which was bound to another model in the
// end.
TEST(SimEvictions, RoomThatWasKeptCountsAsWhatItWas) {
  for (const bool kept : {true, false}) {
    Scene scene;
    TwoTeams(scene);
    scene.StockNode("n2", 8, "NVIDIA-A100-SXM4-80GB");
    scene.Pod("red/kept", 2).Pod("red/late", 1).Pod("blue/wants", 2);
    if (kept) scene.At(10).Edit("pods", "red/kept", "/status/nominatedNodeName", "n1", kLeader);
    scene.At(20).Bind("red/late", "n1", Cards(2, 1), "red");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/late"}).Evict("red/late");
    scene.At(110).Bind("red/kept", "n2", Cards(0, 2), "red");
    EXPECT_EQ(scene.Found().contains("evictions"), !kept) << scene.Texts();
  }
}

// Without red/one its two of a lower class are in quota. With what comes of a higher class they are
// not, as soon as that was let in, and it is bound later.
TEST(SimEvictions, WhatIsLetInAfterwardsFilledNoQuotaBefore) {
  for (const int let_in : {101, 95}) {
    Scene scene({.lag = std::chrono::seconds(2)});
    TwoTeams(scene);
    scene.Pod("red/one", 1).Pod("red/two", 2).Pod("red/late", 1).Pod("blue/wants", 2);
    scene.Edit("pods", "red/one", "/spec/priorityClassName", "high");
    scene.Edit("pods", "red/two", "/spec/priorityClassName", "low");
    scene.Edit("pods", "red/late", "/spec/priorityClassName", "high");
    scene.At(10).Bind("red/one", "n1", Cards(0, 1), "red");
    scene.At(20).Bind("red/two", "n1", Cards(1, 2), "red");
    const auto let = [&] {
      scene.At(let_in).Say({.kind = Happening::Kind::kAsked,
                            .key = "red/late",
                            .text = "filter",
                            .after = Json::object()});
    };
    if (let_in < 100) let();
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/one"}).Evict("red/one");
    if (let_in > 100) let();
    scene.At(103).Bind("red/late", "n1", Cards(3, 1), "red");
    EXPECT_EQ(scene.Found().contains("evictions"), let_in < 100) << scene.Texts();
  }
}

// Those of no team, and a team's own that borrow, take what is borrowed alone; red/old is not.
TEST(SimEvictions, WhatIsInQuotaGivesWayToNobodyWhoBorrows) {
  const struct {
    const char* rule;
    const char* leaf;  // of the preemptor
    const char* victim;
    bool found;
  } cases[] = {
      {"R0", "", "red/new", false},     {"R0", "", "red/old", true},
      {"R2b", "red", "red/new", false}, {"R2b", "red", "red/old", true},
      {"R2a", "red", "red/old", false},  // its own, more important work may
  };
  for (const auto& row : cases) {
    Scene scene({.lag = std::chrono::seconds(2)});
    TwoTeams(scene);
    scene.Pod("red/old", 2).Pod("red/new", 1).Pod("blue/wants", 2);
    scene.At(10).Bind("red/old", "n1", Cards(0, 2), "red");
    scene.At(20).Bind("red/new", "n1", Cards(2, 1), "red");
    scene.At(100).Reclaim("r1", row.rule, row.leaf, "blue/wants", "n1", {row.victim});
    scene.Evict(row.victim);
    EXPECT_EQ(scene.Found().contains("evictions"), row.found)
        << row.rule << " " << row.victim << "\n"
        << scene.Texts();
  }
}

// Its agent tells of more memory than the node's label: half a card is half of that.
TEST(SimQuotas, APartIsOfTheMemoryThatTheAgentTellsOf) {
  for (const bool told : {true, false}) {
    Scene scene;
    scene.StockNode("n1", 1).Quota("org", "", 0).Quota("red", "org", 1).Namespace("red", "red");
    const Json cards = Json::array({{{"id", "GPU-0"}, {"devmem", 88'000}}});
    if (told) {
      scene.Edit("nodes", "n1", "/metadata/annotations/hami.io~1node-nvidia-register",
                 cards.dump());
    }
    scene.Pod("red/one", 1).Pod("red/two", 1);
    scene.At(10).Bind("red/one", "n1", {{"GPU-0", 500, 44'000}}, "red");
    scene.At(100).Bind("red/two", "n1", {{"GPU-0", 500, 44'000}}, "red");
    EXPECT_EQ(scene.Found().contains("quotas"), !told) << scene.Texts();
  }
}

// What came a moment ago is counted too, where news may take long.
TEST(SimEvictions, NewsMayBeHeardAtOnce) {
  for (const int gpus : {2, 1}) {
    Scene scene({.lag = std::chrono::seconds(60)});
    TwoTeams(scene);
    scene.Pod("red/old", gpus).Pod("red/new", 1).Pod("blue/wants", 2);
    scene.At(80).Bind("red/old", "n1", Cards(0, gpus), "red");
    scene.At(90).Bind("red/new", "n1", Cards(2, 1), "red");
    scene.At(100).Reclaim("r1", "R3", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    EXPECT_EQ(scene.Found().contains("evictions"), gpus == 1) << scene.Texts();
  }
}

// A node that has become smaller has no room left that could be kept.
TEST(SimEvictions, RoomThatHasGoneIsGivenToNobody) {
  for (const int gpus : {4, 3}) {
    Scene scene;
    scene.StockNode("n1", 4).Pod("a/small", 1).Pod("a/new", 3).Pod("b/wants", 3).Pod("b/other", 1);
    scene.At(5).Bind("a/small", "n1", Cards(0, 1)).Bind("a/new", "n1", Cards(1, 3));
    scene.At(100).Reclaim("r1", "R1", "", "b/wants", "n1", {"a/new"}).Evict("a/new");
    scene.At(110).End("a/new").Reclaim("r1", "R1", "", "b/wants", "n1", {"a/new"}, "Reserved");
    scene.At(115).StockNode("n1", gpus);
    scene.At(120).Bind("b/other", "n1", Cards(1, 1));
    EXPECT_EQ(scene.Found().contains("evictions"), gpus == 4) << scene.Texts();
  }
}

// Once red/leaves is gone red/two fills the nominal, if red/one goes as well. As long as it stays
// red/one is in quota, and red/two is not without it.
TEST(SimEvictions, WhatLeavesIsCountedOrNot) {
  for (const bool leaves : {true, false}) {
    Scene scene({.lag = std::chrono::seconds(2)});
    TwoTeams(scene);
    scene.Pod("red/leaves", 1).Pod("red/one", 1).Pod("red/two", 2).Pod("blue/wants", 2);
    scene.Edit("pods", "red/two", "/spec/priorityClassName", "low");
    scene.At(10).Bind("red/leaves", "n1", Cards(0, 1), "red");
    scene.At(20).Bind("red/one", "n1", Cards(1, 1), "red");
    scene.At(30).Bind("red/two", "n1", Cards(2, 2), "red");
    if (leaves) scene.At(50).Evict("red/leaves", "user");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/one"}).Evict("red/one");
    EXPECT_EQ(scene.Found().contains("evictions"), !leaves) << scene.Texts();
  }
}

// A gang of two models that finds no room on one of them fills the other all the same: of three
// H100, red/small has the only T4, and the gang and red/mid have the H100.
TEST(SimEvictions, QuotaIsFilledLineByLine) {
  const struct {
    const char* rule;
    const char* victim;
    bool found;
  } cases[] = {
      {"R3", "red/new", false},                               // a fourth H100
      {"R3", "red/mid", true},                                // the third
      {"R1", "red/mid", false},                               // red/new takes its place
      {"R3", "red/small", true}, {"R1", "red/small", false},  // the gang takes its place
  };
  for (const auto& row : cases) {
    Scene scene({.lag = std::chrono::seconds(2)});
    TwoTeams(scene);
    scene.StockNode("t1", 8, "Tesla-T4");
    scene.Edit("gpuquotas", "red", "/spec/lines",
               {{{"model", "h100"}, {"nominal", {{"gpus", "3"}}}},
                {{"model", "t4"}, {"nominal", {{"gpus", "1"}}}}});
    const Json gang = {{"tranche.dev/gang", "g"}};
    scene.Pod("red/small", 1).Pod("red/g-0", 2, gang).Pod("red/g-1", 1, gang);
    scene.Pod("red/mid", 1).Pod("red/new", 1).Pod("blue/wants", 1);
    scene.At(10).Bind("red/small", "t1", Cards(10, 1), "red");
    scene.At(20).Bind("red/g-0", "n1", Cards(0, 2), "red");
    scene.At(20).Bind("red/g-1", "t1", Cards(11, 1), "red");
    scene.At(30).Bind("red/mid", "n1", Cards(2, 1), "red");
    scene.At(40).Bind("red/new", "n1", Cards(3, 1), "red");
    scene.At(100).Reclaim("r1", row.rule, "blue", "blue/wants", "n1", {row.victim});
    scene.Evict(row.victim);
    EXPECT_EQ(scene.Found().contains("evictions"), row.found)
        << row.rule << " " << row.victim << "\n"
        << scene.Texts();
  }
}

// The filter verb, answered.
void Asked(Scene& scene, const std::string& pod) {
  scene.Say({.kind = Happening::Kind::kAsked,
             .who = "kube-gpu-scheduler/1",
             .key = pod,
             .text = "filter",
             .after = Json{{"Error", ""}}});
}

// Two kube-schedulers: red/new was asked about first, and bound and charged last.
TEST(SimEvictions, WhoWasChargedFirstFillsTheNominal) {
  for (const bool in_turn : {false, true}) {
    Scene scene;
    TwoTeams(scene);
    scene.Pod("red/old", 1).Pod("red/new", 2).Pod("blue/wants", 1);
    scene.At(10);
    Asked(scene, "red/new");
    scene.At(10.01);
    Asked(scene, "red/old");
    scene.At(10.02).Promise(in_turn ? "red/new" : "red/old");
    scene.At(10.03).Promise(in_turn ? "red/old" : "red/new");
    scene.At(10.1).Bind("red/old", "n1", Cards(0, 1), "red");
    scene.At(10.2).Bind("red/new", "n1", Cards(1, 2), "red");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    scene.At(200);
    EXPECT_EQ(scene.Found().contains("evictions"), in_turn) << scene.Texts();
  }
}

TEST(SimEvictions, ACardThatFellOffAMomentAgoWasNotKnownToBeGone) {
  for (const bool known : {false, true}) {
    Scene scene({.lag = std::chrono::seconds(5)});
    scene.StockNode("n1", 2).Pod("blue/wants", 1).Pod("red/new", 1);
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {}, "Reserved");
    scene.At(known ? 110 : 119.99).StockNode("n1", 1);
    scene.At(120).Bind("red/new", "n1", Cards(0, 1));
    EXPECT_EQ(scene.Found().contains("evictions"), known) << scene.Texts();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
