// Guests whose GPU is a part of a card: what quotas, totals and preemption make of them.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Minutes;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

// Eight vGPUs in two guests, each a quarter of a card: two GPUs.
class VgpuTest : public EngineReclaimTest {
 protected:
  VgpuTest() {
    std::vector<NodeFacts> guests;
    for (const char* name : {"g1", "g2"}) {
      guests.push_back(test::StockNode(name, 4, "GRID-A100-10C", 10'240));
    }
    Nodes(guests);
  }
  void DeclareTeams(const std::string& each) {
    Declare(
        {.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("a100-40gb", each),
                    Quota("team-b").Under("org").Owns("b").Line("a100-40gb", each)},
         .classes = {Class("train", 2)}});
  }
  int64_t UsedMilli(const std::string& quota) {
    for (const QuotaView& view : engine_.Quotas(now_)) {
      if (view.report.name != quota) continue;
      return view.report.lines.front().line.used.compute / kQuantaPerMilli;
    }
    return -1;
  }
};

TEST_F(VgpuTest, FourQuartersAreOneGpuOfTheTeamsNominal) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("a100-40gb", "1")}, .classes = {}});
  Run(Pod("a", "p1", 3), "g1");
  EXPECT_EQ(UsedMilli("team-a"), 750);
  Run(Pod("a", "p2", 1), "g2");
  EXPECT_EQ(UsedMilli("team-a"), 1000);
  EXPECT_EQ(Try(Pod("a", "p3", 1)), "WaitingForQuota");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(VgpuTest, TheClusterHasTheirParts) {
  DeclareTeams("1");
  for (const QuotaView& view : engine_.Quotas(now_)) {
    EXPECT_EQ(view.oversubscribed, "") << view.report.name;
    EXPECT_THAT(view.absent_models, IsEmpty());
  }
  DeclareTeams("1.5");
  EXPECT_EQ(engine_.Quotas(now_)[0].oversubscribed,
            "quotas promise 3 GPUs of a100-40gb, the cluster has 2");
  const EngineTotals totals = engine_.Totals();
  ASSERT_EQ(totals.models.size(), 1U);
  EXPECT_EQ(totals.models[0].model, "a100-40gb");
  EXPECT_EQ(totals.models[0].gpus, 8);
  EXPECT_EQ(totals.models[0].capacity, MilliGpu::Of(2000));
}

TEST_F(VgpuTest, WhatIsLentComesBack) {
  DeclareTeams("1");
  Run(Pod("a", "own", 4, "train"), "g1");
  Pass(Minutes(1));
  Run(Pod("a", "lent", 4, "train"), "g2");
  EXPECT_EQ(UsedMilli("team-a"), 2000);
  const PodRequest wants = Pod("b", "wants", 4, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/1 for wants from lent"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
