// Deletion costs on a scripted cluster: what is written when, and what is taken back.
#include "scheduler/controllers/scaling/deletion_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/builders/cluster.h"
#include "test/builders/defrag_case.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;
using test::DefragCase;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::IsEmpty;
using By = DeletionCostMark::By;

// Pods as the API server has them: what is written is seen by the next look.
class Pods : public PodMarks {
 public:
  void MarkPod(PodMarkWrite write, std::function<void(WriteResult)> done) override {
    const PodMark& cost = write.marks.front();
    written.push_back(write.pod.name + " " + cost.after.value_or("none"));
    const auto pod = std::ranges::find(fleet.pods, write.uid, &AdvicePod::uid);
    if (pod == fleet.pods.end() || refuses) {
      return done({WriteResult::Kind::kRejected, refuses ? 403 : 404, "no"});
    }
    pod->deletion_cost = {};
    if (cost.after) pod->deletion_cost = {By::kUs, std::stoi(*cost.after)};
    done({WriteResult::Kind::kDone, 200, ""});
  }
  AdviceCase fleet;
  bool refuses = false;
  std::vector<std::string> written;
};

class DeletionCostsControllerTest : public testing::Test {
 protected:
  DeletionCostsControllerTest() { Fleet(2); }

  // So many ReplicaSets with a pod on a nearly empty node and one on a full one.
  void Fleet(int sets) {
    DefragCase built;
    for (int i = 0; i < sets; ++i) {
      built.Node(StockNode(std::to_string(100 + 2 * i), 4));
      built.Node(StockNode(std::to_string(101 + 2 * i), 4));
    }
    for (int i = 0; i < sets; ++i) {
      const std::string name = "set" + std::to_string(i);
      built.Pod(WholePod(name + "-few", 1), std::to_string(100 + 2 * i), 0).replica_set = name;
      built.Pod(WholePod(name + "-all", 4), std::to_string(101 + 2 * i), 0).replica_set = name;
    }
    pods.fleet = built.Build();
  }
  void Pass(std::chrono::seconds time) {
    for (const Instant end = now + time; now < end; now += 10s) costs.Tick(now);
  }
  std::vector<std::string> Taken() { return std::exchange(pods.written, {}); }
  int Counted(const std::string& outcome) const {
    const std::string page = metrics.Render({});
    const std::string head = "tranche_deletion_cost_writes_total{outcome=\"" + outcome + "\"} ";
    const std::size_t at = page.find(head);
    return at == std::string::npos ? -1 : std::stoi(page.substr(at + head.size()));
  }

  Instant now{std::chrono::hours(24)};
  bool fresh = true;
  bool wanted = true;
  int looks = 0;
  Pods pods;
  metrics::Metrics metrics;
  DeletionCosts costs{pods,
                      metrics,
                      {[this] { return fresh; }, [this] { return wanted; },
                       [this] {
                         ++looks;
                         return pods.fleet;
                       }}};
};

TEST_F(DeletionCostsControllerTest, WhatWasWrongInTwoLooksIsMendedOnce) {
  Pass(20s);
  EXPECT_THAT(Taken(), IsEmpty()) << "a pod that comes or goes changes much for a moment";
  Pass(20s);
  EXPECT_THAT(Taken(),
              ElementsAre("set0-few -310", "set0-all -10", "set1-few -310", "set1-all -10"));
  Pass(1h);
  EXPECT_THAT(Taken(), IsEmpty());
  EXPECT_EQ(Counted("done"), 4);
  EXPECT_EQ(Counted("failed"), 0);
}

TEST_F(DeletionCostsControllerTest, AFewPodsAMinuteAreWritten) {
  Fleet(40);
  Pass(20s);
  Pass(1min);
  EXPECT_EQ(Taken().size(), 30U);
  Pass(1min);
  EXPECT_EQ(Taken().size(), 30U);
  Pass(2min);
  EXPECT_EQ(Taken().size(), 20U);
}

TEST_F(DeletionCostsControllerTest, NothingIsJudgedOnOldKnowledge) {
  fresh = false;
  Pass(1h);
  EXPECT_EQ(looks, 0);
}

TEST_F(DeletionCostsControllerTest, WhereNobodyWantsThemOursAreTakenBackAlsoAfterARestart) {
  Pass(2min);
  ASSERT_EQ(Taken().size(), 4U);
  const AdvicePod& theirs = pods.fleet.pods.front();
  pods.fleet.pods.front().deletion_cost = {By::kOthers, 0};
  wanted = false;
  DeletionCosts next(pods, metrics,
                     {[] { return true; }, [] { return false; }, [this] { return pods.fleet; }});
  next.Tick(now);
  EXPECT_EQ(Taken().size(), 3U);
  for (const AdvicePod& pod : pods.fleet.pods) EXPECT_NE(pod.deletion_cost.by, By::kUs);
  EXPECT_EQ(theirs.deletion_cost.by, By::kOthers);
  looks = 0;
  Pass(1h);
  EXPECT_THAT(Taken(), IsEmpty());
  EXPECT_EQ(looks, 1) << "where none is left nobody looks";
}

TEST_F(DeletionCostsControllerTest, TheyAreTakenBackAFewAMinuteUntilNoneIsLeft) {
  Fleet(40);
  Pass(5min);
  ASSERT_EQ(Taken().size(), 80U);
  wanted = false;
  Pass(2min);
  EXPECT_EQ(Taken().size(), 60U);
  Pass(1h);
  EXPECT_EQ(Taken().size(), 20U);
}

TEST_F(DeletionCostsControllerTest, WhatIsRefusedIsCountedAndTriedAgain) {
  pods.refuses = true;
  Pass(1min);
  EXPECT_EQ(Taken().size(), 8U);
  EXPECT_EQ(Counted("failed"), 8);
}

}  // namespace THIS_FILE
}  // namespace tranche
