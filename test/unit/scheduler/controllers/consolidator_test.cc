// Emptying nodes on a scripted cluster: what is held and asked when, and when the node is let go.
#include "scheduler/controllers/consolidator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/builders/cluster.h"
#include "test/builders/defrag_case.h"
#include "test/unit/scheduler/controllers/quiet_objects.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;
using test::DefragCase;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Notes : public QuietObjects {
 public:
  std::vector<std::string> notes;
  void Emit(EventWrite event, std::function<void(WriteResult)> done) override {
    notes.push_back(event.name + ": " + event.note);
    done({WriteResult::Kind::kDone, 201, ""});
  }
};

// Node a runs one pod, for which b has room.
class ConsolidatorTest : public testing::Test {
 protected:
  ConsolidatorTest() { Fleet(true, true); }

  void Fleet(bool a_works, bool b_has_room) {
    DefragCase fleet;
    fleet.Node(StockNode("a", 4));
    fleet.Node(StockNode("b", 4));
    if (a_works) fleet.Pod(WholePod("p", 1), "a", 0).moves_to_consolidate = true;
    fleet.Pod(WholePod("q", b_has_room ? 3 : 4), "b", 0);
    built = fleet.Build();
  }
  void Pass(std::chrono::seconds time) {
    for (const Instant end = now + time; now < end; now += 1s) {
      built.now = now;
      consolidator.Tick(now);
    }
  }
  void Waits(const PodRequest& request, Instant since) {
    AdviceWaiter waiter;
    waiter.name = request.name;
    waiter.request = std::make_shared<const PodRequest>(request);
    waiter.since = since;
    built.waiting.push_back(std::move(waiter));
  }
  int Counted(const std::string& outcome) const {
    const std::string page = metrics.Render({});
    const std::string head = "tranche_node_emptyings_total{outcome=\"" + outcome + "\"} ";
    const std::size_t at = page.find(head);
    return at == std::string::npos ? -1 : page[at + head.size()] - '0';
  }

  Instant now{std::chrono::hours(24)};
  bool fresh = true;
  bool wanted = true;
  bool budgets_allow = true;
  AdviceCase built;
  std::vector<std::string> done;
  Notes objects;
  metrics::Metrics metrics;
  Consolidator consolidator{
      objects,
      metrics,
      {[this] { return fresh; }, [this] { return wanted; }, [this] { return built; },
       [this](const NodeName& node, const std::string& why) {
         done.push_back(node.str() + (why.empty() ? " free" : " held"));
       },
       [this](const NodeName& node) {
         if (budgets_allow) done.push_back(node.str() + " left");
         return budgets_allow;
       },
       [this](const NodeName& node) { done.push_back(node.str() + " kept"); }}};
};

TEST_F(ConsolidatorTest, ANodeIsHeldEmptiedKeptEmptyAndLetGo) {
  Pass(1s);
  EXPECT_THAT(done, ElementsAre("a held", "a left"));
  EXPECT_THAT(objects.notes, ElementsAre("a: it is emptied, as other nodes have room for its 1 "
                                         "pod: team/p to b; no new GPU pods come"));
  EXPECT_EQ(consolidator.pending(), 1);
  done.clear();
  Pass(59s);
  EXPECT_THAT(done, ElementsAre("a left")) << "who may be moved is judged anew";
  done.clear();
  Fleet(false, false);
  Pass(30s);
  EXPECT_THAT(done, ElementsAre("a kept"));
  EXPECT_THAT(objects.notes.back(), HasSubstr("it is empty, and kept so for 20 minutes"));
  Pass(19min);
  EXPECT_EQ(consolidator.pending(), 1);
  Pass(1min);
  EXPECT_EQ(done.back(), "a free");
  EXPECT_EQ(consolidator.pending(), 0);
  EXPECT_EQ(Counted("kept"), 1);
}

TEST_F(ConsolidatorTest, WhatWasTakenAwayIsDone) {
  Pass(1s);
  built.nodes.erase(built.nodes.begin());
  built.pods.clear();
  Pass(30s);
  EXPECT_EQ(Counted("gone"), 1);
  EXPECT_EQ(objects.notes.size(), 1U) << "nobody reads the events of a node that is gone";
}

TEST_F(ConsolidatorTest, WhoWaitsForTheNodeGetsIt) {
  Pass(1s);
  Waits(WholePod("moved", 1), now);
  Pass(59s);
  EXPECT_EQ(consolidator.pending(), 1) << "it may be one that was just moved";
  Pass(31s);
  EXPECT_EQ(done.back(), "a free");
  EXPECT_EQ(Counted("needed"), 1);
  EXPECT_THAT(objects.notes.back(), HasSubstr("team/moved waits for its GPUs"));
}

TEST_F(ConsolidatorTest, NothingBeginsWhereSomebodyWaits) {
  Waits(WholePod("w", 4), now);
  Pass(10min);
  EXPECT_THAT(done, IsEmpty());
}

TEST_F(ConsolidatorTest, ItIsGivenUpWhereTheRoomIsTakenAndNotTriedAgainForAnHour) {
  Pass(1s);
  Fleet(true, false);
  Pass(30s);
  EXPECT_EQ(done.back(), "a free");
  EXPECT_EQ(Counted("given_up"), 1);
  Fleet(true, true);
  done.clear();
  Pass(59min);
  EXPECT_THAT(done, IsEmpty());
  Pass(2min);
  EXPECT_THAT(done, ElementsAre("a held", "a left", "a left", "a left"));
}

TEST_F(ConsolidatorTest, WhatDoesNotEndIsGivenUpAfterAnHour) {
  Pass(1s);
  Pass(59min);
  EXPECT_EQ(consolidator.pending(), 1);
  Pass(2min);
  EXPECT_EQ(consolidator.pending(), 0);
  EXPECT_THAT(objects.notes.back(), HasSubstr("it is not empty after 60 minutes"));
}

TEST_F(ConsolidatorTest, BudgetsOfPodsComeFirst) {
  budgets_allow = false;
  Pass(30min);
  EXPECT_THAT(done, ElementsAre("a held", "a free"));
  EXPECT_EQ(consolidator.pending(), 0);
  EXPECT_THAT(objects.notes, IsEmpty());
}

TEST_F(ConsolidatorTest, OffAndOldKnowledgeDoNothing) {
  wanted = false;
  Pass(5min);
  wanted = true;
  fresh = false;
  Pass(5min);
  EXPECT_THAT(done, IsEmpty());
  fresh = true;
  Pass(1s);
  wanted = false;
  Pass(30s);
  EXPECT_EQ(done.back(), "a free");
  EXPECT_THAT(objects.notes.back(), HasSubstr("consolidate of the GPUPolicy is Off"));
}

}  // namespace THIS_FILE
}  // namespace tranche
