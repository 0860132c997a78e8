// ResourceQuotas of a cluster that comes from HAMi, end to end in the engine.
#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::HamiPod;
using testing::ElementsAre;
using testing::IsEmpty;

class NamespaceCapsTest : public EngineTest {
 protected:
  NamespaceCapsTest() {
    EngineOptions options;
    options.namespace_caps = true;
    capped_ = std::make_unique<Engine>(options);
    test::SetPolicy(*capped_, GpuPolicy{});
    for (const char* name : {"n1", "n2"}) {
      capped_->UpsertNode(test::HamiNode(name, 2), now_);
      names_.emplace_back(name);
    }
  }
  void SetCap(std::optional<int64_t> mib, std::optional<int64_t> cores) {
    NamespaceCap cap;
    cap.ns = "team";
    cap.name = "gpu";
    if (mib) cap.memory = Mebibytes::Of(*mib);
    cap.cores = cores;
    capped_->SetNamespaceCap(cap, now_);
  }
  // Code of the reason filter gives, "None" where a node was found.
  std::string FilterReason(const PodRequest& request) {
    std::vector<std::string_view> names;
    for (const NodeName& name : names_) names.push_back(name.str());
    capped_->UpsertPod(test::Pending(request), now_);
    capped_->Filter(request, names, now_, answer_);
    return std::string(Describe(answer_.reason).code);
  }
  BindPlan BindIt(const PodRequest& request, const char* node = "n1") {
    capped_->UpsertPod(test::Pending(request), now_);
    return capped_->Bind(request.name, request.uid, NodeName(node), now_);
  }
  bool Placed(const PodRequest& request, const char* node = "n1") {
    if (BindIt(request, node).kind != BindPlan::Kind::kWrite) return false;
    capped_->SettleBind(request.uid, NodeName(node), BindOutcome::kBound, now_);
    return true;
  }
  CapAmount Used() { return capped_->NamespaceCapRows().at(0).used; }
  static CapAmount Amount(int64_t mib, int64_t cores) { return {Mebibytes::Of(mib), cores}; }
  void TearDown() override { EXPECT_THAT(capped_->Audit(), IsEmpty()); }

  std::unique_ptr<Engine> capped_;
};

TEST_F(NamespaceCapsTest, CountBoundPodsAndRefuseWhatIsOver) {
  SetCap(10'000, 100);
  EXPECT_TRUE(Placed(HamiPod("a", 2, 3'000, 20)));
  EXPECT_EQ(Used(), Amount(6'000, 40));
  EXPECT_EQ(FilterReason(HamiPod("b", 1, 4'000, 60)), "None");
  EXPECT_EQ(FilterReason(HamiPod("c", 1, 4'001)), "NamespaceQuota");
  EXPECT_EQ(FilterReason(HamiPod("d", 1, 100, 61)), "NamespaceQuota");
  const auto explanation = capped_->Explain({"team", "c"}, now_);
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->pod.detail,
            "ResourceQuota team/gpu allows 10000 MiB of GPU memory; 6000 MiB are in use, the pod "
            "asks for 4001 MiB");
}

TEST_F(NamespaceCapsTest, BindAsksAgain) {
  SetCap(5'000, std::nullopt);
  const PodRequest first = HamiPod("a", 1, 3'000), second = HamiPod("b", 1, 3'000);
  EXPECT_EQ(FilterReason(first), "None");
  EXPECT_EQ(FilterReason(second), "None") << "nothing is held yet";
  EXPECT_TRUE(Placed(first));
  const BindPlan plan = BindIt(second);
  EXPECT_EQ(plan.kind, BindPlan::Kind::kRefused);
  EXPECT_EQ(plan.reason, Reason::kNamespaceQuota);
}

TEST_F(NamespaceCapsTest, APercentageIsJudgedByTheNodesCard) {
  SetCap(8'000, std::nullopt);
  PodRequest half = HamiPod("half", 1, 0);
  half.asks[0].memory = {MemoryNeed::Kind::kPercentOfCard, 50};
  EXPECT_EQ(FilterReason(half), "None");
  EXPECT_TRUE(Placed(half));
  EXPECT_EQ(Used(), Amount(7'554, 0));
  PodRequest most = HamiPod("most", 1, 0);
  most.asks[0].memory = {MemoryNeed::Kind::kPercentOfCard, 60};
  EXPECT_EQ(FilterReason(most), "NamespaceQuota");
  EXPECT_EQ(FilterReason(test::WholePod("whole", 1)), "NamespaceQuota");
}

TEST_F(NamespaceCapsTest, ZeroBlocksAndPodsOfOthersPass) {
  SetCap(0, std::nullopt);
  EXPECT_EQ(FilterReason(HamiPod("a", 1, 1)), "NamespaceQuota");
  PodRequest other = HamiPod("b", 1, 1'000);
  other.name.ns = "other";
  EXPECT_EQ(FilterReason(other), "None");
}

TEST_F(NamespaceCapsTest, BringBackWhoWaitsWhenRoomAppears) {
  SetCap(5'000, std::nullopt);
  const PodRequest first = HamiPod("a", 1, 4'000), second = HamiPod("b", 1, 4'000);
  ASSERT_TRUE(Placed(first));
  ASSERT_EQ(FilterReason(second), "NamespaceQuota");
  capped_->effects().requeue.clear();
  now_ += std::chrono::minutes(1);
  PodFacts ended = test::Bound(first, "n1");
  ended.phase = PodPhase::kSucceeded;
  capped_->UpsertPod(ended, now_);
  EXPECT_EQ(Used(), Amount(0, 0));
  EXPECT_THAT(std::exchange(capped_->effects().requeue, {}),
              ElementsAre(std::pair(second.name, second.uid)));
  ASSERT_EQ(FilterReason(HamiPod("c", 1, 6'000)), "NamespaceQuota");
  now_ += std::chrono::minutes(1);
  SetCap(7'000, std::nullopt);
  EXPECT_EQ(std::exchange(capped_->effects().requeue, {}).size(), 2u)
      << "the cap was raised: either may come in";
}

TEST_F(NamespaceCapsTest, ABindThatFailedTakesNothing) {
  SetCap(5'000, std::nullopt);
  const PodRequest request = HamiPod("a", 1, 4'000);
  ASSERT_EQ(BindIt(request).kind, BindPlan::Kind::kWrite);
  EXPECT_EQ(Used(), Amount(4'000, 0)) << "reserved";
  capped_->SettleBind(request.uid, NodeName("n1"), BindOutcome::kNotBound, now_);
  EXPECT_EQ(Used(), Amount(0, 0));
}

TEST_F(NamespaceCapsTest, CountPodsThatOthersPlacedAndThoseOfNodesNobodyKnowsYet) {
  SetCap(5'000, std::nullopt);
  capped_->UpsertPod(test::Bound(HamiPod("a", 1, 2'000), "n9"), now_);
  EXPECT_EQ(Used(), Amount(2'000, 0));
  capped_->UpsertNode(test::HamiNode("n9", 1), now_);
  capped_->UpsertPod(test::Bound(HamiPod("b", 1, 2'000), "n2"), now_);
  EXPECT_EQ(Used(), Amount(4'000, 0));
  capped_->DeletePod(PodUid("uid-a"), now_);
  EXPECT_EQ(Used(), Amount(2'000, 0));
}

TEST_F(NamespaceCapsTest, AreIgnoredWhereTheModeIsOff) {
  Nodes({test::HamiNode("n1", 2)});
  NamespaceCap cap;
  cap.ns = "team";
  cap.name = "gpu";
  cap.memory = Mebibytes::Zero();
  engine_.SetNamespaceCap(cap, now_);
  EXPECT_TRUE(Place(HamiPod("a", 1, 4'000), "n1"));
  EXPECT_THAT(engine_.NamespaceCapRows(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
