// Which cards a pod gets, by how they are connected and who chooses.
#include "scheduler/index/card_sets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/index/node_state.h"
#include "test/builders/cluster.h"
#include "test/builders/machines.h"

namespace tranche {
namespace THIS_FILE {

using test::WholePod;
using testing::HasSubstr;

// An agent that obeys, on a machine that is told.
NodeFacts Obeying(const Machine& machine) {
  NodeFacts node = test::HamiNode("n", machine.size());
  for (AgentDevice& device : node.agent->devices) {
    device.numa = machine.gpu(device.index).numa.value_or(0);
  }
  node.matrix = machine;
  return node;
}

NodeFacts Stock(const Machine& machine) {
  NodeFacts node = test::StockNode("n", machine.size(), "Tesla-V100-SXM2-32GB", 32768);
  node.matrix = machine;
  return node;
}

NodeZones Zones(NumaPolicy policy, const std::vector<std::pair<int, int>>& capacity_available,
                NumaScope scope = NumaScope::kContainer) {
  NodeZones zones;
  zones.policy = policy;
  zones.scope = scope;
  for (std::size_t i = 0; i < capacity_available.size(); ++i) {
    ZoneCounts zone;
    zone.zone = static_cast<int>(i);
    zone.gpus_capacity = capacity_available[i].first;
    zone.gpus_available = capacity_available[i].second;
    zone.cpus_capacity = zone.cpus_available = MilliCpu::Of(32'000);
    zones.zones.push_back(zone);
  }
  return zones;
}

class SetsNode {
 public:
  explicit SetsNode(NodeFacts facts) { state_.SetFacts(std::move(facts), 0); }

  // "0123", or the reason.
  std::string Try(const PodRequest& request, TopologyWish by_policy = TopologyWish::kPreferred) {
    policy_.topology = by_policy;
    const PlaceRules rules{&policy_};
    const Reason reason = placer_.Place(state_.inventory(), state_.hard(), request, rules, picks_);
    if (reason != Reason::kNone) return std::string(Describe(reason).code);
    GpuSet cards;
    for (const Pick& pick : picks_) cards.Add(pick.card);
    std::string text;
    for (const int card : cards) text += std::to_string(card);
    return text;
  }

  // Of one ask, after Try.
  std::string Of(int ask) const {
    GpuSet cards;
    for (const Pick& pick : picks_) {
      if (pick.ask == ask) cards.Add(pick.card);
    }
    std::string text;
    for (const int card : cards) text += std::to_string(card);
    return text;
  }

  std::string Take(const PodRequest& request) {
    std::string cards = Try(request);
    Holding holding;
    holding.uid = request.uid;
    holding.request = std::make_shared<const PodRequest>(request);
    holding.allocation = ToAllocation(state_.inventory(), request, picks_);
    state_.Hold(std::move(holding));
    return cards;
  }

  // One-GPU pods on these cards.
  void Occupy(const std::vector<int>& cards) {
    for (const int card : cards) {
      const PodRequest request = WholePod(fmt::format("on-{}", card), 1);
      Holding holding;
      holding.uid = request.uid;
      holding.request = std::make_shared<const PodRequest>(request);
      const Card& taken = state_.inventory().cards[static_cast<std::size_t>(card)];
      holding.allocation =
          Allocation{1,
                     "",
                     state_.inventory().knowledge,
                     {{"main", {{card, taken.uuid, kWholeGpu, taken.memory, std::nullopt}}}}};
      state_.Hold(std::move(holding));
    }
  }

  NodeState& state() { return state_; }
  std::string WhichLink(const PodRequest& request) {
    const PlaceRules rules{&policy_};
    return DescribeBrokenSet(
        state_.inventory(), request, policy_,
        Placer::CardQuestionOf(state_.inventory(), state_.hard(), request, rules));
  }

 private:
  NodeState state_;
  GpuPolicy policy_;
  Placer placer_;
  Picks picks_;
};

PodRequest Wants(int gpus, TopologyWish wish) {
  PodRequest request = WholePod(fmt::format("wants-{}", gpus), gpus);
  request.topology = wish;
  return request;
}

TEST(CardSets, OnACubeMeshFourGpusAreAQuad) {
  for (const NodeFacts& facts : {Obeying(test::CubeMesh()), Stock(test::CubeMesh())}) {
    SetsNode node(facts);
    EXPECT_EQ(node.Take(WholePod("first", 4)), "0123");
    EXPECT_EQ(node.Take(WholePod("second", 4)), "4567");
    EXPECT_EQ(node.Try(WholePod("third", 1)), "NoRoom");
  }
}

TEST(CardSets, WhatIsRequiredWaitsRatherThanTakeABrokenSet) {
  struct Row {
    std::vector<int> busy;
    int gpus;
    std::string required, preferred;
  };
  for (const Row& row : std::vector<Row>{
           {{}, 8, "NoSuchSet", "01234567"},
           {{}, 4, "0123", "0123"},
           {{1, 6}, 4, "BrokenSet", "0347"},
           {{1, 6}, 1, "", ""},
           {{1}, 4, "4567", "4567"},
           {{1, 2, 3, 5, 6, 7}, 2, "04", "04"},
           {{0, 2, 3, 4, 5, 7}, 2, "BrokenSet", "16"},
       }) {
    SetsNode node(Obeying(test::CubeMesh()));
    node.Occupy(row.busy);
    if (row.required.empty()) {
      EXPECT_EQ(node.Try(Wants(row.gpus, TopologyWish::kRequired)).size(), 1U);
      continue;
    }
    EXPECT_EQ(node.Try(Wants(row.gpus, TopologyWish::kRequired)), row.required) << row.gpus;
    EXPECT_EQ(node.Try(WholePod("p", row.gpus), TopologyWish::kRequired), row.required)
        << "by policy";
    EXPECT_EQ(node.Try(Wants(row.gpus, TopologyWish::kPreferred)), row.preferred) << row.gpus;
  }
}

TEST(CardSets, TheMissingLinkIsNamed) {
  SetsNode node(Obeying(test::CubeMesh()));
  node.Occupy({1, 6});
  EXPECT_THAT(node.WhichLink(Wants(4, TopologyWish::kRequired)),
              HasSubstr("expected NVLink between any two of 4 GPUs, found SYS between GPU"));
}

TEST(CardSets, OneGpuGoesWhereItSpoilsLeast) {
  SetsNode pairs(Obeying(test::BridgedPairs(8)));
  pairs.Occupy({2});
  EXPECT_EQ(pairs.Try(WholePod("p", 1)), "3") << "the widow of a broken pair";
  EXPECT_EQ(pairs.Try(WholePod("p", 2)), "01") << "a whole pair of the socket that is broken into";
  SetsNode quads(Obeying(test::CubeMesh()));
  quads.Occupy({5});
  EXPECT_THAT(quads.Try(WholePod("p", 1)), testing::AnyOf("4", "6", "7"));
}

TEST(CardSets, AShareOpensTheCardThatBelongsToNobody) {
  SetsNode pairs(Obeying(test::BridgedPairs(4)));
  pairs.Occupy({2});
  EXPECT_EQ(pairs.Try(test::HamiPod("half", 1, 7000)), "3");
}

TEST(CardSets, WhereThePluginChoosesItsRuleIsFollowed) {
  SetsNode node(Stock(test::CubeMesh()));
  EXPECT_EQ(node.state().inventory().knowledge, Knowledge::kPredicted);
  node.Occupy({1, 6});
  EXPECT_EQ(node.Try(Wants(4, TopologyWish::kRequired)), "BrokenSet");
  SetsNode untold(test::StockNode("n", 8, "Tesla-V100-SXM2-32GB", 32768));
  EXPECT_EQ(untold.state().inventory().knowledge, Knowledge::kCounts);
  EXPECT_EQ(untold.Try(Wants(4, TopologyWish::kRequired)), "TopologyUnknown");
  EXPECT_EQ(untold.Try(Wants(4, TopologyWish::kPreferred)).size(), 4U);
  EXPECT_EQ(untold.Try(Wants(1, TopologyWish::kRequired)).size(), 1U) << "one is always connected";
}

// All GPUs of a node that has joined an NVLink fabric are connected; of how many links, its label
// does not say.
TEST(CardSets, TheLabelOfAFabricIsAsGoodAsAWord) {
  struct Row {
    std::string clique;
    const char* required;
  };
  for (const Row& row : {Row{"f00d.1", "0123"}, Row{"", "TopologyUnknown"},
                         Row{"00000000-0000-0000-0000-000000000000.0", "TopologyUnknown"}}) {
    NodeFacts facts = test::HamiNode("n", 4);
    facts.product = "NVIDIA-Next";
    facts.labels = LabelText(Labels{{"nvidia.com/gpu.clique", row.clique}});
    SetsNode node(facts);
    EXPECT_EQ(node.Try(Wants(4, TopologyWish::kRequired)), row.required) << row.clique;
  }
  // What was seen counts more, and what the catalogue knows of the board stays.
  NodeFacts seen = Obeying(test::BridgedPairs(4));
  seen.labels = LabelText(Labels{{"nvidia.com/gpu.clique", "f00d.1"}});
  EXPECT_EQ(SetsNode(seen).Try(Wants(4, TopologyWish::kRequired)), "NoSuchSet");
  NodeFacts known = test::StockNode("n", 8);
  known.labels = seen.labels;
  SetsNode catalogue(known);
  EXPECT_EQ(catalogue.state().inventory().links, MachineSource::kCatalogue);
  EXPECT_TRUE(catalogue.state().inventory().links_verified);
}

TEST(CardSets, WhatTheProbeSawWinsOverThePrediction) {
  NodeFacts facts = Stock(test::CubeMesh());
  facts.probe.emplace();
  for (int i = 0; i < 8; ++i) {
    facts.probe->gpus.push_back({i, GpuUuid(fmt::format("GPU-{}", i)), "", i / 4, false, {}});
  }
  SetsNode node(facts);
  EXPECT_EQ(node.Take(WholePod("first", 4)), "0123");
  facts.probe->pods.emplace().push_back({PodName{"team", "first"}, {}});
  for (const int seen : {4, 5, 6, 7}) {
    (*facts.probe->pods)[0].gpus.push_back(GpuUuid(fmt::format("GPU-{}", seen)));
  }
  node.state().SetFacts(facts, 0);
  EXPECT_EQ(node.Try(WholePod("second", 4)), "0123");
}

TEST(CardSets, MinimumLinksAndNics) {
  SetsNode node(Obeying(test::CubeMesh()));
  PodRequest request = WholePod("p", 2);
  request.link_floor = LinkFloor{PathClass::kSys, 2};
  EXPECT_EQ(node.Try(request).size(), 2U);
  node.Occupy({3, 4, 2, 5});
  EXPECT_EQ(node.Try(request), "67");
  node.Occupy({6});
  EXPECT_EQ(node.Try(request), "BrokenSet");
  request.link_floor = LinkFloor{PathClass::kNode, 0};
  EXPECT_EQ(node.Try(request), "01");
  request.link_floor.reset();
  request.nic_floor = PathClass::kPxb;
  EXPECT_EQ(node.Try(request), "NoSuchSet") << "no NIC at all";
}

TEST(CardSets, SingleNumaNodesNeverGetWhatTheKubeletWouldRefuse) {
  struct Row {
    std::vector<std::pair<int, int>> capacity_available;
    int gpus;
    bool fits;
  };
  // A box of 3 + 5, counts alone are known.
  for (const Row& row : std::vector<Row>{
           {{{3, 3}, {5, 5}}, 4, true},
           {{{3, 3}, {5, 3}}, 4, false},
           {{{3, 1}, {5, 1}}, 2, false},
           {{{3, 2}, {5, 1}}, 2, true},
           {{{3, 3}, {5, 5}}, 6, false},
       }) {
    NodeFacts facts = test::StockNode("n", 8, "NVIDIA-A40", 46068);
    facts.zones = Zones(NumaPolicy::kSingleNode, row.capacity_available);
    SetsNode node(facts);
    int shown = 0;
    for (const auto& [capacity, available] : row.capacity_available) shown += capacity - available;
    for (int i = 0; i < shown; ++i) node.Take(WholePod(fmt::format("busy-{}", i), 1));
    node.state().SetUnshown(0);
    EXPECT_EQ(node.Try(WholePod("p", row.gpus)) != "NumaMismatch", row.fits) << row.gpus;
  }
}

TEST(CardSets, WhatTheExporterHasNotShownYetMayBeAnywhere) {
  NodeFacts facts = test::StockNode("n", 8, "NVIDIA-A40", 46068);
  facts.zones = Zones(NumaPolicy::kSingleNode, {{4, 4}, {4, 4}});
  SetsNode node(facts);
  node.Take(WholePod("unseen", 1));
  EXPECT_EQ(node.Try(WholePod("p", 4)), "NumaMismatch") << "the one may be on either side";
  EXPECT_EQ(node.Try(WholePod("p", 3)).size(), 3U);
  node.state().SetUnshown(1);
  EXPECT_EQ(node.Try(WholePod("p", 4)), "NumaMismatch");
  facts.zones->zones[1].gpus_available = 3;
  node.state().SetFacts(facts, 0);
  node.state().SetUnshown(0);
  EXPECT_EQ(node.Try(WholePod("p", 4)).size(), 4U) << "now it is seen on node 1";
}

TEST(CardSets, WhereEachCardIsKnownALateExporterBlocksNoNumaNode) {
  NodeFacts facts = Obeying(test::Switched(8, 4));
  facts.zones = Zones(NumaPolicy::kSingleNode, {{4, 4}, {4, 4}});
  SetsNode node(facts);
  node.Occupy({0});
  node.state().SetUnshown(1);
  EXPECT_EQ(node.Try(WholePod("p", 4)), "4567") << "the one is known to be on the other side";
  node.Occupy({4});
  node.state().SetUnshown(2);
  EXPECT_EQ(node.Try(WholePod("p", 4)), "NumaMismatch");
}

TEST(CardSets, PinnedCpusMustBeOnTheSameNumaNode) {
  NodeFacts facts = test::StockNode("n", 8, "NVIDIA-A40", 46068);
  facts.zones = Zones(NumaPolicy::kSingleNode, {{4, 4}, {4, 4}});
  facts.zones->zones[0].cpus_available = MilliCpu::Of(4'000);
  facts.zones->zones[1].gpus_available = 2;
  SetsNode node(facts);
  for (int i = 0; i < 2; ++i) node.Take(WholePod(fmt::format("busy-{}", i), 1));
  node.state().SetUnshown(0);
  PodRequest request = WholePod("p", 3);
  EXPECT_EQ(node.Try(request).size(), 3U);
  request.containers[0].pinned_cpu = MilliCpu::Of(8'000);
  EXPECT_EQ(node.Try(request), "NumaMismatch");
  facts.zones->policy = NumaPolicy::kBestEffort;
  node.state().SetFacts(facts, 0);
  EXPECT_EQ(node.Try(request).size(), 3U) << "best effort refuses nobody";
}

// A pod that does not care about links spoils as little as it can for those that do.
TEST(CardSets, WhoWantsNoLinksTakesTheWidows) {
  SetsNode node(Obeying(test::BridgedPairs(8)));
  node.Occupy({0, 2});
  EXPECT_EQ(node.Try(Wants(2, TopologyWish::kNone)), "13");
  EXPECT_EQ(node.Try(Wants(2, TopologyWish::kPreferred)), "45");
}

TEST(CardSets, AContainerThatWantsOneNumaNodeWaitsForOne) {
  PodRequest two = WholePod("two", 2), three = WholePod("three", 3), five = WholePod("five", 5);
  for (PodRequest* request : {&two, &three, &five}) request->one_numa_node = true;
  for (const NodeFacts& facts : {Obeying(test::Switched(8, 4)), Stock(test::Switched(8, 4))}) {
    SetsNode node(facts);
    EXPECT_EQ(node.Try(five), "NoSuchSet") << "each side has four";
    node.Occupy({0, 1, 4, 5});
    EXPECT_THAT(node.Try(two), testing::AnyOf("23", "67"));
    EXPECT_EQ(node.Try(three), "NumaMismatch");
    node.Occupy({2, 6});
    EXPECT_EQ(node.Try(two), "NumaMismatch");
  }
}

// A scheduler of the agent's counts ten slots a card; then the books say which cards are where.
TEST(CardSets, AnExporterThatCountsSlotsIsNotTakenForOneOfCards) {
  NodeFacts facts = Obeying(test::Switched(8, 4));
  facts.zones = Zones(NumaPolicy::kSingleNode, {{40, 40}, {40, 40}});
  SetsNode node(facts);
  node.Occupy({0, 1});
  EXPECT_EQ(node.Try(WholePod("p", 3)), "456");
  node.Occupy({4, 5});
  EXPECT_EQ(node.Try(WholePod("p", 3)), "NumaMismatch");
}

// Two containers of two GPUs each, and one that comes before them.
TEST(CardSets, TheKubeletAlignsEachContainerOrTheWholePod) {
  struct Row {
    NumaScope scope;
    int before, each;
    bool fits;
  };
  for (const Row& row :
       {Row{NumaScope::kContainer, 0, 2, true}, Row{NumaScope::kPod, 0, 2, false},
        Row{NumaScope::kPod, 0, 1, true}, Row{NumaScope::kPod, 3, 1, true},
        Row{NumaScope::kPod, 4, 1, false}, Row{NumaScope::kContainer, 4, 1, false}}) {
    NodeFacts facts = test::StockNode("n", 8, "NVIDIA-A40", 46068);
    facts.zones = Zones(NumaPolicy::kSingleNode, {{4, 3}, {4, 3}}, row.scope);
    SetsNode node(facts);
    for (int i = 0; i < 2; ++i) node.Take(WholePod(fmt::format("busy-{}", i), 1));
    node.state().SetUnshown(0);
    PodRequest pod = WholePod("p", row.each);
    pod.containers.push_back({"second", ContainerRole::kApp, row.each});
    pod.asks.push_back(pod.asks[0]);
    pod.asks[1].container = 1;
    if (row.before > 0) {
      pod.containers.push_back({"before", ContainerRole::kInit, row.before});
      pod.asks.push_back(pod.asks[0]);
      pod.asks[2].container = 2;
      pod.asks[2].count = row.before;
    }
    pod.pool_needs[0].count = std::max(2 * row.each, row.before);
    EXPECT_EQ(node.Try(pod) != "NumaMismatch", row.fits)
        << row.before << " before " << row.each << " each";
  }
}

TEST(CardSets, AKubeletThatNobodyTellsTheZonesOfIsAskedNothing) {
  NodeFacts facts = test::StockNode("n", 8, "NVIDIA-A40", 46068);
  facts.zones = Zones(NumaPolicy::kSingleNode, {});
  EXPECT_EQ(SetsNode(facts).Try(WholePod("p", 8)).size(), 8U);
}

TEST(CardSets, ANicThatIsNearNeedsAMachineThatIsKnown) {
  PodRequest request = WholePod("p", 1);
  request.nic_floor = PathClass::kPxb;
  EXPECT_EQ(SetsNode(test::StockNode("n", 8, "NVIDIA-New", 46068)).Try(request), "TopologyUnknown");
  EXPECT_EQ(SetsNode(Stock(test::CubeMesh())).Try(request), "NoSuchSet") << "it has none";
}

TEST(CardSets, WhatIsMissingIsToldInTheWordsOfTheWish) {
  SetsNode obeying(Obeying(test::CubeMesh())), stock(Stock(test::CubeMesh()));
  for (SetsNode* node : {&obeying, &stock}) node->Occupy({1, 6});
  const PodRequest required = Wants(4, TopologyWish::kRequired);
  EXPECT_THAT(obeying.WhichLink(required), testing::EndsWith("in the best set of the free ones"));
  EXPECT_THAT(stock.WhichLink(required), testing::EndsWith("in a set the device plugin may give"));
  EXPECT_EQ(stock.WhichLink(Wants(2, TopologyWish::kRequired)), "") << "nothing is";
  PodRequest floor = WholePod("p", 4);
  floor.link_floor = LinkFloor{PathClass::kSys, 2};
  EXPECT_THAT(obeying.WhichLink(floor), HasSubstr("expected NV2 between any two of 4 GPUs"));
  floor.link_floor = LinkFloor{PathClass::kPix, 0};
  EXPECT_THAT(obeying.WhichLink(floor), HasSubstr("expected PIX or better between"));
  SetsNode unknown(test::StockNode("n", 8, "NVIDIA-New", 46068));
  EXPECT_EQ(unknown.WhichLink(required), "");
}

// The kubelet asks the plugin once for each container, among what is left.
TEST(CardSets, ContainersGetWhatPodsOneAfterAnotherWould) {
  for (const auto& [first, second] : {std::pair(2, 3), std::pair(1, 1), std::pair(4, 2)}) {
    for (const std::vector<int>& busy : {std::vector<int>{}, {1}, {0, 5}}) {
      SetsNode apart(Stock(test::CubeMesh())), together(Stock(test::CubeMesh()));
      apart.Occupy(busy);
      together.Occupy(busy);
      PodRequest pod = WholePod("both", first);
      pod.containers.push_back(pod.containers[0]);
      pod.asks.push_back(pod.asks[0]);
      pod.asks[1].container = 1;
      pod.asks[1].count = second;
      together.Try(pod);
      const std::string of_first = apart.Take(WholePod("first", first));
      const std::string of_second = apart.Try(WholePod("second", second));
      EXPECT_EQ(together.Of(0), of_first) << first << " and " << second;
      EXPECT_EQ(together.Of(1), of_second) << first << " and " << second;
    }
  }
}

TEST(CardSets, AProbesWordIsAnAnswerOnlyToWhatWasAsked) {
  const Inventory inventory = BuildInventory(test::HamiNode("n", 4), 0);
  const std::vector<GpuUuid> two = {GpuUuid("GPU-n-1"), GpuUuid("GPU-n-3")};
  const std::optional<Picks> picks = PicksOn(inventory, WholePod("p", 2), two);
  ASSERT_TRUE(picks.has_value());
  EXPECT_EQ((*picks)[0].card, 1);
  EXPECT_EQ((*picks)[1].card, 3);
  EXPECT_FALSE(PicksOn(inventory, WholePod("p", 3), two).has_value()) << "one is lacking";
  EXPECT_FALSE(PicksOn(inventory, test::HamiPod("p", 2, 1000), two).has_value()) << "shares";
  PodRequest twice = WholePod("p", 2);
  twice.asks.push_back(twice.asks[0]);
  EXPECT_FALSE(PicksOn(inventory, twice, two).has_value()) << "two are lacking";
  twice.asks[0].count = twice.asks[1].count = 1;
  const std::optional<Picks> of_two = PicksOn(inventory, twice, two);
  ASSERT_TRUE(of_two.has_value()) << "of two containers";
  EXPECT_EQ((*of_two)[1].ask, 1);
  EXPECT_EQ((*of_two)[1].card, 3);
  EXPECT_FALSE(PicksOn(inventory, WholePod("p", 1), {GpuUuid("GPU-x")}).has_value());
}

TEST(CardSets, NodesThatDifferInWhichOfEqualCardsAreBusyAreOneState) {
  SetsNode left(Obeying(test::Switched(8, 4))), right(Obeying(test::Switched(8, 4)));
  left.Occupy({0, 5});
  right.Occupy({3, 6});
  std::string one, other;
  left.state().Signature(left.state().hard(), one);
  right.state().Signature(right.state().hard(), other);
  EXPECT_EQ(one, other);
  SetsNode mesh(Obeying(test::CubeMesh())), other_mesh(Obeying(test::CubeMesh()));
  mesh.Occupy({0, 1});
  other_mesh.Occupy({0, 4});
  mesh.state().Signature(mesh.state().hard(), one);
  other_mesh.state().Signature(other_mesh.state().hard(), other);
  EXPECT_NE(one, other);
}

}  // namespace THIS_FILE
}  // namespace tranche
