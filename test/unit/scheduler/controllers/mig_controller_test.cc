// Changes of MIG layouts on a scripted cluster: what is written when, and when the node is let go.
#include "scheduler/controllers/mig_controller.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/controllers/mig_controller_fixture.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;
using Kind = WriteResult::Kind;

TEST_F(MigControllerTest, WritesTheLayoutWaitsForKubeletsAndThenSetsTheLabelOfAHeldNode) {
  Pass(60s);
  ASSERT_TRUE(api.map.has_value());
  EXPECT_NE(api.map->text.find("  tranche-7x1g:\n"), std::string::npos) << api.map->text;
  EXPECT_EQ(api.labels, Lines{}) << "mig-manager would not find the layout yet";
  EXPECT_EQ(holds, Lines{});
  Pass(70s);
  EXPECT_EQ(holds, Lines{"gpu-1 held"});
  EXPECT_EQ(api.labels, Lines{"gpu-1=tranche-7x1g"});
  EXPECT_EQ(mig_controller.pending(), 1);
  EXPECT_EQ(api.notes, Lines{"label nvidia.com/mig.config from all-disabled to tranche-7x1g "
                             "(GPU 0: whole -> 7x 1g.10gb)"});
}

TEST_F(MigControllerTest, LetsTheNodeGoWhenItAdvertisesWhatWasPlanned) {
  PassUntilLabelled();
  Say("success");
  Pass(20s);
  EXPECT_EQ(holds.size(), 1U) << "that is still about the layout before";
  Say("pending");
  Pass(20s);
  Say("success");
  Pass(20s);
  EXPECT_EQ(holds.size(), 1U) << "the device plugin has not told of the instances";
  Cut(7);
  Pass(20s);
  EXPECT_EQ(holds, (Lines{"gpu-1 held", "gpu-1 free"}));
  EXPECT_EQ(mig_controller.pending(), 0);
  EXPECT_EQ(Counted("done"), "1");
  plan.nodes.clear();
  Pass(300s);
  EXPECT_EQ(api.labels.size(), 1U);
}

TEST_F(MigControllerTest, ANodeWithoutDevicesForAWhileIsNotTakenForGone) {
  PassUntilLabelled();
  Say("pending");
  const AdviceCase changing = fleet;
  fleet.nodes.clear();
  Pass(5min);
  EXPECT_EQ(holds, Lines{"gpu-1 held"});
  fleet = changing;
  Say("success");
  Cut(7);
  Pass(10s);
  EXPECT_EQ(Counted("done"), "1");
}

TEST_F(MigControllerTest, AChangeTooQuickToBeSeenPendingIsKnownByWhatTheNodeAdvertises) {
  PassUntilLabelled();
  Say("success");
  Cut(7);
  Pass(20s);
  EXPECT_EQ(Counted("done"), "1");
}

TEST_F(MigControllerTest, AFailedChangeIsNotTriedAgainThereForAnHour) {
  PassUntilLabelled();
  Say("pending");
  Pass(10s);
  Say("failed");
  Pass(10s);
  EXPECT_EQ(holds, (Lines{"gpu-1 held", "gpu-1 free"}));
  EXPECT_EQ(Counted("failed"), "1");
  EXPECT_EQ(api.notes.back(),
            "! MIG layout tranche-7x1g given up for 60 minutes: mig-manager failed");
  Node().mig_config = "all-disabled";
  Node().mig_config_state = "success";
  Pass(55min);
  EXPECT_EQ(api.labels.size(), 1U);
  Pass(10min);
  EXPECT_EQ(api.labels.size(), 2U);
  EXPECT_EQ(api.reads, 2) << "the file may not have been what it failed with";
}

TEST_F(MigControllerTest, AFailureOfAnEarlierChangeIsNotTakenForOneOfThis) {
  Node().mig_config_state = "failed";
  PassUntilLabelled();
  Say("failed");
  Pass(20s);
  EXPECT_EQ(mig_controller.pending(), 1);
  Say("pending");
  Pass(6s);
  Say("failed");
  Pass(6s);
  EXPECT_EQ(Counted("failed"), "1");
}

TEST_F(MigControllerTest, ANodeWithoutAnAnswerStaysHeldAndPeopleAreToldOnce) {
  PassUntilLabelled();
  Say("pending");
  Pass(40min);
  EXPECT_EQ(holds, Lines{"gpu-1 held"});
  EXPECT_EQ(mig_controller.pending(), 1);
  ASSERT_EQ(api.notes.size(), 2U);
  EXPECT_NE(api.notes[1].find("! no end of the change"), std::string::npos) << api.notes[1];
  mode = MigMode::kOff;
  Say("success");
  Cut(7);
  Pass(10s);
  EXPECT_EQ(Counted("done"), "1") << "what was begun is looked after under any policy";
}

TEST_F(MigControllerTest, ALabelNobodyActsOnKeepsTheNodeHeld) {
  PassUntilLabelled();
  Say("success");  // as it was before
  Pass(40min);
  EXPECT_EQ(holds, Lines{"gpu-1 held"});
  EXPECT_EQ(api.notes.size(), 2U);
  Node().mig_config = "all-disabled";
  Pass(10s);
  EXPECT_EQ(Counted("overridden"), "1") << "set back by hand";
}

TEST_F(MigControllerTest, NothingIsBegunOrJudgedOnOldKnowledge) {
  fresh = false;
  PassUntilLabelled();
  EXPECT_EQ(api.reads, 0);
  fresh = true;
  PassUntilLabelled();
  fresh = false;
  Pass(40min);
  EXPECT_EQ(holds, Lines{"gpu-1 held"});
  fresh = true;
  Say("success");
  Cut(7);
  Pass(10s);
  EXPECT_EQ(Counted("done"), "1");
}

TEST_F(MigControllerTest, AnotherLayoutThanPlannedIsToldAfterPatience) {
  PassUntilLabelled();
  Say("pending");
  Pass(10s);
  Say("success");
  Cut(6);
  Pass(5min);
  EXPECT_EQ(mig_controller.pending(), 1);
  Pass(10min);
  EXPECT_EQ(Counted("differs"), "1");
  EXPECT_EQ(holds.back(), "gpu-1 free");
}

TEST_F(MigControllerTest, ALabelThatWasRefusedFreesTheNode) {
  api.label_answers = {{Kind::kRejected, 403, "no right to patch nodes"}};
  PassUntilLabelled();
  EXPECT_EQ(holds, (Lines{"gpu-1 held", "gpu-1 free"}));
  EXPECT_EQ(Counted("refused"), "1");
  EXPECT_NE(api.notes.back().find("403: no right"), std::string::npos) << api.notes.back();
  Pass(20min);
  EXPECT_EQ(api.labels.size(), 1U);
}

TEST_F(MigControllerTest, ALabelWhoseAnswerWasLostIsSetAgainUntilTheNodeShowsIt) {
  api.label_answers = {{Kind::kUnknown, 0, "reset"}, {Kind::kNotSent, 0, "refused"}};
  PassUntilLabelled();
  Pass(20s);
  EXPECT_EQ(api.labels.size(), 3U);
  EXPECT_EQ(holds, Lines{"gpu-1 held"});
  Say("pending");
  Pass(20s);
  EXPECT_EQ(api.labels.size(), 3U);
}

TEST_F(MigControllerTest, ALabelThatNeverReachesTheServerFreesTheNodeAfterPatience) {
  api.label_answers.assign(1000, {Kind::kNotSent, 0, "refused"});
  PassUntilLabelled();
  Pass(15min);
  EXPECT_EQ(holds, (Lines{"gpu-1 held", "gpu-1 free"}));
  EXPECT_EQ(Counted("refused"), "1");
}

TEST_F(MigControllerTest, NothingElseIsDoneWhileAnAnswerIsAwaited) {
  api.label_held = true;
  PassUntilLabelled();
  Pass(10min);
  EXPECT_EQ(api.labels.size(), 1U);
  EXPECT_EQ(holds, Lines{"gpu-1 held"});
  api.held({Kind::kRejected, 404, "not found"});
  Pass(2s);
  EXPECT_EQ(holds.back(), "gpu-1 free");
}

TEST_F(MigControllerTest, ANodeThatIsGoneOrLabelledBySomebodyElseIsLetGo) {
  PassUntilLabelled();
  Say("pending");
  Pass(10s);
  Node().mig_config = "all-1g.10gb";
  Pass(10s);
  EXPECT_EQ(Counted("overridden"), "1");
  EXPECT_EQ(holds.size(), 2U);
  plan.nodes[0].config_name = "tranche-other";
  plan.nodes[0].config_yaml = "tranche-other: []\n";
  Node().mig_config_state = "success";
  Pass(200s);
  ASSERT_EQ(api.labels.back(), "gpu-1=tranche-other");
  fleet.nodes.clear();
  plan.nodes.clear();
  Pass(15min);
  EXPECT_EQ(Counted("gone"), "1");
  EXPECT_EQ(holds.back(), "gpu-1 free");
}

TEST_F(MigControllerTest, APodThatCameBetweenPlanAndHoldStopsTheChange) {
  at_hold = [this] { Node().load.cards[0].milli = MilliGpu::Of(500); };
  PassUntilLabelled();
  EXPECT_EQ(holds, (Lines{"gpu-1 held", "gpu-1 free"}));
  EXPECT_EQ(api.labels, Lines{});
  EXPECT_EQ(api.notes, Lines{});
}

TEST_F(MigControllerTest, UsedGpusAreNeverTouched) {
  const struct {
    const char* what;
    std::function<void(AdviceCase&)> use;
  } kCases[] = {
      {"a share of the card", [](AdviceCase& f) { f.nodes[0].load.cards[0].slots = 1; }},
      {"a pod whose devices are a guess",
       [](AdviceCase& f) {
         f.pods.emplace_back();
         f.pods[0].known = false;
       }},
      {"a pod on whichever GPU the device plugin chose",
       [](AdviceCase& f) {
         f.nodes[0].inventory.knowledge = Knowledge::kCounts;
         f.pods.emplace_back();
       }},
      {"devices nobody can name", [](AdviceCase& f) { f.nodes[0].load.devices_unknown = true; }},
      {"an instance on the card",
       [](AdviceCase& f) {
         MigPool pool;
         pool.profile = "3g.40gb";
         pool.slots = {{0, 0, 4}};
         f.nodes[0].inventory.pools = {pool};
         f.nodes[0].load.Reset(f.nodes[0].inventory);
         f.nodes[0].load.slots[0][0] = 1;
       }},
      {"a GPU the node does not have",
       [](AdviceCase& f) { f.nodes[0].inventory.cards[0].index = 5; }},
      {"no mig-manager", [](AdviceCase& f) { f.nodes[0].has_mig_manager = false; }},
      {"a change under way elsewhere",
       [](AdviceCase& f) {
         f.nodes.push_back(f.nodes[0]);
         f.nodes[1].mig_config_state = "rebooting";
       }},
      {"the label is the planned one already",
       [](AdviceCase& f) { f.nodes[0].mig_config = kMigConfig; }},
      {"a node the fleet does not have", [](AdviceCase& f) { f.nodes[0].name = NodeName("x"); }},
  };
  const AdviceCase idle = fleet;
  for (const auto& c : kCases) {
    fleet = idle;
    c.use(fleet);
    PassUntilLabelled();
    EXPECT_EQ(api.reads, 0) << c.what;
    EXPECT_EQ(holds, Lines{}) << c.what;
  }
  fleet = idle;
  plan.nodes[0].guards = {"a reason"};
  PassUntilLabelled();
  EXPECT_EQ(api.reads, 0);
}

TEST_F(MigControllerTest, NothingIsWrittenUnlessThePolicySaysApply) {
  for (const MigMode other : {MigMode::kOff, MigMode::kAdvise}) {
    mode = other;
    PassUntilLabelled();
  }
  EXPECT_EQ(api.reads, 0);
  EXPECT_EQ(api.labels, Lines{});
}

TEST_F(MigControllerTest, AFileThatIsNotToBeHadStopsEverythingBeforeTheNodeIsHeld) {
  api.map = {ConfigMapLookup::Kind::kFailed, "", "", "403 no right"};
  Pass(10min);
  EXPECT_EQ(api.reads, 2) << "asked for rarely";
  api.map = {ConfigMapLookup::Kind::kFound, "mig-configs: {}", "1", ""};
  Pass(10min);
  EXPECT_NE(api.notes.back().find("cannot take the layout"), std::string::npos);
  EXPECT_EQ(holds, Lines{});
}

TEST_F(MigControllerTest, AFileThatChangedBetweenIsReadAgain) {
  api.put_answer = {Kind::kRejected, 409, "conflict"};
  Pass(40s);
  EXPECT_EQ(api.reads, 2);
  EXPECT_EQ(api.notes, Lines{});
  api.put_answer = {Kind::kRejected, 403, "no right"};
  Pass(5min);
  EXPECT_EQ(api.reads, 3) << "not there again for an hour";
  EXPECT_EQ(holds, Lines{});
}

TEST_F(MigControllerTest, ALayoutThatIsInTheFileIsNotWrittenAgain) {
  api.map = {ConfigMapLookup::Kind::kFound,
             "version: v1\nmig-configs:\n  tranche-7x1g:\n    - devices: [0]\n", "5", ""};
  api.put_answer = {Kind::kRejected, 500, "must not be asked"};
  PassUntilLabelled();
  EXPECT_EQ(api.labels.size(), 1U);
}

}  // namespace THIS_FILE
}  // namespace tranche
