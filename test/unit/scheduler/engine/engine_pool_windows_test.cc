// Maintenance of pools: what is placed on their nodes before, and who leaves in time. Nodes n1 and
// n2 are of pool "old", whose maintenance goes from 10 h to 12 h.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Hours;
using test::Minutes;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kHour = 3600;

class PoolWindowsTest : public EngineReclaimTest {
 protected:
  PoolWindowsTest() {
    Nodes({Of("n1", "old"), Of("n2", "old"), Of("n3", "new")});
    Declare(Teams(true));
  }

  static NodeFacts Of(const std::string& name, const std::string& pool) {
    NodeFacts node = test::StockNode(name, 8);
    node.labels = LabelText(Labels{{"pool", pool}});
    return node;
  }
  static GpuPool Pool(const std::string& name, std::vector<PoolWindow> windows) {
    GpuPool pool = test::Pool(name);
    pool.windows = std::move(windows);
    return pool;
  }
  static test::Objects Teams(bool drain, int from = 10, int to = 12) {
    GpuClass notebook = Class("notebook", 1);
    notebook.max_runtime = Hours(2);
    return {.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "8")},
            .classes = {Class("train"), notebook, Class("serve", 3, Preemptible::kNever)},
            .pools = {Pool("old", {{At(from * kHour), At(to * kHour), drain}})}};
  }
  static PodRequest Lasting(const std::string& name, std::optional<Millis> runtime,
                            const std::string& priority_class = "train") {
    PodRequest request = Pod("a", name, 1, priority_class);
    request.expected_runtime = runtime;
    return request;
  }
  // The reason for which the node is out of the question; "-": it is not.
  std::string On(const std::string& node, const PodRequest& request) {
    engine_.UpsertPod(test::Pending(request), now_);
    const std::string_view name = node;
    FilterAnswer answer;
    engine_.Filter(request, std::span(&name, 1), now_, answer);
    const bool fits = !answer.chosen.empty();
    engine_.DeletePod(request.uid, now_);
    return fits ? "-" : std::string(Describe(answer.reason).code);
  }
  std::vector<std::string> Warned() {
    std::vector<std::string> texts;
    for (const RunLimitWarning& warning :
         std::exchange(engine_.effects().reclaims.warnings, {})) {
      texts.push_back(fmt::format("{} {} {} at {}", ReclaimRuleName(warning.rule), warning.source,
                                  warning.pod.name, (warning.leaves - At(0)).count() / 1000));
    }
    return texts;
  }
  ~PoolWindowsTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }
};

TEST_F(PoolWindowsTest, OnlyWhatWillHaveEndedIsPlacedBefore) {
  const struct {
    const char* what;
    bool drain;
    int at;  // minutes
    PodRequest pod;
    std::string on_old;
  } table[] = {
      {"ends just before", true, 0, Lasting("p", Hours(10)), "-"},
      {"would end after it began", true, 0, Lasting("p", Hours(10) + Millis(1)), "Maintenance"},
      {"its class ends it before", true, 0, Lasting("p", std::nullopt, "notebook"), "-"},
      {"the class ends it too late", true, 481, Lasting("p", std::nullopt, "notebook"),
       "Maintenance"},
      {"its own word is shorter", true, 481, Lasting("p", Hours(1), "notebook"), "-"},
      {"says nothing and will be drained", true, 0, Lasting("p", std::nullopt), "-"},
      {"says nothing, and has no time left", true, 589, Lasting("p", std::nullopt), "Maintenance"},
      {"says nothing and nobody drains", false, 0, Lasting("p", std::nullopt), "Maintenance"},
      {"says nothing and is never evicted", true, 0, Lasting("p", std::nullopt, "serve"),
       "Maintenance"},
      {"is short, in the window", true, 600, Lasting("p", Minutes(1)), "Maintenance"},
      {"is short, at its last moment", true, 719, Lasting("p", Minutes(1)), "Maintenance"},
      {"after it", true, 720, Lasting("p", std::nullopt), "-"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    Declare(Teams(row.drain));
    Pass(std::max(Millis::zero(), At(row.at * 60) - now_));
    EXPECT_EQ(On("n1", row.pod), row.on_old);
    EXPECT_EQ(On("n3", row.pod), "-");
  }
}

TEST_F(PoolWindowsTest, WorkThatMayBeEvictedIsToldAndLeavesInTime) {
  const PodRequest stays = Lasting("stays", std::nullopt, "serve");
  test::Objects none = Teams(true);
  none.pools.clear();
  Declare(std::move(none));
  Run(stays, "n1");
  Run(Lasting("goes", std::nullopt), "n2");
  Run(Lasting("elsewhere", std::nullopt), "n3");
  Declare(Teams(true));
  // 30 s of grace and a minute before 10 h; told ten minutes before that.
  Pass(Hours(10) - Minutes(11) - Millis(30'001));
  EXPECT_THAT(Warned(), IsEmpty());
  EXPECT_EQ(engine_.Tick(now_), now_ + Millis(1));
  Pass(Millis(1));
  EXPECT_THAT(Warned(), ElementsAre("Maintenance old goes at 35910"));
  Pass(Minutes(10) - Millis(1));
  EXPECT_EQ(Plan(), "");
  Pass(Millis(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "goes");
  EXPECT_THAT(Reclaims(), ElementsAre("Maintenance Evicting 0/1 for old from goes"));
}

TEST_F(PoolWindowsTest, AnEditCallsItOff) {
  Run(Lasting("runs", std::nullopt), "n1");
  Pass(Hours(9) + Minutes(50));
  EXPECT_THAT(Warned(), ElementsAre("Maintenance old runs at 36000"))
      << "told late: it has its ten minutes all the same";
  test::Objects none = Teams(true);
  none.pools.clear();
  Declare(std::move(none));
  EXPECT_EQ(On("n1", Lasting("at-once", Hours(20))), "-");
  Pass(Hours(1));
  EXPECT_EQ(Plan(), "");
  EXPECT_EQ(On("n1", Lasting("p", std::nullopt)), "-");
}

TEST_F(PoolWindowsTest, WhoeverWaitsIsAskedAgainWhenItIsOver) {
  Declare(Teams(false));
  Pass(Hours(11));
  Nodes({});
  engine_.DeleteNode(NodeName("n3"), now_);
  const PodRequest waits = Lasting("waits", std::nullopt);
  EXPECT_EQ(Try(waits), "Maintenance");
  EXPECT_EQ(engine_.Tick(now_), now_ + Hours(1)) << "time alone is no event to kube-scheduler";
  Requeued();
  Pass(Hours(1));
  EXPECT_THAT(Requeued(), ElementsAre("waits"));
  EXPECT_EQ(Try(waits), "n1 n2");
}

TEST_F(PoolWindowsTest, NoRoomIsMadeWhereMaintenanceBegins) {
  Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "16"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "8")},
           .classes = {Class("train")},
           .pools = {Pool("old", {{At(10 * kHour), At(12 * kHour), false}})}});
  for (const char* node : {"n1", "n2", "n3"}) {
    PodRequest borrowed = Pod("b", std::string("b-") + node, 8, "train");
    borrowed.expected_runtime = Hours(10);
    Run(borrowed, node);
  }
  Pass(Hours(1));
  PodRequest owns = Pod("a", "owns", 8, "train");
  owns.expected_runtime = Hours(20);
  Try(owns);
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "b-n3") << "the only node it could stay on";
}

// Of all answers the nearest to a yes is told: other nodes could never take it.
TEST_F(PoolWindowsTest, ThePodIsToldOfMaintenanceBeforeOtherModels) {
  NodeFacts other = test::StockNode("n3", 8, "NVIDIA-A100-SXM4-80GB", 81920);
  other.labels = LabelText(Labels{{"pool", "new"}});
  engine_.UpsertNode(other, now_);
  PodRequest pod = Lasting("p", Hours(20));
  pod.models_any = {"h100"};
  EXPECT_EQ(Try(pod), "Maintenance");
}

TEST_F(PoolWindowsTest, NodesThatChangePoolsFollow) {
  const PodRequest pod = Lasting("p", Hours(20));
  EXPECT_EQ(On("n2", pod), "Maintenance");
  engine_.UpsertNode(Of("n2", "new"), now_);
  EXPECT_EQ(On("n2", pod), "-");
  engine_.UpsertNode(Of("n3", "old"), now_);
  EXPECT_EQ(On("n3", pod), "Maintenance");
}

TEST_F(PoolWindowsTest, ExplainSaysFromWhenToWhen) {
  const PodRequest pod = Lasting("p", Hours(20));
  engine_.UpsertPod(test::Pending(pod), now_);
  Filter(pod);
  const auto explained = engine_.Explain(pod.name, now_);
  ASSERT_TRUE(explained);
  const auto verdict = std::ranges::find(explained->nodes, NodeName("n1"), &NodeVerdict::node);
  ASSERT_NE(verdict, explained->nodes.end());
  EXPECT_EQ(verdict->reason, Reason::kMaintenance);
  EXPECT_THAT(verdict->detail, testing::MatchesRegex(
                                   "maintenance of GPUPool old from [0-9T:-]+Z to [0-9T:-]+Z"));
}

}  // namespace THIS_FILE
}  // namespace tranche
