// Nodes kept for a gang, and where nodes lie: from a state alone.
#include "scheduler/engine/selection/held_nodes.h"

#include "scheduler/engine/selection/domains.h"
#include "scheduler/index/card_links.h"
#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::TeamPod;

class HeldNodesTest : public testing::Test, protected test::StateRoom {
 protected:
  HeldNodesTest() {
    for (const char* name : {"n1", "n2"}) Node(test::StockNode(name, 8));
  }
  static PodRequest Lasting(const std::string& name, int64_t seconds) {
    PodRequest request = TeamPod("a", name, 1);
    if (seconds > 0) request.expected_runtime = Millis(seconds * 1'000);
    return request;
  }

  HeldNodes held_{cluster};
};

TEST_F(HeldNodesTest, OthersMayUseAHeldNodeIfTheyHaveEndedBefore) {
  held_.hold = {"a/train", At(100), {NodeName("n1")}, At(0)};
  PodRequest member = TeamPod("a", "member", 1);
  member.gang = "train";
  PodRequest namesake = member;
  namesake.name.ns = "b";
  const struct {
    const char* what;
    PodRequest request;
    const char* node;
    Instant now;
    bool held;
  } cases[] = {
      {"ends in time", Lasting("p", 100), "n1", At(0), false},
      {"ends too late", Lasting("p", 101), "n1", At(0), true},
      {"does not say", Lasting("p", 0), "n1", At(0), true},
      {"another node", Lasting("p", 0), "n2", At(0), false},
      {"the gang itself", member, "n1", At(0), false},
      {"a gang of that name elsewhere", namesake, "n1", At(0), true},
      {"the gang should have started", Lasting("p", 0), "n1", At(100), false},
  };
  for (const auto& row : cases) {
    EXPECT_EQ(held_.IsHeldFrom(row.request, IdOf(row.node), row.now), row.held) << row.what;
  }
}

TEST_F(HeldNodesTest, WorkEndsWhenItSaidOrWhenItsGraceIsOver) {
  const PodRequest silent = Lasting("silent", 0), lasting = Lasting("lasting", 100);
  Runs(silent, "n1");
  Runs(lasting, "n1");
  Wait(Lasting("waits", 100));
  EXPECT_EQ(held_.EndOf(silent.uid, At(10)), std::nullopt);
  EXPECT_EQ(held_.EndOf(lasting.uid, At(10)), At(100));
  EXPECT_EQ(held_.EndOf(lasting.uid, At(100)), std::nullopt) << "it has outlived its word";
  EXPECT_EQ(held_.EndOf(PodUid("uid-waits"), At(10)), std::nullopt);
  EXPECT_EQ(held_.EndOf(PodUid("nobody"), At(10)), std::nullopt);
  cluster.Find(silent.uid)->traits.leaves_at = At(30);
  EXPECT_EQ(held_.EndOf(silent.uid, At(10)), At(30));
  EXPECT_EQ(held_.EndOf(silent.uid, At(40)), At(40)) << "any moment";
}

// A node of that clique and rack; empty: it does not say.
NodeFacts NodeIn(const std::string& name, const std::string& clique, const std::string& rack) {
  NodeFacts facts = test::StockNode(name, 8);
  Labels labels;
  if (!clique.empty()) labels["nvidia.com/gpu.clique"] = clique;
  if (!rack.empty()) labels["example.com/rack"] = rack;
  facts.labels = LabelText(labels);
  return facts;
}

TEST_F(HeldNodesTest, DistanceIsTheNearestLevelThatIsShared) {
  DomainLabels labels = GpuPolicy().domains;
  labels.of_level[static_cast<std::size_t>(GangLevel::kRack)] = {"example.com/rack"};
  Node(NodeIn("c0", "fabric.0", "r1"));
  Node(NodeIn("alone", "", "r1"));
  Node(NodeIn("none", "", ""));
  EXPECT_EQ(DomainOf(cluster, IdOf("c0"), GangLevel::kClique, labels), "fabric.0");
  EXPECT_EQ(DomainOf(cluster, IdOf("alone"), GangLevel::kClique, labels), "node alone");
  EXPECT_EQ(DomainOf(cluster, IdOf("none"), GangLevel::kRack, labels), "");
  Neighbours near;
  near.labels = &labels;
  near.domain = {"fabric.0", "r1", "", ""};
  const std::pair<const char*, int> cases[] = {{"c0", 0}, {"alone", 1}, {"none", kGangLevels}};
  for (const auto& [node, distance] : cases) {
    EXPECT_EQ(DistanceTo(cluster, near, IdOf(node)), distance) << node;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
