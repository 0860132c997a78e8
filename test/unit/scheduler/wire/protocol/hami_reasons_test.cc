#include "scheduler/wire/protocol/hami_reasons.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "test/builders/cluster.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(HamiWords, AreTheNearestOfTheirs) {
  struct Case {
    Reason reason;
    const char* word;
  };
  const std::vector<Case> cases = {
      {Reason::kTooLarge, "CardInsufficientMemory"},
      {Reason::kNoGpu, "NodeInsufficientDevice"},
      {Reason::kTooManyPerNode, "NodeInsufficientDevice"},
      {Reason::kWrongModel, "CardTypeMismatch"},
      {Reason::kWrongDevice, "CardUuidMismatch"},
      {Reason::kUnhealthy, "CardNotHealth"},
      {Reason::kNumaMismatch, "NumaNotFit"},
      {Reason::kNamespaceQuota, "ResourceQuotaNotFit"},
      {Reason::kWaitingForQuota, ""},
      {Reason::kNodeNotReady, ""},
  };
  const PodRequest request = test::HamiPod("p", 1, 1'000);
  for (const Case& one : cases) {
    EXPECT_EQ(HamiWord(one.reason, request), one.word) << Describe(one.reason).code;
  }
}

TEST(HamiWords, SayWhatIsLackingByWhatIsAskedFor) {
  PodRequest cores_only = test::HamiPod("p", 1, 0, 30);
  cores_only.asks[0].memory = {};
  EXPECT_EQ(HamiWord(Reason::kNoRoom, test::HamiPod("p", 1, 1'000)), "CardInsufficientMemory");
  EXPECT_EQ(HamiWord(Reason::kNoRoom, cores_only), "CardInsufficientCore");
  EXPECT_EQ(HamiWord(Reason::kNoRoom, test::HamiPod("p", 1, 1'000, 30)),
            "AllocatedCardsInsufficientRequest");
  EXPECT_EQ(HamiWord(Reason::kNoRoom, test::HamiPod("p", 1, 1'000, 100)),
            "ExclusiveDeviceAllocateConflict");
  EXPECT_EQ(HamiWord(Reason::kNoRoom, test::MigPod("p", "1g.10gb", 1)),
            "CardMigTopologyInfeasible");
  EXPECT_EQ(HamiWord(Reason::kNoRoom, test::WholePod("p", 2)), "AllocatedCardsInsufficientRequest");
}

// They stand in JSON as they are.
TEST(HamiWords, ArePlain) {
  for (int rank = 0; rank < static_cast<int>(Reason::kCount); ++rank) {
    for (const PodRequest& request : {test::HamiPod("p", 1, 1'000), test::WholePod("p", 1)}) {
      for (const char letter : HamiWord(static_cast<Reason>(rank), request)) {
        EXPECT_TRUE((letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z')) << rank;
      }
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
