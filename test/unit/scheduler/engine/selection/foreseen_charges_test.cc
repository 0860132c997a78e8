// What pods that nobody judged yet would be charged: from a state alone.
#include "scheduler/engine/selection/foreseen_charges.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::StockNode;
using test::TeamPod;

class ForeseenChargesTest : public testing::Test, protected test::StateRoom {
 protected:
  ForeseenChargesTest() {
    for (int i = 0; i < 200; ++i) {
      const std::string name = fmt::format("n{:03}", i);
      See(i % 2 == 0 ? StockNode(name, 8) : StockNode(name, 4, "Tesla-T4", 15109));
    }
  }
  void See(NodeFacts facts) {
    ++cluster.inventories;
    Node(std::move(facts));
  }
  static PodRequest Of(const std::string& model, int number) {
    PodRequest request = TeamPod("a", fmt::format("{}-{}", model, number), 2);
    request.models_any = {model};
    return request;
  }
  // GPUs of all of them.
  int64_t Gpus(const std::string& model, int pods) {
    int64_t quanta = 0;
    for (int i = 0; i < pods; ++i) quanta += charges_.Of(Wait(Of(model, i)));
    return quanta / kQuantaPerGpu;
  }

  ForeseenCharges charges_{cluster};
};

TEST_F(ForeseenChargesTest, PodsThatAreAlikeAreWorkedOutOnceOverTheKindsOfNode) {
  EXPECT_EQ(Gpus("tesla-t4", 300), 600);
  EXPECT_LE(charges_.looks(), 2) << "two kinds of node, one shape";
  EXPECT_EQ(Gpus("b200", 300), 0) << "nobody has one";
  EXPECT_LE(charges_.looks(), 4);
  EXPECT_EQ(Gpus("b200", 300), 0);
  EXPECT_LE(charges_.looks(), 4) << "and no more when they are asked about again";
}

TEST_F(ForeseenChargesTest, ANewKindOfNodeIsNews) {
  EXPECT_EQ(Gpus("b200", 10), 0);
  See(StockNode("late", 8));
  const int64_t looks = charges_.looks();
  EXPECT_EQ(Gpus("b200", 10), 0);
  EXPECT_EQ(charges_.looks(), looks) << "one more of a kind";
  See(StockNode("new", 8, "NVIDIA-B200", 183'359));
  EXPECT_EQ(Gpus("b200", 10), 20);
}

}  // namespace THIS_FILE
}  // namespace tranche
