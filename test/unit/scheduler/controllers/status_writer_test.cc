#include "scheduler/controllers/status_writer.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "test/unit/scheduler/controllers/bind_bench.h"
#include "test/unit/scheduler/controllers/quiet_objects.h"

namespace tranche {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps the conditions tranche.dev/Waiting as they are written.
class Conditions : public QuietObjects {
 public:
  void SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) override {
    told.push_back(write.pod.name + (write.waiting ? " waits" : " " + write.reason));
    QuietObjects::SetWaiting(std::move(write), std::move(done));
  }

  std::vector<std::string> told;
};

class StatusWriterTest : public BindBench {
 protected:
  // What is written by one round.
  std::vector<std::string> Round() {
    clock.AdvanceBy(Millis(60'000));
    writer_.Tick(clock.Now());
    return std::exchange(objects_.told, {});
  }
  // A filter call that finds no room.
  void Refuse() {
    host.engine.With([this](Engine& engine, Instant now) {
      const std::vector<std::string_view> candidates = {"no-such-node"};
      FilterAnswer answer;
      engine.Filter(Stored().request, candidates, now, answer);
      EXPECT_THAT(answer.chosen, IsEmpty());
    });
  }
  // The watch tells of the Binding.
  void SeeBound() {
    Stored().node = NodeName("gpu-1");
    host.cluster.Receive(PodChanged{Stored()});
  }

  Conditions objects_;
  Checkpointer checkpointer_{host, nullptr, ""};
  StatusWriter writer_{host, objects_, checkpointer_};
};

TEST_F(StatusWriterTest, APodThatWaitedIsToldToBePlaced) {
  EXPECT_THAT(Round(), IsEmpty()) << "nobody has asked for it yet";
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  EXPECT_THAT(Round(), IsEmpty()) << "told once";
  Bind("gpu-1");
  SeeBound();
  EXPECT_THAT(Round(), ElementsAre("train Placed"));
  EXPECT_THAT(Round(), IsEmpty());
}

// A round between the reservation and the Binding must not forget that the condition is there: it
// would stay on the pod for as long as it runs.
TEST_F(StatusWriterTest, ARoundWhileTheBindIsUnderWayForgetsNoCondition) {
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  api.writes = {Outcome::kHeld};
  Bind("gpu-1");
  ASSERT_EQ(Reservations(), 1);
  EXPECT_THAT(Round(), IsEmpty()) << "how that ends is still to come";
  EXPECT_THAT(Round(), IsEmpty());
  SeeBound();
  EXPECT_THAT(Round(), ElementsAre("train Placed"));
}

TEST_F(StatusWriterTest, APodWhoseBindFailedKeepsItsCondition) {
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  api.writes = {Outcome::kHeld};
  Bind("gpu-1");
  EXPECT_THAT(Round(), IsEmpty());
  api.held.at(0)({WriteResult::Kind::kRejected, 403, "denied"});
  ASSERT_EQ(Reservations(), 0);
  EXPECT_THAT(Round(), IsEmpty()) << "it waits as before";
  Bind("gpu-1");
  SeeBound();
  EXPECT_THAT(Round(), ElementsAre("train Placed"));
}

TEST_F(StatusWriterTest, APodThatIsGoneIsToldNothing) {
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  host.cluster.Receive(PodGone{PodUid("u1")});
  EXPECT_THAT(Round(), IsEmpty());
}

}  // namespace
}  // namespace tranche
