// How to divide a fleet: each row is a fleet, what was asked of it, and the split that is advised.
#include "scheduler/advice/fleet_split.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kT4Mib = 15360;

AdviceNode AdviceOf(const NodeFacts& facts) {
  AdviceNode node;
  node.name = facts.name;
  node.inventory = BuildInventory(facts, 0);
  node.load.Reset(node.inventory);
  return node;
}

DemandRow Row(const DemandKind& kind, int64_t now, int64_t peak = 0) {
  return {kind, now, 0, std::max(peak, now), now * 1000, now};
}
DemandKind Whole(const std::string& workload_class, int64_t gpus = 1) {
  return {workload_class, "", "", gpus, 1000, 0};
}
DemandKind Mig(const std::string& workload_class, const std::string& profile) {
  return {workload_class, "", profile, 1, 0, 0};
}
DemandKind KindOfShare(const std::string& workload_class, int64_t milli, int64_t mib = 0) {
  return {workload_class, "", "", 1, milli, mib};
}
DemandKind On(DemandKind kind, const std::string& models) {
  kind.models = models;
  return kind;
}

AdviceCase Fleet(std::vector<AdviceNode> nodes, std::vector<DemandRow> demand) {
  AdviceCase fleet;
  fleet.now = At(0);
  fleet.demand_since = At(0) - std::chrono::hours(5);
  fleet.nodes = std::move(nodes);
  fleet.demand = std::move(demand);
  return fleet;
}

// "h100: 4 whole [4 x 1 GPU (training)] | 3 of 7x 1g.10gb [...] | spare 3 | short 1 x 1 GPU"
std::string TextOf(const SplitModel& model) {
  std::string text = model.model + ":";
  for (const SplitPart& part : model.parts) {
    switch (part.use) {
      case SplitPart::Use::kWhole:
        text += fmt::format(" {} whole", part.gpus);
        break;
      case SplitPart::Use::kMig:
        text += fmt::format(" {} of {}", part.gpus, GeometryText(part.geometry));
        break;
      case SplitPart::Use::kTimeSliced:
        text += fmt::format(" {} by {}", part.gpus, part.replicas);
        break;
    }
    text += fmt::format(" [{}] |", part.serves);
  }
  text += fmt::format(" spare {}", model.spare);
  for (const std::string& shortage : model.short_of) text += " | short " + shortage;
  return text;
}

std::vector<std::string> Split(const AdviceCase& fleet) {
  std::vector<std::string> texts;
  for (const SplitModel& model : AdviseSplit(fleet).models) texts.push_back(TextOf(model));
  return texts;
}

TEST(FleetSplit, AnswersTheClassicQuestion) {
  const std::string answer =
      "h100: 4 whole [4 x 1 GPU (training)] | 3 of 7x 1g.10gb [20 x 1g.10gb (inference-prod)] |"
      " 3 by 10 [30 x 1/10 GPU (notebook)] | spare 0";
  // Ten GPUs, 4 trainings, 20 small models, 30 notebooks; the small models said in three ways.
  for (const DemandKind& small :
       {Mig("inference-prod", "1g.10gb"), KindOfShare("inference-prod", 142),
        KindOfShare("inference-prod", 0, 9984)}) {
    const AdviceCase fleet =
        Fleet({AdviceOf(StockNode("a", 8)), AdviceOf(StockNode("b", 2))},
              {Row(small, 20), Row(Whole("notebook"), 30), Row(Whole("training"), 4)});
    EXPECT_THAT(Split(fleet), ElementsAre(answer));
    EXPECT_THAT(AdviseSplit(fleet).notes, IsEmpty());
  }
}

TEST(FleetSplit, DividesOneModelAsItsDemandSays) {
  struct Row_ {
    const char* sentence;
    std::vector<DemandRow> demand;
    const char* split;
  };
  const Row_ rows[] = {
      {"nobody wants anything", {}, "h100: spare 8"},
      {"all GPUs of a training count",
       {Row(Whole("training", 2), 3)},
       "h100: 6 whole [3 x 2 GPUs (training)] | spare 2"},
      {"what does not fit is named",
       {Row(Whole("training", 4), 3)},
       "h100: 8 whole [2 x 4 GPUs (training)] | spare 0 | short 1 x 4 GPUs (training)"},
      {"the name says 10 GB, the instance has 9984 MiB",
       {Row(KindOfShare("inference-prod", 142, 10240), 4)},
       "h100: 1 of 4x 1g.20gb [4 x 1g.20gb (inference-prod)] | spare 7"},
      {"a share of a little more than two slices needs three",
       {Row(KindOfShare("inference-prod", 300), 2)},
       "h100: 1 of 2x 3g.40gb [2 x 3g.40gb (inference-prod)] | spare 7"},
      {"large and small instances share GPUs",
       {Row(Mig("", "3g.40gb"), 2), Row(Mig("", "1g.10gb"), 8)},
       "h100: 2 of 3g.40gb + 4x 1g.10gb [8 x 1g.10gb, 2 x 3g.40gb] | spare 6"},
      {"replicas by the size that is asked",
       {Row(KindOfShare("notebook", 250), 5)},
       "h100: 2 by 4 [5 x 1/4 GPU (notebook)] | spare 6"},
      {"replicas by memory where that is scarcer",
       {Row(KindOfShare("notebook", 100, 20000), 5)},
       "h100: 2 by 4 [5 x 1/4 GPU (notebook)] | spare 6"},
      {"a small share goes where a large one left room",
       {Row(KindOfShare("notebook", 250), 3), Row(KindOfShare("notebook", 100), 1)},
       "h100: 1 by 4 [3 x 1/4 GPU (notebook), 1 x 1/10 GPU (notebook)] | spare 7"},
      {"more than half a GPU is a GPU",
       {Row(KindOfShare("notebook", 600), 2)},
       "h100: 2 whole [2 x 1 GPU (notebook)] | spare 6"},
      {"several GPUs at once are never replicas",
       {Row(Whole("notebook", 2), 1)},
       "h100: 2 whole [1 x 2 GPUs (notebook)] | spare 6"},
      {"who goes short is of the lower class",
       {Row(Whole("training"), 8), Row(Mig("inference-prod", "7g.80gb"), 2)},
       "h100: 6 whole [6 x 1 GPU (training)] | 2 of 7g.80gb [2 x 7g.80gb (inference-prod)] |"
       " spare 0 | short 2 x 1 GPU (training)"},
  };
  for (const Row_& row : rows) {
    SCOPED_TRACE(row.sentence);
    EXPECT_THAT(Split(Fleet({AdviceOf(StockNode("a", 8))}, row.demand)), ElementsAre(row.split));
  }
}

TEST(FleetSplit, PutsWorkOnTheModelsThatServeItBest) {
  const std::vector<AdviceNode> nodes = {AdviceOf(StockNode("a", 2)),
                                         AdviceOf(StockNode("b", 2, "Tesla-T4", kT4Mib))};
  struct Row_ {
    const char* sentence;
    std::vector<DemandRow> demand;
    const char* h100;
    const char* t4;
  };
  const Row_ rows[] = {
      {"anything goes on the small cards first",
       {Row(Whole("training"), 3)},
       "h100: 1 whole [1 x 1 GPU (training)] | spare 1",
       "t4: 2 whole [2 x 1 GPU (training)] | spare 0"},
      {"bound work stays where it is bound",
       {Row(On(Whole("training"), "h100"), 1)},
       "h100: 1 whole [1 x 1 GPU (training)] | spare 1",
       "t4: spare 2"},
      {"bound work is put before work that may go anywhere",
       {Row(Whole("training"), 2), Row(On(Whole("training"), "l4,t4"), 1)},
       "h100: 1 whole [1 x 1 GPU (training)] | spare 1",
       "t4: 2 whole [1 x 1 GPU (training), 1 x 1 GPU (training)] | spare 0"},
      {"who prefers MIG gets it although a smaller card would do",
       {Row(KindOfShare("inference-prod", 142), 1)},
       "h100: 1 of 7x 1g.10gb [1 x 1g.10gb (inference-prod)] | spare 1",
       "t4: spare 2"},
      {"a model without MIG gives what the class likes next",
       {Row(On(KindOfShare("inference-prod", 142), "t4"), 8)},
       "h100: spare 2",
       "t4: 2 by 7 [8 x 1/7 GPU (inference-prod)] | spare 0"},
      {"shortage is told of the first choice",
       {Row(Whole("training"), 5)},
       "h100: 2 whole [2 x 1 GPU (training)] | spare 0",
       "t4: 2 whole [2 x 1 GPU (training)] | spare 0 | short 1 x 1 GPU (training)"},
  };
  for (const Row_& row : rows) {
    SCOPED_TRACE(row.sentence);
    EXPECT_THAT(Split(Fleet(nodes, row.demand)), ElementsAre(row.h100, row.t4));
  }
}

TEST(FleetSplit, NamesWhatNoGpuOfTheFleetOffers) {
  const SplitAdvice advice =
      AdviseSplit(Fleet({AdviceOf(StockNode("b", 2, "Tesla-T4", kT4Mib))},
                        {Row(Mig("inference-prod", "1g.10gb"), 3), Row(On(Whole(""), "h100"), 1)}));
  EXPECT_THAT(advice.notes,
              ElementsAre("no GPU of the fleet offers 1g.10gb (inference-prod): 3 pods",
                          "no GPU of the fleet offers what is asked on h100: 1 pod"));
  EXPECT_EQ(advice.models.front().spare, 2);
}

TEST(FleetSplit, RestsOnThePeakOnceThereIsADayOfRecords) {
  AdviceCase fleet = Fleet({AdviceOf(StockNode("a", 8))}, {Row(Whole("training"), 2, 5)});
  EXPECT_THAT(AdviseSplit(fleet).basis, HasSubstr("now"));
  EXPECT_EQ(AdviseSplit(fleet).models.front().spare, 6);
  fleet.demand_since = fleet.now - std::chrono::hours(24);
  EXPECT_THAT(AdviseSplit(fleet).basis, HasSubstr("the last day"));
  EXPECT_EQ(AdviseSplit(fleet).models.front().spare, 3);
  fleet.demand_since = fleet.now - std::chrono::hours(24 * 30);
  EXPECT_THAT(AdviseSplit(fleet).basis, HasSubstr("the last 7 days"));
  fleet.demand_since = Instant();
  EXPECT_THAT(AdviseSplit(fleet).basis, HasSubstr("now"));
}

TEST(FleetSplit, CountsWhatThereIsNow) {
  const SplitAdvice advice =
      AdviseSplit(Fleet({AdviceOf(test::MigNode("a", 4, 1, {{"1g.10gb", 7}, {"3g.40gb", 4}})),
                         AdviceOf(test::SharedNode("b", 2, 4, false))},
                        {}));
  ASSERT_EQ(advice.models.size(), 2u);
  EXPECT_EQ(advice.models[0].whole_now, 1);
  EXPECT_EQ(advice.models[0].mig_now, 3);
  EXPECT_EQ(advice.models[0].gpus, 4);
  EXPECT_EQ(advice.models[1].shared_now, 2);
}

TEST(FleetSplit, OwnClassesRuleWhereTheyAreDeclared) {
  AdviceCase fleet = Fleet({AdviceOf(StockNode("a", 4))}, {Row(Whole("training"), 4)});
  GpuClass training = DefaultClass("training");
  training.sharing = {SharingMode::kTimeSliced};
  fleet.classes = {training};
  EXPECT_THAT(Split(fleet), ElementsAre("h100: 1 by 10 [4 x 1/10 GPU (training)] | spare 3"));
}

}  // namespace THIS_FILE
}  // namespace tranche
