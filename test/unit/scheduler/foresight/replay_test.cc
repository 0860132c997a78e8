// A past lived again, in minutes from its beginning; times and places are worked out by hand.
#include "scheduler/foresight/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/unit/scheduler/foresight/foresight_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Minutes;
using test::Quota;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::IsEmpty;

const Instant kBegin = test::At(0) + std::chrono::hours(1'000);
Instant Minute(int64_t minutes) { return kBegin + std::chrono::minutes(minutes); }

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() {
    past_.from = kBegin;
    past_.until = Minute(1'000);
    past_.turns.push_back({kBegin, nullptr, {}, {}, {}, {}});
  }
  void Nodes(std::vector<NodeFacts> nodes) { past_.turns[0].nodes = std::move(nodes); }
  PastTurn& Turn(int64_t minute) {
    past_.turns.push_back({Minute(minute), nullptr, {}, {}, {}, {}});
    return past_.turns.back();
  }
  static void Declare(PastTurn& turn, test::Objects objects) {
    turn.set = test::Declare(std::move(objects));
    turn.defaults = GpuPolicy();
  }
  PastWork& Job(const std::string& ns, const std::string& name, int64_t gpus, int64_t created,
                std::optional<int64_t> needs, const std::string& priority_class = "",
                int32_t priority = 0) {
    PastWork& work = past_.work.emplace_back();
    work.pod.request = WholePod(name, gpus);
    work.pod.request.name = {ns, name};
    work.pod.request.priority_class = priority_class;
    work.pod.request.priority = priority;
    work.pod.owner = "owner-of-" + name;
    work.created = Minute(created);
    work.pod.created = work.created;
    if (needs) work.needs = std::chrono::minutes(*needs);
    return work;
  }
  // "name n1 0-60, n2 61-" with "!" behind a run that ended with an eviction.
  std::vector<std::string> Lines() {
    std::ranges::stable_sort(past_.work, {}, &PastWork::created);
    lived_ = LiveAgain(past_);
    EXPECT_TRUE(lived_.complete);
    std::vector<std::string> lines;
    for (const WorkLife& life : lived_.lives) {
      std::string line = life.pod.name;
      for (const WorkRun& run : life.runs) {
        line += fmt::format(" {} {}-{}{}", run.node.str(), In(run.from),
                            run.until ? In(*run.until) : "", run.evicted ? "!" : "");
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }
  static std::string In(Instant at) {
    const int64_t seconds = (at - kBegin) / std::chrono::seconds(1);
    return seconds % 60 == 0 ? fmt::format("{}", seconds / 60)
                             : fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  }

  Past past_;
  LivedPast lived_;
};

TEST_F(ReplayTest, WorkRunsAsLongAsItNeedsAndWaitsInTurn) {
  Nodes({StockNode("n1", 8)});
  Job("a", "one", 8, 0, 60);
  Job("a", "two", 8, 10, 30);
  Job("a", "three", 1, 20, 10);
  EXPECT_THAT(Lines(), ElementsAre("one n1 0-60", "two n1 60-90", "three n1 90-100"));
}

TEST_F(ReplayTest, ANodeThatComesIsUsedFromThenOn) {
  Nodes({StockNode("n1", 8)});
  Turn(30).nodes = {StockNode("n2", 8)};
  Job("a", "one", 8, 0, 60);
  Job("a", "two", 8, 10, 30);
  EXPECT_THAT(Lines(), ElementsAre("one n1 0-60", "two n2 30-60"));
  const PastSums sums = SumOf(lived_, kBegin, Minute(60));
  EXPECT_EQ(sums.offered / 60'000'000, 8 * 60 + 8 * 30) << "GPU-minutes";
  EXPECT_EQ(sums.held / 60'000'000, 8 * 60 + 8 * 30);
}

TEST_F(ReplayTest, WorkOnANodeThatGoesBeginsAgainElsewhere) {
  Nodes({StockNode("n1", 8)});
  Turn(15).nodes = {StockNode("n2", 8)};
  Turn(20).gone = {NodeName("n1")};
  Job("a", "one", 8, 0, 60);
  EXPECT_THAT(Lines(), ElementsAre("one n1 0-20! n2 20-80"));
  const PastSums sums = SumOf(lived_, kBegin, Minute(100));
  EXPECT_EQ(sums.evictions, 1);
  EXPECT_EQ(sums.lost / 60'000'000, 8 * 20);
}

TEST_F(ReplayTest, WhatRanWhenItBeginsRunsOn) {
  Nodes({StockNode("n1", 8)});
  PastWork& runs = Job("a", "runs", 6, -40, 60);
  runs.pod.node = NodeName("n1");
  runs.pod.phase = PodPhase::kRunning;
  runs.pod.bound_at = runs.pod.running_at = Minute(-30);
  Job("a", "waits", 4, -20, 10);
  EXPECT_THAT(Lines(), ElementsAre("runs n1 -30-30", "waits n1 30-40"));
}

TEST_F(ReplayTest, WorkWhoseEndNobodySawHoldsItsPlace) {
  Nodes({StockNode("n1", 8)});
  Job("a", "long", 8, 1, std::nullopt);
  Job("a", "waits", 8, 10, 10).left = Minute(500);
  EXPECT_THAT(Lines(), ElementsAre("long n1 1-", "waits"));
  const PastSums sums = SumOf(lived_, kBegin, Minute(100));
  EXPECT_EQ(sums.pods, 2);
  EXPECT_EQ(sums.started, 1);
}

TEST_F(ReplayTest, WorkThatWasTakenAwayIsInNobodysWayLater) {
  Nodes({StockNode("n1", 8)});
  Job("a", "one", 8, 0, 60);
  Job("a", "gives up", 8, 10, 500).left = Minute(40);
  Job("a", "next", 8, 20, 10);
  EXPECT_THAT(Lines(), ElementsAre("one n1 0-60", "gives up", "next n1 60-70"));
}

TEST_F(ReplayTest, PoliciesHoldFromTheMomentTheyWereWritten) {
  Nodes({StockNode("n1", 8)});
  const auto teams = [](const char* own) {
    Quota team("team-a");
    team.Owns("a").Line("h100", own, "0");
    return test::Objects{.quotas = {team}};
  };
  Declare(past_.turns[0], teams("4"));
  Declare(Turn(30), teams("8"));
  Job("a", "one", 4, 0, 60);
  Job("a", "two", 4, 10, 60);
  EXPECT_THAT(Lines(), ElementsAre("one n1 0-60", "two n1 30-90"));
}

TEST_F(ReplayTest, BorrowedWorkIsEvictedForTheOwnerAndComesBack) {
  Nodes({StockNode("n1", 8)});
  Quota org("org"), a("team-a"), b("team-b");
  a.Under("org").Owns("a").Line("h100", "8");
  b.Under("org").Owns("b").Line("h100", "0");
  Declare(past_.turns[0], {.quotas = {org, a, b}, .classes = {Class("train", 2)}});
  Job("b", "borrows", 8, 0, 60, "train");
  Job("a", "owns", 8, 10, 30, "train");
  // Its grace is half a minute; then the owner runs, and the borrower from the start again.
  EXPECT_THAT(Lines(), ElementsAre("borrows n1 0-10:30! n1 40:30-100:30", "owns n1 10:30-40:30"));
  const PastSums of_b =
      SumOf(lived_, kBegin, Minute(200), [](std::size_t life) { return life == 0; });
  EXPECT_EQ(of_b.evictions, 1);
  EXPECT_EQ(of_b.lost / 30'000'000, 8 * 21) << "ten and a half minutes on eight GPUs";
}

TEST_F(ReplayTest, WaitsAreOfWorkThatCameInTheSpan) {
  Nodes({StockNode("n1", 1)});
  for (int i = 0; i < 11; ++i) Job("a", fmt::format("job-{:02}", i), 1, i == 0 ? 0 : 1, 10);
  Lines();
  const PastSums sums = SumOf(lived_, kBegin, Minute(500));
  EXPECT_EQ(sums.pods, 10) << "the first was there when it began";
  // Those of minute 1 start at 10, 20, ... 100.
  EXPECT_EQ(sums.wait_mean, std::chrono::minutes(54));
  EXPECT_EQ(sums.wait_median, std::chrono::minutes(49));
  EXPECT_EQ(sums.wait_p90, std::chrono::minutes(89));
}

TEST_F(ReplayTest, TheSamePastIsLivedInTheSameWayAndMayBeGivenUp) {
  Nodes({StockNode("n1", 8), StockNode("n2", 4)});
  for (int i = 0; i < 40; ++i) {
    const std::string name = fmt::format("job-{:02}", i);
    Job(i % 2 == 0 ? "a" : "b", name, 1 + i % 4, i * 7 % 90, 5 + i * 11 % 60);
  }
  const std::vector<std::string> first = Lines();
  EXPECT_EQ(Lines(), first);
  const LivedPast half = LiveAgain(past_, [](Instant now) { return now < Minute(60); });
  EXPECT_FALSE(half.complete);
}

TEST_F(ReplayTest, NothingAtAllIsLivedToo) {
  EXPECT_THAT(Lines(), IsEmpty());
  EXPECT_EQ(SumOf(lived_, kBegin, Minute(10)).offered, 0);
}

}  // namespace THIS_FILE
}  // namespace tranche
