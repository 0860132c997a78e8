// Nodes that are emptied so that their MIG layout can be changed: when, and when not.
#include <gtest/gtest.h>

#include "test/unit/scheduler/controllers/mig_controller_fixture.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

TEST_F(MigControllerTest, ABusyNodeIsEmptiedWhileTheWindowLastsAndThenCut) {
  MakeBusy(true);
  Pass(10min);
  EXPECT_EQ(holds, Lines{}) << "not yet";
  window_open = true;
  Pass(1s);
  EXPECT_EQ(holds, (Lines{"gpu-1 held", "gpu-1 left"}));
  EXPECT_EQ(mig_controller.emptying(), 1);
  EXPECT_EQ(api.notes, Lines{"it is emptied for another MIG layout: 1 pod may be moved and have "
                             "room elsewhere"});
  Pass(30s);
  EXPECT_EQ(holds.back(), "gpu-1 left") << "who may be moved is judged anew";
  EXPECT_EQ(api.reads, 0);
  LeaveNode();
  Pass(180s);
  EXPECT_EQ(api.labels, Lines{"gpu-1=tranche-7x1g"});
  EXPECT_EQ(holds.back(), "gpu-1 held") << "nobody came between";
  EXPECT_EQ(holds[holds.size() - 2], "gpu-1 kept");
}

TEST_F(MigControllerTest, ANodeThatIsBeingEmptiedIsLetGo) {
  const struct {
    const char* why;
    std::function<void(MigControllerTest&)> happens;
  } table[] = {
      {"mig.window of the GPUPolicy is over",
       [](MigControllerTest& test) { test.window_open = false; }},
      {"mig.window of the GPUPolicy is over",
       [](MigControllerTest& test) { test.mode = MigMode::kAdvise; }},
      {"not all of its work may be moved and has room elsewhere any more",
       [](MigControllerTest& test) { test.fleet.nodes[1].open = false; }},
      {"not all of its work may be moved and has room elsewhere any more",
       [](MigControllerTest& test) { test.fleet.pods[0].moves_for_layout = false; }},
      {"no other layout of it is to be made now",
       [](MigControllerTest& test) {
         test.LeaveNode();
         test.plan.nodes.clear();
       }},
      {"the node is gone, or has no GPUs",
       [](MigControllerTest& test) {
         test.fleet.nodes.erase(test.fleet.nodes.begin());
         test.fleet.pods.clear();
       }},
  };
  const RepartitionPlan whole = plan;
  for (const auto& row : table) {
    SCOPED_TRACE(row.why);
    plan = whole;
    mode = MigMode::kApply;
    window_open = true;
    MakeBusy(true);
    for (int i = 0; i < 130 && mig_controller.emptying() == 0; ++i) Pass(30s);
    ASSERT_EQ(mig_controller.emptying(), 1) << "it is left alone for an hour after another row";
    row.happens(*this);
    Pass(31s);
    EXPECT_EQ(mig_controller.emptying(), 0);
    ASSERT_GE(holds.size(), 2U);
    EXPECT_EQ(holds.back(), "gpu-1 free");
    EXPECT_EQ(holds[holds.size() - 2], "gpu-1 kept");
    EXPECT_EQ(api.notes.back(),
              std::string("it takes GPU pods again, with the layout it has: ") + row.why);
  }
  EXPECT_EQ(api.labels, Lines{});
}

TEST_F(MigControllerTest, NoNodeIsEmptiedWithoutNeedRoomOrConsent) {
  window_open = true;
  MakeBusy(false);
  Pass(5min);
  EXPECT_EQ(holds, Lines{}) << "no room elsewhere";
  MakeBusy(true);
  plan.waiting_served = 0;
  Pass(5min);
  EXPECT_EQ(holds, Lines{}) << "nobody would be served";
  MakeBusy(true);
  budgets_allow = false;
  Pass(5min);
  EXPECT_EQ(holds, (Lines{"gpu-1 held", "gpu-1 free"})) << "budgets of its pods; once an hour";
}

}  // namespace THIS_FILE
}  // namespace tranche
