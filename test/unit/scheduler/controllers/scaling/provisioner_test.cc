// ProvisioningRequests beside a model of cluster-autoscaler: what is asked, told and taken back.
#include "scheduler/controllers/scaling/provisioner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "test/builders/cluster.h"
#include "test/unit/scheduler/controllers/quiet_objects.h"
#include "test/unit/scheduler/controllers/scaling/autoscaler_model.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;
using test::AutoscalerModel;
using test::WholePod;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = ProvisioningList::Kind;
using State = ProvisioningState;

class Notes : public QuietObjects {
 public:
  std::vector<std::string> notes;
  void Emit(EventWrite event, std::function<void(WriteResult)> done) override {
    notes.push_back(event.name + ": " + event.note);
    done({WriteResult::Kind::kDone, 201, ""});
  }
};

class ProvisionerTest : public testing::Test {
 protected:
  ProvisionerTest() {
    autoscaler.cluster.now = Instant(std::chrono::hours(24));
    Gang("run", 3);
  }

  // Pods that wait from now on for want of room.
  void Gang(const std::string& gang, int pods) {
    for (int i = 0; i < pods; ++i) {
      PodRequest request = WholePod(gang + "-" + std::to_string(i), 8);
      request.gang = gang;
      AdviceWaiter waiter;
      waiter.name = request.name;
      waiter.uid = request.uid;
      waiter.request = std::make_shared<const PodRequest>(std::move(request));
      waiter.maker = "job-" + gang;
      waiter.since = now();
      waiter.last_reason = i == 0 ? Reason::kGangNoRoom : Reason::kNone;
      autoscaler.cluster.waiting.push_back(std::move(waiter));
    }
  }
  Instant now() const { return autoscaler.cluster.now; }
  // Ours looks, the autoscaler looks, ten seconds pass, ...
  void Pass(std::chrono::seconds time, bool autoscaler_runs = true) {
    for (const Instant end = now() + time; now() < end; autoscaler.cluster.now += 10s) {
      provisioner->Tick(now());
      if (autoscaler_runs) autoscaler.Loop();
    }
  }
  std::set<std::string> Told() const {
    std::set<std::string> told;
    for (const AdviceWaiter& waiter : autoscaler.cluster.waiting) told.insert(waiter.provisioning);
    return told;
  }
  std::unique_ptr<Provisioner> Fresh() {
    return std::make_unique<Provisioner>(
        autoscaler, autoscaler, objects,
        Provisioner::Hooks{[this] { return fresh; }, [this] { return mode; },
                           [this] { return autoscaler.cluster; },
                           [this](const std::vector<ExpectedNode>& nodes) { expected = nodes; }});
  }
  // What explain says of the gang.
  std::string Standing() const {
    const auto found = provisioner->StandingOf(WholePod("run-0", 8).name.ns, "run");
    return found ? fmt::format("{}: {}", NameOf(found->state), SaidOf(*found)) : "none";
  }
  std::vector<std::string> Asked() { return std::exchange(autoscaler.log, {}); }

  bool fresh = true;
  Provisioning mode = Provisioning::kAtomicScaleUp;
  AutoscalerModel autoscaler;
  Notes objects;
  std::vector<ExpectedNode> expected;
  std::unique_ptr<Provisioner> provisioner = Fresh();
  const std::string name = ProvisioningNameOf("run");
};

TEST_F(ProvisionerTest, AGangGetsAllItsNodesAtOnceAndLeavesNothingBehind) {
  Pass(20s, /*autoscaler_runs=*/false);
  EXPECT_THAT(Asked(), ElementsAre("make run"));
  EXPECT_EQ(Standing(), "none") << "it was not seen yet";
  Pass(10s, /*autoscaler_runs=*/false);
  EXPECT_THAT(Told(), ElementsAre(name));
  EXPECT_THAT(expected, IsEmpty());
  EXPECT_EQ(Standing(), "asked: no autoscaler has taken it up yet");
  autoscaler.stock = 3;
  Pass(20s);
  EXPECT_EQ(autoscaler.raised_all_at_once, 3);
  EXPECT_EQ(autoscaler.raised_one_by_one, 0);
  ASSERT_THAT(expected, SizeIs(3)) << "nobody is evicted for any of them meanwhile";
  EXPECT_EQ(expected[0].told, *autoscaler.Find("run")->since);
  EXPECT_THAT(objects.notes,
              ElementsAre(HasSubstr("no autoscaler has taken it up yet"),
                          HasSubstr("nodes for all of its pods are there or on their way "
                                    "(CapacityIsProvisioned)")));
  EXPECT_THAT(objects.notes, Each(HasSubstr("run-0: ProvisioningRequest " + name)));
  EXPECT_EQ(Standing(),
            "provisioned: nodes for all of its pods are there or on their way "
            "(CapacityIsProvisioned)");
  autoscaler.BindGang("run");
  Pass(20s);
  EXPECT_EQ(Standing(), "none");
  EXPECT_THAT(Asked(), ElementsAre("delete run"));
  EXPECT_EQ(autoscaler.size(), 0U);
  EXPECT_THAT(objects.notes, SizeIs(2));
}

TEST_F(ProvisionerTest, NodesForSomeOfItAreNotRaised) {
  Pass(30s, /*autoscaler_runs=*/false);
  autoscaler.stock = 2;
  Pass(10min);
  EXPECT_EQ(autoscaler.stock, 2) << "they would do nothing for a gang of three";
  EXPECT_EQ(autoscaler.Find("run")->state, State::kNotYet);
  EXPECT_THAT(Asked(), ElementsAre("make run"));
  EXPECT_THAT(expected, IsEmpty());
  EXPECT_THAT(objects.notes.back(), HasSubstr("found no room for all of its pods"));
  EXPECT_THAT(objects.notes, SizeIs(2)) << "once a change";
}

TEST_F(ProvisionerTest, WhatIsPlacedInAMomentIsNotAskedFor) {
  Pass(10s);
  autoscaler.BindGang("run");
  Pass(1min);
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(ProvisionerTest, WhoIsRefusedForSomethingElseIsNoLongerAskedFor) {
  Pass(30s, /*autoscaler_runs=*/false);
  ASSERT_THAT(Told(), ElementsAre(name));
  autoscaler.cluster.waiting[1].quota_allows = false;
  Pass(20s, /*autoscaler_runs=*/false);
  EXPECT_THAT(Asked(), ElementsAre("make run", "delete run"));
  EXPECT_THAT(Told(), ElementsAre("")) << "no pod stays out of sight of the autoscaler";
}

TEST_F(ProvisionerTest, WhatFailedRestsMeanwhileNodesMayComeOneByOne) {
  Pass(30s, /*autoscaler_runs=*/false);
  autoscaler.Find("run")->state = State::kFailed;
  autoscaler.Find("run")->since = now();
  Pass(10s);
  EXPECT_THAT(Told(), ElementsAre(""));
  autoscaler.stock = 1;
  Pass(10s);
  EXPECT_EQ(autoscaler.raised_one_by_one, 1);
  Pass(29min);
  EXPECT_THAT(Asked(), ElementsAre("make run"));
  autoscaler.stock = 3;
  Pass(2min, /*autoscaler_runs=*/false);
  EXPECT_THAT(Asked(), ElementsAre("delete run", "make run"));
  EXPECT_THAT(Told(), ElementsAre(name));
}

TEST_F(ProvisionerTest, NodesThatDidNotComeInTimeAreNoLongerExpected) {
  autoscaler.stock = 3;
  Pass(30s, /*autoscaler_runs=*/false);
  Pass(20s);
  ASSERT_THAT(expected, SizeIs(3));
  expected.clear();
  Pass(11min);
  EXPECT_EQ(autoscaler.Find("run")->state, State::kExpired);
  EXPECT_THAT(Told(), ElementsAre(""));
  expected.clear();
  Pass(1min);
  EXPECT_THAT(expected, IsEmpty());
  EXPECT_THAT(objects.notes.back(), HasSubstr("its nodes are no longer kept"));
}

TEST_F(ProvisionerTest, ARequestThatOnlyChecksKeepsNobodyFromRaisingNodes) {
  mode = Provisioning::kCheckCapacity;
  Pass(1min);
  EXPECT_EQ(autoscaler.Find("run")->state, State::kNotYet);
  EXPECT_THAT(Told(), ElementsAre(""));
  autoscaler.stock = 3;
  Pass(10s);
  EXPECT_EQ(autoscaler.raised_one_by_one, 3);
  autoscaler.room = 3;
  Pass(20s);
  EXPECT_EQ(autoscaler.Find("run")->state, State::kProvisioned);
  EXPECT_THAT(Told(), ElementsAre(name)) << "what is booked is theirs";
}

TEST_F(ProvisionerTest, ARestartGoesOnWithWhatIsThereAndTellsNothingTwice) {
  Pass(30s, /*autoscaler_runs=*/false);
  Asked();
  objects.notes.clear();
  // Its last life ended before all pods were told.
  autoscaler.cluster.waiting[2].provisioning.clear();
  provisioner = Fresh();
  Pass(10s, /*autoscaler_runs=*/false);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_THAT(Told(), ElementsAre(name));
  EXPECT_THAT(objects.notes, IsEmpty());
  autoscaler.stock = 3;
  Pass(20s);
  EXPECT_THAT(expected, SizeIs(3));
  EXPECT_THAT(objects.notes, SizeIs(1));
}

TEST_F(ProvisionerTest, WhereThePolicySaysOffOursGoAndThenNobodyLooks) {
  Pass(30s, /*autoscaler_runs=*/false);
  mode = Provisioning::kOff;
  provisioner = Fresh();
  Pass(20s, /*autoscaler_runs=*/false);
  EXPECT_THAT(Asked(), ElementsAre("make run", "delete run"));
  EXPECT_THAT(Told(), ElementsAre(""));
  Pass(10s);
  autoscaler.lists = 0;
  Pass(1h);
  EXPECT_EQ(autoscaler.lists, 0);
}

TEST_F(ProvisionerTest, AnotherModeIsAnotherRequest) {
  Pass(30s, /*autoscaler_runs=*/false);
  mode = Provisioning::kCheckCapacity;
  Pass(2min, /*autoscaler_runs=*/false);
  EXPECT_THAT(Asked(), ElementsAre("make run", "delete run", "make run"));
  EXPECT_EQ(autoscaler.Find("run")->provisioning_class, "check-capacity.autoscaling.x-k8s.io");
}

TEST_F(ProvisionerTest, AGangThatGrewIsAskedForAnew) {
  Pass(30s, /*autoscaler_runs=*/false);
  Gang("run", 4);
  autoscaler.cluster.waiting.erase(autoscaler.cluster.waiting.begin(),
                                   autoscaler.cluster.waiting.begin() + 3);
  Pass(2min, /*autoscaler_runs=*/false);
  EXPECT_THAT(Asked(), ElementsAre("make run", "delete run", "make run"));
  EXPECT_EQ(autoscaler.Find("run")->pods, 4);
}

TEST_F(ProvisionerTest, WhoUsesARequestOfSomebodyElseIsLeftToHim) {
  autoscaler.cluster.waiting[1].provisioning = "kueue-job-1";
  Pass(1min);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_EQ(autoscaler.cluster.waiting[1].provisioning, "kueue-job-1");
  EXPECT_EQ(autoscaler.marks, 0);
}

TEST_F(ProvisionerTest, AFewAMinuteAndSoManyAtATimeAreAsked) {
  for (int i = 0; i < 70; ++i) Gang("more-" + std::to_string(i), 1);
  Pass(1min, /*autoscaler_runs=*/false);
  EXPECT_EQ(autoscaler.size(), 6U);
  Pass(20min, /*autoscaler_runs=*/false);
  EXPECT_EQ(autoscaler.size(), 50U);
}

TEST_F(ProvisionerTest, WhatOthersMadeWithOurLabelGoesAndKeepsNobodyOut) {
  for (int i = 0; i < 120; ++i) {
    ProvisioningWrite forged;
    forged.name = {"stranger", "forged-" + std::to_string(i)};
    forged.gang = "forged";
    autoscaler.Provision(forged, [](const WriteResult&) {});
  }
  Asked();
  Pass(20s, /*autoscaler_runs=*/false);
  EXPECT_EQ(autoscaler.size(), 21U) << "fifty a look";
  EXPECT_NE(autoscaler.Find("run"), nullptr);
  Pass(10s, /*autoscaler_runs=*/false);
  EXPECT_EQ(autoscaler.size(), 1U);
}

TEST_F(ProvisionerTest, WhatIsRefusedIsTriedOnceAMinuteAndKeepsNobodyWaiting) {
  autoscaler.takes_requests = false;
  for (int i = 0; i < 11; ++i) Gang("more-" + std::to_string(i), 1);
  Pass(3min + 20s, /*autoscaler_runs=*/false);
  const std::vector<std::string> asked = Asked();
  EXPECT_LE(asked.size(), 24U);
  EXPECT_EQ(std::set<std::string>(asked.begin(), asked.end()).size(), 12U);
  EXPECT_THAT(Told(), ElementsAre(""));
}

TEST_F(ProvisionerTest, WithoutTheDefinitionOrTheRightNothingIsAsked) {
  for (const Kind kind : {Kind::kNoSuchKind, Kind::kForbidden, Kind::kFailed}) {
    autoscaler.kind = kind;
    Pass(1min);
    EXPECT_THAT(Asked(), IsEmpty());
  }
  mode = Provisioning::kOff;
  for (const Kind kind : {Kind::kNoSuchKind, Kind::kForbidden}) {
    autoscaler.kind = kind;
    provisioner = Fresh();
    Pass(10s);
    autoscaler.lists = 0;
    Pass(1h);
    EXPECT_EQ(autoscaler.lists, 0) << "nor does anybody look for what cannot be there";
  }
}

TEST_F(ProvisionerTest, AnAnswerIsToldOnThroughAFailureAndNotWithoutTheRight) {
  Pass(30s, /*autoscaler_runs=*/false);
  autoscaler.kind = Kind::kFailed;
  Pass(10s);
  EXPECT_EQ(Standing(), "asked: no autoscaler has taken it up yet") << "as it was seen last";
  autoscaler.kind = Kind::kForbidden;
  Pass(10s);
  EXPECT_EQ(Standing(), "none");
}

TEST_F(ProvisionerTest, PodsAreNotKeptOutOfSightWhereTheDefinitionIsGone) {
  Pass(30s, /*autoscaler_runs=*/false);
  ASSERT_THAT(Told(), ElementsAre(name));
  autoscaler.Unprovision(*autoscaler.Find("run"), [](const WriteResult&) {});
  autoscaler.kind = Kind::kNoSuchKind;
  Pass(10s, /*autoscaler_runs=*/false);
  EXPECT_THAT(Told(), ElementsAre(""));
}

TEST_F(ProvisionerTest, NothingIsJudgedOnOldKnowledgeOrWithoutAnAnswer) {
  fresh = false;
  Pass(1h);
  EXPECT_EQ(autoscaler.lists, 0);
  fresh = true;
  autoscaler.answers = false;
  Pass(3min);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_LE(autoscaler.lists, 4) << "one at a time, given up after a minute";
  // An answer that comes when nobody waits any more.
  provisioner.reset();
  for (const auto& done : autoscaler.unanswered) done({});
}

TEST_F(ProvisionerTest, ScrapesCountRequestsByWhatIsSaidOfThem) {
  metrics::Metrics metrics;
  metrics::Scrape first;
  provisioner->AddTo(first);
  EXPECT_THAT(metrics.Render(first),
              HasSubstr("tranche_provisioning_requests{state=\"failed\"} 0\n"));
  Pass(30s);
  metrics::Scrape scrape;
  provisioner->AddTo(scrape);
  EXPECT_THAT(metrics.Render(scrape),
              HasSubstr("tranche_provisioning_requests{state=\"not_yet\"} 1\n"));
  EXPECT_THAT(metrics.Render({}), testing::Not(HasSubstr("tranche_provisioning_requests")));
}

TEST(ProvisioningNames, AreNamesOfObjectsWhateverTheGangIs) {
  EXPECT_EQ(ProvisioningNameOf(""), "tranche-cbf29ce484222325");
  EXPECT_EQ(ProvisioningNameOf("a"), "tranche-af63dc4c8601ec8c") << "FNV-1a's own vector";
  EXPECT_NE(ProvisioningNameOf("jobset/a"), ProvisioningNameOf("a"));
  EXPECT_THAT(ProvisioningNameOf(std::string(100'000, '/') + "\n\"\xff"), SizeIs(24));
}

}  // namespace THIS_FILE
}  // namespace tranche
