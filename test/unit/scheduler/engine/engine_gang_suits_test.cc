// A gang that found no place is tried again when nodes suit it that did not, though no room came.
#include "scheduler/engine/engine.h"
#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {
namespace THIS_FILE {

using NodeChange = void (*)(NodeFacts&);

class GangSuitsTest : public EngineTest {
 protected:
  GangSuitsTest() { engine_.FinishRestore(now_); }

  static NodeFacts Node(const std::string& name) {
    NodeFacts node = test::StockNode(name, 8);
    node.labels = LabelText(Labels{{"pool", "gpu"}});
    return node;
  }
};

TEST_F(GangSuitsTest, WhenATaintGoesOrALabelComes) {
  struct Row {
    const char* what;
    NodeChange before;
  };
  const Row kRows[] = {
      {"a taint",
       [](NodeFacts& node) {
         node.taints = {{"joining", "", "NoSchedule"}};
       }},
      {"a label", [](NodeFacts& node) { node.labels = {}; }},
  };
  int number = 0;
  for (const Row& row : kRows) {
    NodeFacts joins = Node("n2");
    row.before(joins);
    Nodes({Node("n1"), joins});
    NodeConstraints demands;
    demands.selector = {{"pool", "gpu"}};
    std::vector<PodRequest> gang;
    const std::string name = "g" + std::to_string(++number);
    for (const char* const member : {"-0", "-1"}) {
      gang.push_back(test::WholePod(name + member, 8));
      gang.back().gang = name;
      gang.back().gang_size = 2;
      gang.back().constraints = std::make_shared<const NodeConstraints>(demands);
      engine_.UpsertPod(test::Pending(gang.back()), now_);
    }
    EXPECT_TRUE(Filter(gang[0]).empty()) << row.what;
    EXPECT_EQ(answer_.reason, Reason::kGangNoRoom) << row.what;
    Nodes({Node("n2")});
    EXPECT_EQ(Filter(gang[0]).size(), 1U) << row.what;
    for (const PodRequest& member : gang) engine_.DeletePod(member.uid, now_);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
