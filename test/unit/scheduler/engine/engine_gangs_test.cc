// Gangs: all or none, close together.
#include <map>
#include <set>
#include <utility>

#include "scheduler/engine/engine.h"
#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineGangsTest : public EngineTest {
 protected:
  EngineGangsTest() { engine_.FinishRestore(now_); }

  // Nodes of 8 GPUs: clique by clique, `nodes` each, named c0-n0, c0-n1, c1-n0, ...
  void Cliques(int cliques, int nodes) {
    std::vector<NodeFacts> all;
    for (int clique = 0; clique < cliques; ++clique) {
      for (int node = 0; node < nodes; ++node) {
        NodeFacts facts = test::StockNode(fmt::format("c{}-n{}", clique, node), 8);
        facts.labels = LabelText(Labels{
            {"nvidia.com/gpu.clique", fmt::format("fabric.{}", clique)},
            {"topology.kubernetes.io/zone", "zone"},
        });
        all.push_back(std::move(facts));
      }
    }
    Nodes(all);
  }

  PodRequest Member(const std::string& gang, int number, int size, int gpus = 8) {
    PodRequest request = test::WholePod(fmt::format("{}-{}", gang, number), gpus);
    request.gang = gang;
    request.gang_size = size;
    request.gang_rank = number;
    return request;
  }

  void See(const PodRequest& request) { engine_.UpsertPod(test::Pending(request), now_); }

  std::vector<PodRequest> SeeGang(const std::string& gang, int size, int gpus = 8,
                                  std::optional<TopologyWish> wish = std::nullopt) {
    std::vector<PodRequest> members;
    for (int i = 0; i < size; ++i) {
      members.push_back(Member(gang, i, size, gpus));
      members.back().topology = wish;
      See(members.back());
    }
    return members;
  }

  // What filter says: the node, else the reason for all of them.
  std::string Ask(const PodRequest& request) {
    const std::vector<std::string> chosen = Filter(request);
    if (chosen.size() > 1) return "several";
    if (!chosen.empty()) return chosen.front();
    return std::string(Describe(answer_.reason).code);
  }

  std::string CliqueOf(const std::string& node) { return node.substr(0, 2); }

  void Run(const PodRequest& request, const std::string& node) {
    ASSERT_TRUE(Place(request, node)) << request.name.str();
    engine_.UpsertPod(test::Bound(request, node, engine_.Pod(request.uid)->allocation), now_);
  }

  static std::string Joined(const std::vector<NodeName>& nodes) {
    std::string text;
    for (const NodeName& node : nodes) text += (text.empty() ? "" : "+") + node.str();
    return text;
  }

  std::vector<std::string> Requeued() {
    std::vector<std::string> names;
    for (const auto& [pod, uid] : std::exchange(engine_.effects().requeue, {}))
      names.push_back(pod.name);
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(EngineGangsTest, MembersWaitUntilAllAreThereThenEachHasItsOwnNode) {
  Cliques(1, 4);
  std::vector<PodRequest> gang;
  for (int i = 0; i < 3; ++i) {
    gang.push_back(Member("train", i, 4));
    See(gang.back());
    EXPECT_EQ(Ask(gang.back()), "GangIncomplete") << i;
  }
  EXPECT_THAT(engine_.Pod(gang[0].uid)->detail,
              HasSubstr("expected 4 pods of gang train, found 3"));
  EXPECT_THAT(engine_.Explain(gang[0].name, now_)->advice, HasSubstr("other pods of the gang"));
  gang.push_back(Member("train", 3, 4));
  See(gang.back());
  std::set<std::string> nodes = {Ask(gang[3])};
  EXPECT_THAT(Requeued(), ElementsAre("train-0", "train-1", "train-2"))
      << "those who were refused come back";
  for (int i = 0; i < 3; ++i) nodes.insert(Ask(gang[static_cast<std::size_t>(i)]));
  EXPECT_EQ(nodes.size(), 4U);
  for (const PodRequest& member : gang) Run(member, Ask(member));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineGangsTest, ViewsTellHowFarAGangIs) {
  const auto views = [this] {
    std::vector<std::string> texts;
    for (const GangView& gang : engine_.GangsAfter("", 16)) {
      static constexpr const char* kStates[] = {"gathering", "waiting", "seated", "running",
                                                "leaving"};
      texts.push_back(fmt::format("{} {} {}/{} waits {} on {}", gang.name.name,
                                  kStates[static_cast<int>(gang.state)], gang.bound, gang.size,
                                  gang.waiting, Joined(gang.nodes)));
    }
    return texts;
  };
  Cliques(1, 2);
  EXPECT_THAT(views(), IsEmpty());
  See(Member("early", 0, 3));
  const auto large = SeeGang("large", 3);
  EXPECT_EQ(Ask(large[0]), "GangNoRoom");
  const auto train = SeeGang("train", 2);
  EXPECT_THAT(views(),
              ElementsAre("early gathering 0/3 waits 1 on ", "large waiting 0/3 waits 3 on ",
                          "train waiting 0/2 waits 2 on "));
  EXPECT_THAT(engine_.GangsAfter("", 16)[0].detail,
              HasSubstr("expected 3 pods of gang early, found 1"));
  const std::string first = Ask(train[0]);
  EXPECT_THAT(views(), testing::Contains("train seated 0/2 waits 2 on c0-n0+c0-n1"));
  Run(train[0], first);
  Run(train[1], Ask(train[1]));
  EXPECT_THAT(views(), testing::Contains("train running 2/2 waits 0 on c0-n0+c0-n1"));
  EXPECT_THAT(engine_.GangsAfter("team/large", 1), testing::SizeIs(1)) << "from there on";
}

TEST_F(EngineGangsTest, AGangOfFourTimesEightLandsInOneCliqueOrNowhere) {
  Cliques(2, 4);
  ASSERT_TRUE(Place(test::WholePod("single", 1), "c0-n2"));
  const auto first = SeeGang("first", 4, 8, TopologyWish::kRequired);
  for (const PodRequest& member : first) {
    EXPECT_EQ(CliqueOf(Ask(member)), "c1") << member.name.name;
  }
  const auto second = SeeGang("second", 4, 8, TopologyWish::kRequired);
  for (const PodRequest& member : second) EXPECT_EQ(Ask(member), "GangNoRoom");
  EXPECT_THAT(engine_.Pod(second[0].uid)->detail,
              HasSubstr("expected room for 4 pods in one NVLink clique, found room for 3 in the "
                        "best (fabric.0)"));
  engine_.DeletePod(PodUid("uid-single"), now_);
  engine_.Tick(now_);
  for (const PodRequest& member : second) EXPECT_EQ(CliqueOf(Ask(member)), "c0");
}

TEST_F(EngineGangsTest, AFabricThatWasNeverFormedJoinsNobody) {
  std::vector<NodeFacts> nodes;
  for (const char* name : {"n0", "n1"}) {
    nodes.push_back(test::StockNode(name, 8));
    nodes.back().labels =
        LabelText(Labels{{"nvidia.com/gpu.clique", "00000000-0000-0000-0000-000000000000.0"}});
  }
  Nodes(nodes);
  const auto gang = SeeGang("train", 2, 8, TopologyWish::kRequired);
  EXPECT_EQ(Ask(gang[0]), "GangNoRoom");
}

TEST_F(EngineGangsTest, TwoGangsThatRaceNeverHoldHalfEach) {
  Cliques(1, 6);
  const auto left = SeeGang("left", 4);
  const auto right = SeeGang("right", 4);
  std::map<std::string, int> placed;
  for (std::size_t i = 0; i < 4; ++i) {
    for (const PodRequest* member : {&left[i], &right[i]}) {
      const std::string node = Ask(*member);
      if (node == "GangNoRoom") continue;
      Run(*member, node);
      ++placed[member->gang];
    }
  }
  EXPECT_EQ(placed, (std::map<std::string, int>{{"left", 4}}));
}

TEST_F(EngineGangsTest, OthersDoNotGetWhatIsKeptForAMember) {
  Cliques(1, 2);
  const auto gang = SeeGang("train", 2);
  EXPECT_NE(Ask(gang[0]), "GangNoRoom");
  EXPECT_EQ(Ask(test::WholePod("other", 1)), "NoRoom");
  EXPECT_FALSE(Place(test::WholePod("pushy", 1), "c0-n0"));
}

TEST_F(EngineGangsTest, AMemberIsBoundOnlyWhereItsPlaceIs) {
  Cliques(1, 3);
  const auto gang = SeeGang("train", 2);
  const std::string node = Ask(gang[0]);
  EXPECT_EQ(ReasonOn(gang[0], node == "c0-n2" ? "c0-n1" : "c0-n2"), "GangElsewhere");
  EXPECT_EQ(Bind(gang[0], "c0-n2").reason,
            node == "c0-n2" ? Reason::kNone : Reason::kGangElsewhere);
}

TEST_F(EngineGangsTest, ATimedOutGangGivesEverythingBack) {
  Cliques(1, 2);
  const auto gang = SeeGang("train", 2);
  PodFacts running = test::Bound(gang[0], Ask(gang[0]));
  ASSERT_TRUE(Place(gang[0], running.node.str()));
  running.allocation = engine_.Pod(gang[0].uid)->allocation;
  engine_.UpsertPod(running, now_);
  EXPECT_TRUE(std::exchange(engine_.effects().reclaims, {}).evictions.empty());
  now_ += std::chrono::seconds(119);
  engine_.Tick(now_);
  EXPECT_EQ(Ask(test::WholePod("other", 8)), "NoRoom") << "still kept for the second";
  now_ += std::chrono::seconds(2);
  engine_.Tick(now_);
  EXPECT_NE(Ask(test::WholePod("other", 8)), "NoRoom");
  const ReclaimWork work = std::exchange(engine_.effects().reclaims, {});
  ASSERT_EQ(work.evictions.size(), 1U);
  EXPECT_EQ(work.evictions[0].uid, gang[0].uid);
  EXPECT_EQ(engine_.Reclaims().back().rule, ReclaimRule::kGang);
  EXPECT_EQ(engine_.Reclaims().back().source, "team/train");
}

TEST_F(EngineGangsTest, AfterARestartTheRestOfAGangIsSeatedBeforeAnybodyElse) {
  Engine fresh(EngineOptions{});
  GpuPolicy policy;
  test::SetPolicy(fresh, policy);
  for (const char* name : {"c0-n0", "c0-n1"}) fresh.UpsertNode(test::StockNode(name, 8), now_);
  const PodRequest first = Member("train", 0, 2), second = Member("train", 1, 2);
  PodFacts bound = test::Bound(first, "c0-n0");
  bound.bound_at = now_ - std::chrono::seconds(3);
  fresh.UpsertPod(bound, now_);
  fresh.UpsertPod(test::Pending(second), now_);
  fresh.FinishRestore(now_);
  const PodRequest other = test::WholePod("other", 8);
  FilterAnswer answer;
  const std::vector<std::string_view> names = {"c0-n0", "c0-n1"};
  fresh.Filter(other, names, now_, answer);
  EXPECT_TRUE(answer.chosen.empty());
  fresh.Filter(second, names, now_, answer);
  EXPECT_THAT(answer.chosen, ElementsAre(1U));
}

TEST_F(EngineGangsTest, OneThatLostAPodLongAfterItBeganIsNotBrokenUp) {
  Cliques(1, 2);
  const auto gang = SeeGang("train", 2);
  for (const PodRequest& member : gang) Run(member, Ask(member));
  engine_.DeletePod(gang[1].uid, now_);
  ASSERT_TRUE(Place(test::WholePod("other", 8), "c0-n1") ||
              Place(test::WholePod("other", 8), "c0-n0"));
  PodRequest again = Member("train", 7, 2);
  See(again);
  EXPECT_EQ(Ask(again), "NoRoom");
  now_ += std::chrono::hours(1);
  engine_.Tick(now_);
  EXPECT_TRUE(std::exchange(engine_.effects().reclaims, {}).evictions.empty());
}

TEST_F(EngineGangsTest, AnEvictedGangGathersAnew) {
  Cliques(1, 2);
  auto gang = SeeGang("train", 2);
  for (const PodRequest& member : gang) Run(member, Ask(member));
  for (const PodRequest& member : gang) engine_.DeletePod(member.uid, now_);
  const PodRequest again = Member("train", 5, 2);
  See(again);
  EXPECT_EQ(Ask(again), "GangIncomplete");
}

TEST_F(EngineGangsTest, PodsAboveTheSizeAreOptional) {
  Cliques(1, 2);
  std::vector<PodRequest> gang;
  for (int i = 0; i < 3; ++i) {
    gang.push_back(Member("elastic", i, 2));
    See(gang.back());
  }
  EXPECT_NE(Ask(gang[0]), Ask(gang[1]));
  EXPECT_EQ(Ask(gang[2]), "GangNoRoom");
  Run(gang[0], Ask(gang[0]));
  Run(gang[1], Ask(gang[1]));
  EXPECT_EQ(Ask(gang[2]), "NoRoom");
}

TEST_F(EngineGangsTest, APodWithoutGpusCountsAsAMember) {
  Cliques(1, 2);
  const PodRequest worker = Member("mpi", 0, 2);
  See(worker);
  EXPECT_EQ(Ask(worker), "GangIncomplete");
  PodRequest launcher = test::EmptyRequest("launcher");
  launcher.gang = "mpi";
  launcher.gang_size = 2;
  engine_.UpsertPod(test::Pending(launcher), now_);
  EXPECT_EQ(CliqueOf(Ask(worker)), "c0");
}

TEST_F(EngineGangsTest, ASizeThatAnotherControllerTellsHoldsMembersBack) {
  Cliques(1, 2);
  PodRequest first = Member("volcano/job", 0, 0), second = Member("volcano/job", 1, 0);
  engine_.SetGangSize("team", "volcano/job", 2, now_);
  See(first);
  EXPECT_EQ(Ask(first), "GangIncomplete");
  See(second);
  EXPECT_EQ(CliqueOf(Ask(first)), "c0");
}

TEST_F(EngineGangsTest, WithoutASizePodsAreKeptNearEachOther) {
  Cliques(3, 2);
  ASSERT_TRUE(Place(test::WholePod("filler", 7), "c0-n0"));
  PodRequest first = Member("loose", 0, 0, 8);
  See(first);
  Run(first, "c2-n1");
  PodRequest second = Member("loose", 1, 0, 1);
  See(second);
  const std::vector<std::string> chosen = Filter(second);
  ASSERT_FALSE(chosen.empty());
  EXPECT_EQ(chosen.front(), "c2-n0") << "not the fullest node, but the one in the same clique";
}

TEST_F(EngineGangsTest, AGatedMemberIsNotThereYet) {
  Cliques(1, 2);
  const PodRequest first = Member("train", 0, 2), second = Member("train", 1, 2);
  See(first);
  PodFacts gated = test::Pending(second);
  gated.gated = true;
  engine_.UpsertPod(gated, now_);
  EXPECT_EQ(Ask(first), "GangIncomplete");
  See(second);
  EXPECT_EQ(CliqueOf(Ask(first)), "c0");
}

TEST_F(EngineGangsTest, AMemberThatIsDeletedGivesBackTheSeatsOfAll) {
  Cliques(1, 2);
  const auto gang = SeeGang("train", 2);
  EXPECT_EQ(CliqueOf(Ask(gang[0])), "c0");
  engine_.DeletePod(gang[1].uid, now_);
  EXPECT_EQ(Ask(gang[0]), "GangIncomplete");
  EXPECT_EQ(Ask(test::WholePod("other", 8)), "several");
}

// Two HAMi nodes of two cards. The seats of a gang on one of them are lost with the machine.
class EngineGangsMachinesTest : public EngineGangsTest {
 protected:
  void SetUp() override { Nodes({test::HamiNode("a", 2), test::HamiNode("b", 2)}); }

  static NodeFacts Another(const std::string& name) {
    NodeFacts node = test::HamiNode(name, 2);
    node.uid = NodeUid("another");
    for (AgentDevice& device : node.agent->devices) {
      device.uuid = GpuUuid("other-" + device.uuid.str());
    }
    return node;
  }
  // A gang of two that was given both cards of a.
  std::vector<PodRequest> SeatOnA() {
    engine_.SetHeld(NodeName("b"), "busy", now_);
    const auto gang = SeeGang("train", 2, 1);
    for (const PodRequest& member : gang) EXPECT_EQ(Ask(member), "a");
    engine_.SetHeld(NodeName("b"), "", now_);
    Told();
    return gang;
  }
  // Where kube-scheduler is told that pods go, the latest of each.
  std::map<std::string, std::string> Told() {
    std::map<std::string, std::string> told;
    for (const Nomination& nomination : std::exchange(engine_.effects().reclaims, {}).nominations) {
      told[nomination.pod.name] = nomination.node.str();
    }
    return told;
  }
};

TEST_F(EngineGangsMachinesTest, SeatsOnANodeThatIsGoneAreGivenElsewhere) {
  SeatOnA();
  engine_.DeleteNode(NodeName("a"), now_);
  engine_.Tick(now_);
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{"train-0", "b"}, {"train-1", "b"}}));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
  engine_.UpsertNode(Another("a"), now_);
  EXPECT_EQ(Ask(test::WholePod("other", 2)), "a") << "nobody's cards are missing there";
}

TEST_F(EngineGangsMachinesTest, SeatsOnANodeThatIsAnotherMachineAreGivenAnew) {
  SeatOnA();
  engine_.SetHeld(NodeName("b"), "busy", now_);
  engine_.UpsertNode(Another("a"), now_);
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{"train-0", ""}, {"train-1", ""}}));
  engine_.Tick(now_);
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{"train-0", "a"}, {"train-1", "a"}}));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineGangsMachinesTest, TheSameMachineAgainKeepsTheSeatsItHasCardsFor) {
  SeatOnA();
  NodeFacts node = test::HamiNode("a", 2);
  node.labels = LabelText(Labels{{"rack", "7"}});
  engine_.UpsertNode(node, now_);
  EXPECT_THAT(Told(), IsEmpty());
  engine_.SetHeld(NodeName("b"), "busy", now_);
  node.agent->devices[0].uuid = GpuUuid("repaired");
  engine_.UpsertNode(node, now_);
  engine_.Tick(now_);
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{"train-0", "a"}, {"train-1", "a"}}));
  EXPECT_EQ(ReasonOn(test::WholePod("other", 1), "a"), "NoRoom") << "its devices are known";
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineGangsMachinesTest, WhoHasItsPlaceStaysAndTheOtherIsSeatedAnew) {
  const PodRequest filler = test::WholePod("filler", 1);
  Run(filler, "a");
  Run(test::WholePod("more", 1), "b");
  const auto gang = SeeGang("train", 2, 1);
  const PodRequest& on_b = Ask(gang[0]) == "b" ? gang[0] : gang[1];
  const PodRequest& on_a = Ask(gang[0]) == "a" ? gang[0] : gang[1];
  Run(on_b, "b");
  Told();
  engine_.DeleteNode(NodeName("a"), now_);
  engine_.Tick(now_);
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{on_a.name.name, ""}}));
  EXPECT_EQ(engine_.Pod(on_b.uid)->node.str(), "b");
  engine_.UpsertNode(Another("c"), now_);
  names_.push_back(NodeName("c"));
  engine_.Tick(now_);
  EXPECT_EQ(Told(), (std::map<std::string, std::string>{{on_a.name.name, "c"}}));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineGangsTest, AGangThatHasWaitedLongHoldsItsNodesAndShortWorkRunsThereMeanwhile) {
  Cliques(1, 2);
  PodRequest runs = test::WholePod("runs", 8);
  runs.expected_runtime = std::chrono::hours(2);
  Run(runs, "c0-n0");
  const auto gang = SeeGang("train", 2);
  EXPECT_EQ(Ask(gang[0]), "GangNoRoom");
  EXPECT_EQ(Ask(test::WholePod("early", 4)), "c0-n1") << "nobody is held back at first";
  now_ += std::chrono::minutes(6);
  engine_.Tick(now_);
  PodRequest endless = test::WholePod("endless", 4), brief = test::WholePod("brief", 4),
             lengthy = test::WholePod("lengthy", 4);
  brief.expected_runtime = std::chrono::minutes(90);
  lengthy.expected_runtime = std::chrono::hours(3);
  EXPECT_EQ(Ask(endless), "HeldForGang");
  EXPECT_EQ(Ask(lengthy), "HeldForGang");
  EXPECT_FALSE(Place(endless, "c0-n1"));
  EXPECT_EQ(Ask(brief), "c0-n1") << "it ends before the gang starts";
  // What ran is gone sooner than it said: the gang starts at once.
  engine_.DeletePod(runs.uid, now_);
  now_ += std::chrono::seconds(20);
  engine_.Tick(now_);
  EXPECT_EQ(CliqueOf(Ask(gang[0])), "c0");
}

TEST_F(EngineGangsTest, NothingIsHeldWhereNobodySaysWhenItEnds) {
  Cliques(1, 2);
  Run(test::WholePod("runs", 8), "c0-n0");
  const auto gang = SeeGang("train", 2);
  EXPECT_EQ(Ask(gang[0]), "GangNoRoom");
  now_ += std::chrono::hours(1);
  engine_.Tick(now_);
  EXPECT_EQ(Ask(test::WholePod("endless", 4)), "c0-n1");
}

TEST_F(EngineGangsTest, WhoComesLaterJoinsTheCliqueThatIsRequired) {
  Cliques(2, 3);
  const auto gang = SeeGang("train", 2, 8, TopologyWish::kRequired);
  for (const PodRequest& member : gang) Run(member, Ask(member));
  PodRequest later = Member("train", 2, 2, 8);
  later.topology = TopologyWish::kRequired;
  See(later);
  EXPECT_EQ(Ask(later), "c0-n2");
  Run(later, "c0-n2");
  PodRequest last = Member("train", 3, 2, 8);
  last.topology = TopologyWish::kRequired;
  See(last);
  EXPECT_THAT(Filter(last), IsEmpty()) << "the other clique has room, and will not do";
}

// Kueue says where the pods of a group go as it takes their gates away.
TEST_F(EngineGangsTest, WhereAPodMayGoIsWhatItSaysLast) {
  Cliques(2, 1);
  std::vector<PodRequest> members = SeeGang("g", 2);
  auto first_clique = std::make_shared<NodeConstraints>();
  first_clique->selector = {{"nvidia.com/gpu.clique", "fabric.0"}};
  for (PodRequest& member : members) {
    member.constraints = first_clique;
    See(member);
  }
  EXPECT_EQ(Ask(members[0]), "GangNoRoom") << "one of its two nodes is out of the question";
}

}  // namespace THIS_FILE
}  // namespace tranche
