// What namespaces hold, from a state alone.
#include "scheduler/engine/teams/namespace_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::HamiPod;
using testing::IsEmpty;
using testing::SizeIs;

class NamespaceUseTest : public testing::Test {
 protected:
  NamespaceUseTest() : state_(Options()), node_(state_.InternNode(NodeName("n"))) {
    state_.nodes[node_]->state.SetFacts(test::HamiNode("n", 2), 0, &state_.machines);
    state_.Refresh(node_, At(0));
    NamespaceCap cap;
    cap.ns = "team";
    cap.name = "gpu";
    cap.memory = Mebibytes::Of(10'000);
    use_.caps.Set(cap);
  }
  static EngineOptions Options() {
    EngineOptions options;
    options.namespace_caps = true;
    return options;
  }
  void Reserve(const PodRequest& request) {
    Holding holding;
    holding.uid = request.uid;
    holding.kind = HoldingKind::kReservation;
    holding.request = std::make_shared<const PodRequest>(request);
    state_.nodes[node_]->state.Hold(std::move(holding));
  }

  ClusterState state_;
  NodeId node_;
  NamespaceUse use_{state_};
};

TEST_F(NamespaceUseTest, PodsThatAskForMoreThanIsLeftAreRefused) {
  EXPECT_TRUE(use_.CapsAllowLeast(HamiPod("a", 1, 10'000)));
  EXPECT_FALSE(use_.CapsAllowLeast(HamiPod("a", 1, 10'001)));
  Reserve(HamiPod("held", 1, 4'000));
  use_.NoteCapUse(node_);
  EXPECT_TRUE(use_.CapsAllowLeast(HamiPod("a", 1, 6'000)));
  EXPECT_FALSE(use_.CapsAllowLeast(HamiPod("a", 1, 6'001)));
  EXPECT_THAT(use_.DescribeCaps(HamiPod("a", 1, 6'001), kNoNode), testing::HasSubstr("gpu"));
}

TEST_F(NamespaceUseTest, AuditFindsWhatWasNotCounted) {
  Reserve(HamiPod("held", 1, 4'000));
  std::vector<std::string> faults;
  use_.AuditCaps(faults);
  EXPECT_THAT(faults, SizeIs(1));
  use_.NoteCapUse(node_);
  faults.clear();
  use_.AuditCaps(faults);
  EXPECT_THAT(faults, IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
