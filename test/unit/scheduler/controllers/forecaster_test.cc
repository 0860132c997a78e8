// What making a forecast asks of the engine.
#include "scheduler/controllers/forecaster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HandMovedClock : public Clock {
 public:
  Instant Now() const override { return now; }
  Instant now{std::chrono::hours(1)};
};

class ForecasterTest : public ::testing::Test {
 protected:
  static constexpr int kNodes = 200;

  ForecasterTest() {
    host_.With([](Engine& engine, Instant now) {
      for (int i = 0; i < kNodes; ++i) {
        engine.UpsertNode(test::StockNode(fmt::format("n{}", i), 8), now);
      }
    });
  }
  PodFacts Waiting(const std::string& name, int64_t gpus = 1) const {
    PodFacts pod;
    pod.request = test::WholePod(name, gpus);
    pod.request.name = {"a", name};
    pod.request.uid = PodUid(name);
    pod.created = clock_.now;
    return pod;
  }
  void Upsert(const PodFacts& pod) {
    host_.With([&pod](Engine& engine, Instant now) { engine.UpsertPod(pod, now); });
  }
  // How often the engine was held for it.
  int64_t HoldsOfFresh() {
    const int64_t before = Holds();
    forecaster_.Fresh();
    return Holds() - before;
  }
  std::vector<std::string> Told() const {
    std::vector<std::string> names;
    for (const auto& [name, forecast] : forecaster_.Latest()->pods) names.push_back(name.str());
    return names;
  }

  HandMovedClock clock_;
  EngineHost host_{EngineOptions{}, clock_, nullptr, [] { return true; }};
  RunNotes runs_;
  Forecaster forecaster_{host_, runs_};

 private:
  int64_t Holds() {
    int64_t holds = 0;
    for (const metrics::HoldRow& row : host_.Holds()) {
      if (row.caller == EngineCallerName(EngineCaller::kForesight)) holds += row.holds;
    }
    return holds;
  }
};

TEST_F(ForecasterTest, AFleetInWhichNobodyWaitsIsNotCopied) {
  EXPECT_LE(HoldsOfFresh(), 2);
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(ForecasterTest, OneThatIsToBeAskedAboutAnyMomentIsForetoldWhenItWasNot) {
  Upsert(Waiting("p"));
  EXPECT_LE(HoldsOfFresh(), 2);
  EXPECT_THAT(Told(), IsEmpty());
  clock_.now += Forecaster::kAskedBy + Millis(1);
  EXPECT_GT(HoldsOfFresh(), 10);
  EXPECT_THAT(Told(), ElementsAre("a/p"));
}

TEST_F(ForecasterTest, OneThatWasRefusedIsForetoldAtOnceAndForgottenOnceItIsGone) {
  const PodFacts pod = Waiting("p", 9);
  Upsert(pod);
  host_.With([&pod](Engine& engine, Instant now) {
    const std::string_view nodes[] = {"n0", "n1"};
    FilterAnswer answer;
    engine.Filter(pod.request, nodes, now, answer);
    EXPECT_NE(answer.reason, Reason::kNone);
  });
  EXPECT_GT(HoldsOfFresh(), 10);
  EXPECT_THAT(Told(), ElementsAre("a/p"));
  host_.With([&pod](Engine& engine, Instant now) { engine.DeletePod(pod.request.uid, now); });
  forecaster_.Fresh();
  EXPECT_THAT(Told(), IsEmpty()) << "however long the one before took";
}

}  // namespace THIS_FILE
}  // namespace tranche
