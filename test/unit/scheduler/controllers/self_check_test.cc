#include "scheduler/controllers/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "scheduler/engine/parts.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"
#include "test/unit/scheduler/controllers/bind_bench.h"

namespace tranche {

// Makes the books wrong, which nothing else can.
struct BookBreaker {
  static EngineParts& Parts(Engine& engine) { return *engine.parts_; }
};

namespace THIS_FILE {

using testing::ElementsAre;

class SelfCheckTest : public BindBench {
 protected:
  // Ticks until the walk under way has ended; how many it took.
  int Walk() {
    const int64_t walks = check_.findings().walks;
    int ticks = 0;
    while (check_.findings().walks == walks && ticks < 100) {
      check_.Tick(clock.Now());
      ++ticks;
    }
    return ticks;
  }
  void Pass(Millis time) { clock.AdvanceBy(time); }

  SelfCheck check_{host, api};
};

TEST_F(SelfCheckTest, GoesThroughTheBooksInSlices) {
  EXPECT_EQ(Walk(),
            9);  // nodes, pods, quotas, holdings, gangs, tallies; shown pods, nodes; the end
  EXPECT_EQ(check_.findings().faults, 0);
  for (int i = 0; i < 2 * AuditWalk::kNodesAtOnce; ++i) {
    host.cluster.Receive(NodeChanged{GpuNode("more-" + std::to_string(i))});
  }
  Pass(kSelfCheckEvery);
  EXPECT_EQ(Walk(), 11);
  EXPECT_EQ(check_.findings().faults, 0);
}

TEST_F(SelfCheckTest, RestsForFiveMinutes) {
  Walk();
  check_.Tick(clock.Now());
  Pass(kSelfCheckEvery - Millis(1));
  for (int i = 0; i < 10; ++i) check_.Tick(clock.Now());
  EXPECT_EQ(check_.findings().walks, 1);
  Pass(Millis(1));
  Walk();
  EXPECT_EQ(check_.findings().walks, 2);
}

// What comes and goes while a walk is under way is no fault.
TEST_F(SelfCheckTest, TheBooksMayChangeBetweenSlices) {
  for (int i = 0; i < 2 * AuditWalk::kNodesAtOnce; ++i) {
    host.cluster.Receive(NodeChanged{GpuNode("more-" + std::to_string(i))});
  }
  check_.Tick(clock.Now());
  Bind("gpu-1");
  host.cluster.Receive(NodeGone{NodeName("more-7")});
  check_.Tick(clock.Now());
  check_.Tick(clock.Now());
  host.cluster.Receive(PodGone{PodUid("u1")});
  Walk();
  EXPECT_EQ(check_.findings().faults, 0);
}

TEST_F(SelfCheckTest, CountsWhatIsReservedWithNobodyBehindIt) {
  api.writes = {Outcome::kHeld};
  Bind("gpu-1");
  Walk();
  EXPECT_EQ(check_.findings().stuck_reservations, 0);
  Pass(kReservationIsStuck);
  Walk();
  EXPECT_EQ(check_.findings().stuck_reservations, 1);
  EXPECT_EQ(check_.findings().faults, 0);
}

// ---- what is wrong
// --------------------------------------------------------------------------------

class WrongBooks : public SelfCheckTest {
 protected:
  void TearDown() override {}  // some stay wrong
  void Break(const std::function<void(EngineParts&)>& how) {
    host.engine.With(EngineCaller::kSelfCheck,
                     [&how](Engine& engine, Instant) { how(BookBreaker::Parts(engine)); });
  }
  // "kind where" of each fault of a look that changes nothing.
  std::vector<std::string> Found() {
    AuditRun run(host);
    while (!run.done()) run.Step();
    std::vector<std::string> faults;
    for (const AuditNote& fault : run.found().faults) {
      faults.push_back(std::string(AuditKindName(fault.kind)) + " " + fault.where);
    }
    return faults;
  }
  // A walk finds so many, mends `mended` of them, and the next one finds nothing more than the
  // rest.
  void ExpectMended(int64_t faults, int64_t mended) {
    const int64_t before = check_.findings().mended;
    Pass(kSelfCheckEvery);
    Walk();
    EXPECT_EQ(check_.findings().faults, faults);
    EXPECT_EQ(check_.findings().mended - before, mended);
    Pass(kSelfCheckEvery);
    Walk();
    EXPECT_EQ(check_.findings().faults, faults - mended);
  }
};

TEST_F(WrongBooks, TheLoadOfANodeIsSummedAgain) {
  Bind("gpu-1");
  Break([](EngineParts& parts) {
    const NodeId id = parts.cluster.names.Find("gpu-1");
    auto& load = const_cast<Load&>(parts.cluster.nodes[id]->state.hard());
    load.cards[0].milli += MilliGpu::Of(500);
  });
  EXPECT_THAT(Found(), ElementsAre("load gpu-1"));
  EXPECT_THAT(Found(), ElementsAre("load gpu-1")) << "a look mends nothing";
  ExpectMended(1, 1);
}

TEST_F(WrongBooks, WhatIsCountedOverAllNodesIsCountedAgain) {
  api.writes = {Outcome::kHeld};
  Bind("gpu-1");
  ASSERT_EQ(Reservations(), 1);
  Break([](EngineParts& parts) {
    parts.cluster.tentative_placements += 3;
    parts.cluster.reservations.clear();
  });
  EXPECT_THAT(Found(), ElementsAre("tally team-a/train", "tally ", "tally "));
  ExpectMended(3, 3);
  EXPECT_EQ(Reservations(), 1);
}

TEST_F(WrongBooks, WhatATeamUsesIsSummedAgain) {
  PolicySet set;
  set.quotas = {test::Quota("team").Owns("team-a").Line("h100", "4")};
  host.engine.With(EngineCaller::kPolicies, [&set](Engine& engine, Instant now) {
    engine.SetPolicies(std::make_shared<const PolicySet>(set), GpuPolicy(), now);
  });
  Bind("gpu-1");
  Break([](EngineParts& parts) {
    auto& tree = const_cast<QuotaTree&>(parts.cluster.book.tree());
    tree.Add(tree.Find("team"), tree.FindLine("h100"), {kQuantaPerGpu, 0});
  });
  EXPECT_THAT(Found(), ElementsAre("quotaSum team", "quotaSum team"));
  ExpectMended(2, 2);
}

// Of two parts that say different things nobody knows which is wrong.
TEST_F(WrongBooks, WhatNobodyCanDecideStays) {
  Bind("gpu-1");
  Break([](EngineParts& parts) {
    const NodeId id = parts.cluster.names.Find("gpu-1");
    parts.cluster.nodes[id]->state.Release(PodUid("u1"));
    parts.cluster.Refresh(id, parts.cluster.latest);
  });
  EXPECT_THAT(Found(), ElementsAre("pod team-a/train"));
  ExpectMended(1, 0);
}

TEST_F(WrongBooks, WhatTheWatchShowsAndTheBooksLackIsFound) {
  Bind("gpu-1");
  host.cluster.Receive(PodChanged{Stored("train")});
  PodFacts web;
  web.request.name = {"team-a", "web"};
  web.request.uid = PodUid("web");
  web.node = NodeName("gpu-1");
  web.phase = PodPhase::kRunning;
  host.cluster.Receive(PodChanged{web});
  EXPECT_THAT(Found(), ElementsAre());
  Break([](EngineParts& parts) { parts.cluster.plain_seen.Remove(PodUid("web")); });
  EXPECT_THAT(Found(), ElementsAre("shownPod web"));
  Break([](EngineParts& parts) {
    parts.cluster.plain_seen.Put(PodUid("web"), NodeName("gpu-2"), MilliCpu::Zero());
  });
  EXPECT_THAT(Found(), ElementsAre("shownPod web")) << "on another node";
  host.cluster.Receive(PodGone{PodUid("web")});
  EXPECT_THAT(Found(), ElementsAre());
  host.engine.With(EngineCaller::kSelfCheck, [](Engine& engine, Instant now) {
    engine.DeleteNode(NodeName("gpu-2"), now);
    engine.UpsertNode(test::StockNode("gpu-9", 1), now);
  });
  EXPECT_THAT(Found(), ElementsAre("shownNode gpu-9", "shownNode gpu-2"));
}

TEST_F(WrongBooks, WhatIsSetAsideIsTold) {
  host.cluster.Receive(NodeUnreadable{NodeName("odd"), "expected an object"});
  PodFacts pod = GpuPod("other", "u7", 1);
  pod.node = NodeName("gpu-1");
  pod.unreadable = true;
  host.cluster.Receive(PodChanged{pod});
  AuditRun run(host);
  while (!run.done()) run.Step();
  EXPECT_TRUE(run.found().faults.empty()) << run.found().faults[0].text;
  std::vector<std::string> told;
  for (const AuditNote& note : run.found().set_aside) told.push_back(note.where);
  EXPECT_THAT(told, testing::UnorderedElementsAre("odd", "team-a/other"));
}

// ---- pods that the watch does not show ---------------------------------------------------------

// Created while the watch was down, so read by the binder, and bound.
class UnshownPods : public SelfCheckTest {
 protected:
  UnshownPods() { api.pods[{"team-a", "late"}] = GpuPod("late", "u2", 2); }
  void BindLate() { Bind("gpu-1", "u2", "late"); }
  int64_t FaultsOfAWalk() {
    Pass(kSelfCheckEvery);
    Walk();
    return check_.findings().faults;
  }
};

TEST_F(UnshownPods, OneThatTheServerDoesNotHaveIsForgotten) {
  BindLate();
  ASSERT_EQ(BoundPods(), 1);
  api.pods.erase({"team-a", "late"});  // no list will show it, and none its end
  EXPECT_EQ(FaultsOfAWalk(), 1);
  EXPECT_EQ(BoundPods(), 0);
  Create(GpuPod("next", "u3", 2));
  answers.clear();
  Bind("gpu-1", "u3", "next");
  EXPECT_EQ(Answer(), "ok") << "its devices are free";
  host.cluster.Receive(PodChanged{Stored("next")});
  EXPECT_EQ(FaultsOfAWalk(), 0);
}

// Its devices are not held for the rest of five minutes.
TEST_F(UnshownPods, AListOfAllPodsIsReasonToLookAtOnce) {
  Walk();
  BindLate();
  api.pods.erase({"team-a", "late"});
  for (int i = 0; i < 20; ++i) check_.Tick(clock.Now());
  EXPECT_EQ(BoundPods(), 1) << "before it, nobody looks";
  host.cluster.Receive(Heard{.resource = "nodes", .whole = true});
  for (int i = 0; i < 20; ++i) check_.Tick(clock.Now());
  EXPECT_EQ(BoundPods(), 1);
  host.cluster.Receive(Heard{.resource = "pods", .whole = true});
  Walk();
  EXPECT_EQ(BoundPods(), 0);
  EXPECT_EQ(check_.findings().faults, 1);
  for (int i = 0; i < 20; ++i) check_.Tick(clock.Now());
  EXPECT_EQ(check_.findings().walks, 2) << "one look for one list";
}

TEST_F(UnshownPods, AnotherOfItsNameIsNotTheSame) {
  BindLate();
  api.pods[{"team-a", "late"}] = GpuPod("late", "u9", 1);
  EXPECT_EQ(FaultsOfAWalk(), 1);
  EXPECT_EQ(BoundPods(), 0);
}

TEST_F(UnshownPods, OneThatTheServerHasStays) {
  BindLate();
  EXPECT_EQ(FaultsOfAWalk(), 0);
  EXPECT_EQ(BoundPods(), 1);
}

TEST_F(UnshownPods, WithoutAnAnswerNobodyIsForgotten) {
  BindLate();
  api.pods.erase({"team-a", "late"});
  api.failing_lookups = -1;
  EXPECT_EQ(FaultsOfAWalk(), 0);
  EXPECT_EQ(BoundPods(), 1);
  api.failing_lookups = 0;
  const int lookups = api.lookups;
  for (int i = 0; i < 20; ++i) check_.Tick(clock.Now());
  EXPECT_EQ(api.lookups, lookups) << "not at once";
  Pass(kAskAgainAfter);
  check_.Tick(clock.Now());
  EXPECT_EQ(BoundPods(), 0) << "and not with the next walk only";
  EXPECT_EQ(check_.findings().faults, 1);
  Pass(kAskAgainAfter);
  check_.Tick(clock.Now());
  EXPECT_EQ(api.lookups, lookups + 1) << "whoever has got an answer is not asked for again";
}

TEST_F(UnshownPods, ABindUnderWayIsLeftToTheBinder) {
  api.writes = {Outcome::kHeld};
  BindLate();
  api.pods.erase({"team-a", "late"});
  EXPECT_EQ(FaultsOfAWalk(), 0);
  EXPECT_EQ(Reservations(), 1);
}

TEST_F(UnshownPods, NobodyIsAskedForWhomTheWatchShows) {
  Bind("gpu-1");
  const int lookups = api.lookups;
  EXPECT_EQ(FaultsOfAWalk(), 0);
  EXPECT_EQ(api.lookups, lookups);
  EXPECT_EQ(BoundPods(), 1);
}

}  // namespace THIS_FILE
}  // namespace tranche
