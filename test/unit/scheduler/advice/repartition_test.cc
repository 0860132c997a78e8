// Which idle GPUs are cut anew: each row is a node, what waits, and the steps that are planned.
#include "scheduler/advice/repartition.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/advice/geometry_choice.h"
#include "scheduler/advice/geometry_config.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::MigCount;
using test::MigNode;
using test::MigPod;
using test::StockNode;
using test::WholePod;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A node that mig-manager may cut.
AdviceNode Node(NodeFacts facts) {
  AdviceNode node;
  node.name = facts.name;
  node.inventory = BuildInventory(facts, 0);
  node.load.Reset(node.inventory);
  node.mig_strategy = MigStrategy::kMixed;
  node.has_mig_manager = true;
  node.mig_config_state = "success";
  return node;
}

// The pod holds devices of the node.
void Take(AdviceNode& node, const PodRequest& request) {
  const GpuPolicy policy;
  Placer placer;
  Picks picks;
  PlaceRules rules;
  rules.policy = &policy;
  ASSERT_EQ(placer.Place(node.inventory, node.load, request, rules, picks), Reason::kNone);
  AddUse(node.load, UseOf(request, picks));
  for (const PoolNeed& need : request.pool_needs) {
    const CountedKey* key = node.inventory.FindKey(need.key);
    node.load.keys[static_cast<std::size_t>(key - node.inventory.keys.data())] += need.count;
  }
}

AdviceWaiter Waits(const PodRequest& request, int64_t seconds = 600) {
  AdviceWaiter waiter;
  waiter.name = request.name;
  waiter.uid = request.uid;
  waiter.request = std::make_shared<const PodRequest>(request);
  waiter.since = At(-seconds);
  return waiter;
}

std::vector<AdviceWaiter> Many(int count, const PodRequest& request) {
  return std::vector<AdviceWaiter>(static_cast<std::size_t>(count), Waits(request));
}

std::vector<AdviceWaiter> operator+(std::vector<AdviceWaiter> left,
                                    const std::vector<AdviceWaiter>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

AdviceCase Case(std::vector<AdviceNode> nodes, std::vector<AdviceWaiter> waiting) {
  AdviceCase fleet;
  fleet.now = At(0);
  fleet.nodes = std::move(nodes);
  fleet.waiting = std::move(waiting);
  return fleet;
}

std::vector<std::string> StepsOf(const RepartitionPlan& plan) {
  std::vector<std::string> texts;
  for (const NodeRepartition& node : plan.nodes) {
    for (const RepartitionStep& step : node.steps) {
      texts.push_back(fmt::format("{} {}: {} -> {}", step.node.str(), step.gpu,
                                  GeometryText(step.from), GeometryText(step.to)));
    }
  }
  return texts;
}

TEST(Repartition, CutsIdleGpusForWhatWaits) {
  // Whole cards come first in the inventory of a mixed node, then those with instances.
  const std::vector<MigCount> sevens = {{"1g.10gb", 7}};
  struct Row {
    const char* sentence;
    NodeFacts node;
    std::vector<AdviceWaiter> waiting;
    int64_t served;
    std::vector<std::string> steps;
  };
  const Row rows[] = {
      {"nothing waits", MigNode("a", 2, 2, {}), {}, 0, {}},
      {"what fits already needs no change",
       MigNode("a", 2, 1, sevens),
       Many(7, MigPod("small", "1g.10gb", 1)),
       0,
       {}},
      {"a whole GPU becomes seven",
       MigNode("a", 2, 2, {}),
       Many(7, MigPod("small", "1g.10gb", 1)),
       7,
       {"a 0: whole -> 7x 1g.10gb"}},
      {"two GPUs for eight",
       MigNode("a", 2, 2, {}),
       Many(8, MigPod("small", "1g.10gb", 1)),
       8,
       {"a 0: whole -> 7x 1g.10gb", "a 1: whole -> 7x 1g.10gb"}},
      {"one cut serves large and small",
       MigNode("a", 2, 2, {}),
       Many(1, MigPod("large", "3g.40gb", 1)) + Many(4, MigPod("small", "1g.10gb", 1)),
       5,
       {"a 0: whole -> 3g.40gb + 4x 1g.10gb"}},
      {"a cut GPU becomes whole again",
       MigNode("a", 2, 0, {{"1g.10gb", 14}}),
       Many(1, WholePod("training", 1)),
       1,
       {"a 0: 7x 1g.10gb -> whole"}},
      {"two cut GPUs for a pod of two",
       MigNode("a", 2, 0, {{"1g.10gb", 14}}),
       Many(1, WholePod("training", 2)),
       1,
       {"a 0: 7x 1g.10gb -> whole", "a 1: 7x 1g.10gb -> whole"}},
      {"a cut GPU is cut otherwise",
       MigNode("a", 1, 0, sevens),
       Many(2, MigPod("large", "3g.40gb", 1)),
       2,
       {"a 0: 7x 1g.10gb -> 2x 3g.40gb"}},
      {"no change serves a profile of another board",
       MigNode("a", 2, 2, {}),
       Many(1, MigPod("other", "1g.5gb", 1)),
       0,
       {}},
      {"a board without MIG stays",
       StockNode("a", 2, "Tesla-T4", 15360),
       Many(1, MigPod("small", "1g.10gb", 1)),
       0,
       {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sentence);
    const RepartitionPlan plan = PlanRepartition(Case({Node(row.node)}, row.waiting), {});
    EXPECT_EQ(plan.waiting_served, row.served);
    EXPECT_EQ(StepsOf(plan), row.steps);
    for (const NodeRepartition& node : plan.nodes) EXPECT_THAT(node.guards, IsEmpty());
  }
}

TEST(Repartition, PlansForNobodyWhoWaitsForSomethingElse) {
  const PodRequest small = MigPod("small", "1g.10gb", 1);
  AdviceWaiter quota = Waits(small);
  quota.quota_allows = false;
  AdviceWaiter elsewhere = Waits(small);
  PodRequest bound = small;
  NodeConstraints constraints;
  constraints.selector = {{"zone", "b"}};
  bound.constraints = std::make_shared<const NodeConstraints>(constraints);
  elsewhere.request = std::make_shared<const PodRequest>(bound);
  PodRequest big = small;
  big.cpu = MilliCpu::Of(4000);
  AdviceNode node = Node(MigNode("a", 1, 1, {}));
  node.cpu_capacity = MilliCpu::Of(8000);
  node.cpu_free = MilliCpu::Of(2000);
  for (const AdviceWaiter& waiter : {quota, elsewhere, Waits(small, 59), Waits(big)}) {
    EXPECT_THAT(StepsOf(PlanRepartition(Case({node}, {waiter}), {})), IsEmpty());
  }
  EXPECT_EQ(PlanRepartition(Case({node}, {Waits(small, 60)}), {}).waiting_served, 1);
}

TEST(Repartition, KeepsWithinItsLimits) {
  std::vector<AdviceNode> nodes;
  for (const char* name : {"a", "b", "c"}) nodes.push_back(Node(MigNode(name, 4, 4, {})));
  const AdviceCase fleet = Case(nodes, Many(100, MigPod("small", "1g.10gb", 1)));
  struct Row {
    RepartitionLimits limits;
    std::size_t gpus, nodes;
  };
  for (const Row& row : {Row{{4, 1}, 4, 1}, Row{{3, 2}, 3, 1}, Row{{6, 2}, 6, 2}, Row{{0, 1}, 0, 0},
                         Row{{4, 0}, 0, 0}, Row{{50, 9}, 12, 3}}) {
    const RepartitionPlan plan = PlanRepartition(fleet, row.limits);
    EXPECT_EQ(StepsOf(plan).size(), row.gpus);
    EXPECT_EQ(plan.nodes.size(), row.nodes);
    EXPECT_EQ(plan.waiting_served, std::min<int64_t>(100, static_cast<int64_t>(row.gpus) * 7));
  }
}

TEST(Repartition, LeavesNodesAloneAndSaysWhy) {
  const std::vector<AdviceWaiter> waiting = Many(1, MigPod("small", "1g.10gb", 1));
  const AdviceNode good = Node(MigNode("a", 2, 2, {}));
  const auto note = [&waiting](const AdviceNode& node) {
    const RepartitionPlan plan = PlanRepartition(Case({node}, waiting), {});
    EXPECT_THAT(plan.nodes, IsEmpty());
    return plan.notes.empty() ? "" : plan.notes.front();
  };
  AdviceNode node = good;
  node.has_mig_manager = false;
  EXPECT_THAT(note(node), HasSubstr("has no mig-manager"));
  node = good;
  node.open = false;
  EXPECT_THAT(note(node), HasSubstr("takes no new pods"));
  node = good;
  node.mig_config_state = "pending";
  EXPECT_THAT(note(node), HasSubstr("mig.config.state is pending"));
  node = good;
  node.mig_strategy = MigStrategy::kSingle;
  EXPECT_THAT(note(node), HasSubstr("strategy single"));
  node = good;
  node.mig_strategy = MigStrategy::kNone;
  EXPECT_THAT(note(node), HasSubstr("strategy none"));
  node = good;
  node.load.keys.front() = 1;
  EXPECT_THAT(note(node), HasSubstr("not known"));
  // Planned layouts have an executor of their own, which makes instances one by one.
  NodeFacts planned = MigNode("a", 2, 0, {{"2g.20gb", 6}});
  planned.mig_planned = true;
  node = Node(planned);
  ASSERT_TRUE(node.inventory.planned());
  EXPECT_EQ(note(node), "waiting pods that this plan does not serve: 1");
  node = good;
  node.mig_config_state = "failed";
  EXPECT_THAT(PlanRepartition(Case({node}, waiting), {}).nodes.front().guards,
              ElementsAre(HasSubstr("the last change failed")));
}

TEST(Repartition, TouchesNoUsedGpuAndGuardsNodesWhereUseIsAGuess) {
  AdviceNode busy = Node(MigNode("a", 3, 3, {}));
  Take(busy, WholePod("training", 1));
  const std::vector<AdviceWaiter> waiting = Many(20, MigPod("small", "1g.10gb", 1));
  const RepartitionPlan advice = PlanRepartition(Case({busy}, waiting), {});
  EXPECT_EQ(StepsOf(advice).size(), 2u);
  EXPECT_THAT(advice.nodes.front().guards, ElementsAre(HasSubstr("which 1 of the 3 GPUs")));
  // A node where nothing stands in the way is preferred, though it serves fewer.
  const RepartitionPlan plan =
      PlanRepartition(Case({busy, Node(MigNode("b", 1, 1, {}))}, waiting), {});
  EXPECT_THAT(StepsOf(plan), ElementsAre("b 0: whole -> 7x 1g.10gb"));
  EXPECT_THAT(plan.nodes.front().guards, IsEmpty());
  // One instance in use keeps its GPU.
  AdviceNode cut = Node(MigNode("a", 1, 0, {{"1g.10gb", 7}}));
  Take(cut, MigPod("small", "1g.10gb", 1));
  EXPECT_THAT(StepsOf(PlanRepartition(Case({cut}, Many(1, WholePod("training", 1))), {})),
              IsEmpty());
}

TEST(Repartition, KeepsAWayForALargeProfileThatWaits) {
  const std::vector<AdviceWaiter> waiting =
      Many(9, MigPod("small", "1g.10gb", 1)) + Many(1, MigPod("large", "7g.80gb", 1));
  // The only GPU: seven small ones would be more, but the large one could go nowhere then.
  const RepartitionPlan one = PlanRepartition(Case({Node(MigNode("a", 1, 1, {}))}, waiting), {});
  EXPECT_THAT(StepsOf(one), ElementsAre("a 0: whole -> 7g.80gb"));
  EXPECT_THAT(one.notes, Contains(HasSubstr("team/large goes first")));
  // With another GPU left it still has its way.
  RepartitionLimits limits;
  limits.most_moves = 1;
  const RepartitionPlan two =
      PlanRepartition(Case({Node(MigNode("a", 2, 2, {}))}, waiting), limits);
  EXPECT_THAT(StepsOf(two), ElementsAre("a 0: whole -> 7x 1g.10gb"));
}

DemandRow Demand(const std::string& profile, int64_t now, int64_t mean_milli, int64_t peak) {
  DemandKind kind;
  kind.mig_profile = profile;
  kind.milli = profile.empty() ? 1000 : 0;
  return {kind, now, 0, peak, mean_milli, peak};
}

TEST(Repartition, ActsOnExpectedDemandOnlyWhereNobodyWantedWhatThereIs) {
  const AdviceNode whole = Node(MigNode("a", 1, 1, {}));
  const AdviceNode cut = Node(MigNode("a", 1, 0, {{"1g.10gb", 7}}));
  struct Row {
    const char* sentence;
    AdviceNode node;
    std::vector<DemandRow> demand;
    int64_t milli;
    std::vector<std::string> steps;
  };
  const Row rows[] = {
      {"nothing was asked for", whole, {}, 0, {}},
      {"half way between mean and peak: four",
       whole,
       {Demand("1g.10gb", 0, 2000, 6)},
       4 * 142,
       {"a 0: whole -> 7x 1g.10gb"}},
      {"what runs now has its room", whole, {Demand("1g.10gb", 4, 2000, 6)}, 0, {}},
      {"whole GPUs were wanted too",
       whole,
       {Demand("", 0, 0, 1), Demand("1g.10gb", 0, 2000, 6)},
       0,
       {}},
      {"the present cut is free for it", cut, {Demand("1g.10gb", 0, 2000, 6)}, 0, {}},
      {"the present cut was never wanted",
       cut,
       {Demand("3g.40gb", 0, 2000, 2)},
       2 * 428,
       {"a 0: 7x 1g.10gb -> 2x 3g.40gb"}},
      {"it becomes whole for whole demand",
       cut,
       {Demand("", 0, 1000, 1)},
       1000,
       {"a 0: 7x 1g.10gb -> whole"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sentence);
    AdviceCase fleet = Case({row.node}, {});
    fleet.demand = row.demand;
    const RepartitionPlan plan = PlanRepartition(fleet, {});
    EXPECT_EQ(plan.expected_milli, row.milli);
    EXPECT_EQ(StepsOf(plan), row.steps);
    EXPECT_EQ(plan.waiting_served, 0);
  }
}

TEST(Repartition, BreaksTiesByWhatIsExpected) {
  AdviceCase fleet = Case({Node(MigNode("a", 1, 1, {}))}, Many(1, MigPod("large", "3g.40gb", 1)));
  fleet.demand = {Demand("2g.20gb", 0, 2000, 2)};
  EXPECT_THAT(StepsOf(PlanRepartition(fleet, {})),
              ElementsAre("a 0: whole -> 3g.40gb + 2x 2g.20gb"));
  fleet.demand = {Demand("1g.10gb", 0, 4000, 4)};
  EXPECT_THAT(StepsOf(PlanRepartition(fleet, {})),
              ElementsAre("a 0: whole -> 3g.40gb + 4x 1g.10gb"));
}

TEST(Repartition, WritesWhatMigPartedReads) {
  const AdviceCase fleet =
      Case({Node(MigNode("a", 3, 2, {{"3g.40gb", 2}}))}, Many(7, MigPod("small", "1g.10gb", 1)));
  const RepartitionPlan plan = PlanRepartition(fleet, {});
  ASSERT_EQ(plan.nodes.size(), 1u);
  const NodeRepartition& node = plan.nodes.front();
  EXPECT_EQ(node.config_yaml, node.config_name +
                                  ":\n"
                                  "- devices: [0]\n"
                                  "  mig-enabled: true\n"
                                  "  mig-devices:\n"
                                  "    \"1g.10gb\": 7\n"
                                  "- devices: [1]\n"
                                  "  mig-enabled: false\n"
                                  "- devices: [2]\n"
                                  "  mig-enabled: true\n"
                                  "  mig-devices:\n"
                                  "    \"3g.40gb\": 2\n");
}

TEST(MigPartedConfig, NamesEqualLayoutsEqually) {
  const Geometry sevens{{{"1g.10gb", 7}}};
  const Geometry whole;
  const NodeConfig mixed = MigPartedConfig(std::vector<Geometry>{sevens, whole, sevens});
  EXPECT_THAT(mixed.yaml, HasSubstr("- devices: [0, 2]\n"));
  EXPECT_EQ(mixed.name, MigPartedConfig(std::vector<Geometry>{sevens, whole, sevens}).name);
  EXPECT_NE(mixed.name, MigPartedConfig(std::vector<Geometry>{sevens, sevens, whole}).name);
  EXPECT_EQ(mixed.name.size(), std::string("tranche-").size() + 16);
}

// mig-geometry section 3: the undominated sets of the eight-unit board's plain profiles.
TEST(GeometryChoices, AreTheUndominatedSetsTheDriverCanMake) {
  const MigBoard& board = *FindMigBoard("NVIDIA-A100-80GB-PCIe", Mebibytes::Of(81251));
  std::vector<int> base;
  for (const char* name : {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}) {
    base.push_back(static_cast<int>(FindMigProfile(board, name) - board.profiles.data()));
  }
  std::ranges::sort(base);
  std::vector<std::string> any_order, largest_first;
  for (const GeometryChoice& choice : GeometryChoices(board, base)) {
    (choice.any_order ? any_order : largest_first).push_back(GeometryText(choice.geometry));
  }
  EXPECT_EQ(any_order.size() + largest_first.size(), 12u);
  EXPECT_THAT(any_order, testing::IsSupersetOf({"7g.80gb", "7x 1g.10gb", "2x 3g.40gb"}));
  // The guide shows 1g, 1g, 2g, 3g failing in that order.
  EXPECT_THAT(largest_first, Contains("3g.40gb + 2g.20gb + 2x 1g.10gb"));
  EXPECT_EQ(GeometryText(Geometry()), "whole");
}

}  // namespace THIS_FILE
}  // namespace tranche
