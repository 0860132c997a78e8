#include "scheduler/controllers/self_check.h"

#include <gtest/gtest.h>

#include <string>

#include "test/unit/scheduler/controllers/bind_bench.h"

namespace tranche {
namespace {

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
  EXPECT_EQ(Walk(), 4);  // nodes, pods, two sums
  EXPECT_EQ(check_.findings().faults, 0);
  for (int i = 0; i < 2 * AuditWalk::kNodesAtOnce; ++i) {
    host.cluster.Receive(NodeChanged{GpuNode("more-" + std::to_string(i))});
  }
  Pass(kSelfCheckEvery);
  EXPECT_EQ(Walk(), 6);
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
  EXPECT_EQ(FaultsOfAWalk(), 1) << "the next walk asks again";
  EXPECT_EQ(BoundPods(), 0);
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

}  // namespace
}  // namespace tranche
