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

  SelfCheck check_{host.engine};
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

}  // namespace
}  // namespace tranche
