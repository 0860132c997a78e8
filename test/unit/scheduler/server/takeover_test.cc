// With which epoch a leader begins.
#include "scheduler/server/takeover.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche {
namespace THIS_FILE {

class LeastEpochTest : public ledger::LedgerTest {
 protected:
  // A pod with a node, whose record tells of that epoch.
  void Tell(int64_t epoch) {
    PodFacts pod;
    pod.request.uid = PodUid("uid");
    pod.request.name = {"team", "p"};
    pod.node = NodeName("n1");
    pod.allocation.emplace().epoch = epoch;
    buffer_.Receive(PodChanged{std::move(pod)});
  }

  ServeConfig config_;
  StandbyBuffer buffer_;
};

TEST_F(LeastEpochTest, IsTheLeasesWhereNothingElseIsKnown) {
  EXPECT_EQ(LeastEpoch(config_, buffer_, 1), 1);
  EXPECT_EQ(LeastEpoch(config_, buffer_, 9), 9);
}

// The lease was deleted: the number after that of whoever wrote last is nobody's yet.
TEST_F(LeastEpochTest, IsAboveWhatRecordsTell) {
  Tell(7);
  EXPECT_EQ(LeastEpoch(config_, buffer_, 1), 8);
  EXPECT_EQ(LeastEpoch(config_, buffer_, 8), 8);
  EXPECT_EQ(LeastEpoch(config_, buffer_, 20), 20);
}

TEST_F(LeastEpochTest, IsAboveWhatTheLedgerTells) {
  options_.epoch = 5;
  WriteFile({ledger::Open("a", ledger::Minute(0))});
  config_.ledger = options_.path;
  EXPECT_EQ(LeastEpoch(config_, buffer_, 1), 6);
  Tell(7);
  EXPECT_EQ(LeastEpoch(config_, buffer_, 1), 8);
}

TEST_F(LeastEpochTest, ARecordThatTellsFarTooMuchIsNobodys) {
  Tell(int64_t{1} << 40);
  EXPECT_EQ(LeastEpoch(config_, buffer_, 3), 3);
}

}  // namespace THIS_FILE
}  // namespace tranche
