// Which ways of sharing a class allows, how many may share a card, and whose memory counts there.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/facts/reason.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;

constexpr SharingMethod kSlices = SharingMethod::kTimeSlicing;
constexpr SharingMethod kServer = SharingMethod::kMps;
constexpr int64_t kL40sMib = 46068;

// One node with pods put on it one after another, as bindings would.
class Node {
 public:
  explicit Node(NodeFacts facts) {
    policy_.unenforced_sharing = Permission::kAllow;
    state_.SetFacts(std::move(facts), 0);
  }

  Node& Policy(std::vector<SharingLimit> limits, Permission unenforced = Permission::kAllow) {
    policy_.sharing_limits = std::move(limits);
    policy_.unenforced_sharing = unenforced;
    return *this;
  }
  Node& Class(std::vector<SharingMode> sharing) {
    sharing_ = std::move(sharing);
    return *this;
  }

  Reason Try(const PodRequest& request) {
    const PlaceRules rules{&policy_, CardChoice::kTightest, -1, &sharing_};
    return placer_.Place(state_.inventory(), state_.hard(), request, rules, picks_);
  }
  std::string Why(const PodRequest& request) { return std::string(Describe(Try(request)).code); }

  // False: there was no room.
  bool Put(PodRequest request) {
    if (Try(request) != Reason::kNone) return false;
    request.uid = PodUid(fmt::format("uid-{}", pods_++));
    Holding holding;
    holding.uid = request.uid;
    holding.allocation = ToAllocation(state_.inventory(), request, picks_);
    holding.request = std::make_shared<const PodRequest>(std::move(request));
    state_.Hold(std::move(holding));
    return true;
  }
  // How many pods like this one find room.
  int Fill(const PodRequest& request) {
    int count = 0;
    while (Put(request)) ++count;
    return count;
  }

  const Picks& picks() const { return picks_; }
  const Inventory& inventory() const { return state_.inventory(); }

 private:
  GpuPolicy policy_;
  std::vector<SharingMode> sharing_;
  NodeState state_;
  Placer placer_;
  Picks picks_;
  int pods_ = 0;
};

// tranche.dev/gpu-memory.
PodRequest MemoryPod(int64_t mib, int64_t cards = 1) {
  PodRequest request = test::FractionPod("p", 1, cards);
  request.asks[0].compute = MilliGpu::Zero();
  request.asks[0].memory = {MemoryNeed::Kind::kMib, mib};
  return request;
}

PodRequest Replica() { return test::SharedPod("p", 1); }

// Gives the pod one more container that asks for the same; init containers and sidecars go first.
PodRequest With(PodRequest request, ContainerRole role, Ask ask) {
  const bool first = role != ContainerRole::kApp;
  const int at = first ? 0 : static_cast<int>(request.containers.size());
  for (Ask& other : request.asks) other.container += first;
  ask.container = at;
  request.containers.insert(request.containers.begin() + at,
                            {fmt::format("more-{}", request.containers.size()), role, 0});
  request.asks.insert(first ? request.asks.begin() : request.asks.end(), ask);
  return request;
}

Ask MemoryAsk(int64_t mib) { return MemoryPod(mib).asks[0]; }

// A pod whose containers each ask for a replica.
PodRequest Replicas(int apps, int sidecars = 0, int inits = 0) {
  PodRequest request = Replica();
  for (int i = 1; i < apps; ++i) request = With(request, ContainerRole::kApp, Replica().asks[0]);
  for (int i = 0; i < inits; ++i) request = With(request, ContainerRole::kInit, Replica().asks[0]);
  for (int i = 0; i < sidecars; ++i) {
    request = With(request, ContainerRole::kSidecar, Replica().asks[0]);
  }
  request.pool_needs[0].count = std::max(apps, inits > 0 ? 1 : 0) + sidecars;
  return request;
}

NodeFacts Shared(SharingMethod method, int gpus, int replicas, const std::string& product = "") {
  NodeFacts facts = test::SharedNode("n", gpus, replicas, true, method);
  if (!product.empty()) facts.product = product;
  return facts;
}

NodeFacts HamiWithModes(const std::vector<std::string>& modes, int slots = 10) {
  NodeFacts facts = test::HamiNode("n", static_cast<int>(modes.size()), slots);
  for (std::size_t i = 0; i < modes.size(); ++i) facts.agent->devices[i].mode = modes[i];
  return facts;
}

PodRequest HamiWhole() {
  PodRequest request = test::HamiPod("p", 1, 0, 100);
  request.asks[0].memory = {MemoryNeed::Kind::kWholeCard, 0};
  return request;
}

// ---- Contexts -----------------------------------------------------------------------------------

// What a CUDA context takes, it takes beside an amount that a container asks for; a part of a card
// is a part of everything on it.
TEST(ContextMemoryTest, ComesBesideAmountsOfMemory) {
  const std::vector<SharingLimit> none;
  const auto of = [](std::string model, int64_t mib) {
    return SharingLimit{std::move(model), 0, Mebibytes::Of(mib)};
  };
  const NodeFacts sliced = Shared(kSlices, 1, 100);
  const NodeFacts halves = Shared(kSlices, 1, 2);
  const struct {
    std::string what;
    NodeFacts node;
    std::vector<SharingLimit> limits;
    PodRequest request;
    int fit;
  } rows[] = {
      {"nothing said", sliced, none, MemoryPod(1000), 46},
      {"beside each", sliced, {of("any", 400)}, MemoryPod(1000), 32},
      {"the card full to the last MiB", sliced, {of("any", 23'034 - 11'517)}, MemoryPod(11'517), 2},
      {"a MiB more", sliced, {of("any", 23'034 - 11'516)}, MemoryPod(11'517), 1},
      {"another model", sliced, {of("t4", 400)}, MemoryPod(1000), 46},
      {"the larger of two", sliced, {of("any", 400), of("l40s", 1000)}, MemoryPod(1000), 23},
      {"parts of a card", halves, {of("any", 400)}, test::FractionPod("p", 500), 2},
      {"replicas", halves, {of("any", 400)}, Replica(), 2},
      {"HAMi's amounts", HamiWithModes({""}), {of("any", 500)}, test::HamiPod("p", 1, 3000), 4},
      {"alone there", HamiWithModes({""}), {of("any", 500)}, test::HamiPod("p", 1, 15'109, 100), 1},
      {"too large with its context", sliced, {of("any", 400)}, MemoryPod(kL40sMib - 399), 0},
      {"just not", sliced, {of("any", 400)}, MemoryPod(kL40sMib - 400), 1},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Node(row.node).Policy(row.limits).Fill(row.request), row.fit) << row.what;
  }
}

TEST(ContextMemoryTest, IsCountedForWhoRunsAtATime) {
  const std::vector<SharingLimit> limits = {{"any", 0, Mebibytes::Of(400)}};
  const int64_t third = kL40sMib / 3 - 400;
  const auto fits = [&](const PodRequest& request) {
    return Node(Shared(kSlices, 1, 100)).Policy(limits).Try(request) == Reason::kNone;
  };
  const PodRequest two = With(MemoryPod(third), ContainerRole::kApp, MemoryAsk(third));
  const PodRequest three = With(two, ContainerRole::kSidecar, MemoryAsk(third));
  EXPECT_TRUE(fits(three));
  EXPECT_FALSE(fits(With(two, ContainerRole::kSidecar, MemoryAsk(third + 1))));
  EXPECT_TRUE(fits(With(three, ContainerRole::kInit, MemoryAsk(third)))) << "has ended before";
}

TEST(ContextMemoryTest, WhoNeverFitsIsToldThatItIsTooLarge) {
  Node node(Shared(kSlices, 1, 100));
  node.Policy({{"any", 0, Mebibytes::Of(400)}});
  EXPECT_EQ(node.Why(MemoryPod(kL40sMib)), "TooLarge");
  EXPECT_EQ(node.Why(MemoryPod(kL40sMib - 400)), "None");
  ASSERT_TRUE(node.Put(MemoryPod(1000)));
  EXPECT_EQ(node.Why(MemoryPod(kL40sMib - 400)), "NoRoom");
}

// ---- The way of sharing -------------------------------------------------------------------------

TEST(SharingModeTest, IsWhatTheNodeMakesOfTheAsk) {
  NodeFacts single = test::StockNode("single", 14, "NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", 9856);
  single.mig_strategy = MigStrategy::kSingle;
  NodeFacts single_shared = single;
  single_shared.replicas = 2;
  struct Row {
    NodeFacts node;
    PodRequest pod;
    std::string mode;
  };
  const std::vector<Row> rows = {
      {test::StockNode("whole card", 2), test::WholePod("p", 1), "Exclusive"},
      {test::StockNode("fraction of a stock card", 2), test::FractionPod("p", 500), "TimeSliced"},
      {Shared(kSlices, 1, 4), Replica(), "TimeSliced"},
      {Shared(kServer, 1, 4), Replica(), "MPS"},
      {Shared(kSlices, 1, 4), MemoryPod(1000), "TimeSliced"},
      {Shared(kServer, 1, 4), test::FractionPod("p", 500), "MPS"},
      {test::MigNode("instance", 1, 0, {{"3g.40gb", 2}}), test::MigPod("p", "3g.40gb", 1), "MIG"},
      {test::MigNode("its replica", 1, 0, {{"3g.40gb", 2, 4}}),
       test::MigPod("p", "3g.40gb", 1, true), "TimeSliced"},
      {single, test::WholePod("p", 1), "MIG"},
      {single_shared, test::WholePod("p", 1), "TimeSliced"},
      {HamiWithModes({"hami-core"}), HamiWhole(), "Exclusive"},
      {HamiWithModes({"mps"}), HamiWhole(), "Exclusive"},
      {HamiWithModes({"hami-core"}), test::HamiPod("p", 1, 3000), "TimeSliced"},
      {HamiWithModes({"hami-core"}), test::HamiPod("all cores", 1, 3000, 100), "TimeSliced"},
      {HamiWithModes({"hami-core"}), test::HamiPod("all memory", 1, 15109, 30), "TimeSliced"},
      {HamiWithModes({"mps"}), test::HamiPod("p", 1, 3000), "MPS"},
  };
  for (const Row& row : rows) {
    const Inventory inventory = BuildInventory(row.node, 0);
    EXPECT_EQ(SharingModeName(ModeOf(inventory, row.pod.asks[0], inventory.cards[0])), row.mode)
        << row.node.name.str() << ", " << row.pod.name.name;
  }
}

TEST(SharingModeTest, AClassKeepsItsPodsOffCardsItMayNotShare) {
  using enum SharingMode;
  const NodeFacts stock = test::StockNode("n", 2);
  const NodeFacts mixed = test::MigNode("n", 3, 1, {{"1g.10gb", 7}, {"3g.40gb", 2}});
  PodRequest both = test::WholePod("p", 1);
  both.asks.push_back(test::MigPod("p", "1g.10gb", 1).asks[0]);
  both.pool_needs.push_back({"nvidia.com/mig-1g.10gb", 1});
  struct Row {
    std::string name;
    NodeFacts node;
    PodRequest pod;
    std::vector<SharingMode> allowed;
    std::string reason;
  };
  const std::vector<Row> rows = {
      {"no list, any way", stock, test::FractionPod("p", 500), {}, ""},
      {"whole cards", stock, test::WholePod("p", 1), {kExclusive}, ""},
      {"no parts", stock, test::FractionPod("p", 500), {kExclusive, kMig, kMps}, "SharingMode"},
      {"parts", stock, test::FractionPod("p", 500), {kTimeSliced}, ""},
      {"parts only", stock, test::WholePod("p", 1), {kTimeSliced}, "SharingMode"},
      {"no time slices", Shared(kSlices, 1, 4), Replica(), {kExclusive, kMps}, "SharingMode"},
      {"MPS", Shared(kServer, 1, 4), Replica(), {kExclusive, kMps}, ""},
      {"instances", mixed, test::MigPod("p", "1g.10gb", 1), {kMig}, ""},
      {"no instances", mixed, test::MigPod("p", "1g.10gb", 1), {kExclusive}, "SharingMode"},
      {"every ask must be allowed", mixed, both, {kMig}, "SharingMode"},
      {"every ask is allowed", mixed, both, {kMig, kExclusive}, ""},
      {"no such device is said first", stock, test::MigPod("p", "1g.10gb", 1), {kMps}, "NoGpu"},
      {"two replicas, which MPS refuses",
       Shared(kServer, 1, 4),
       test::SharedPod("p", 2),
       {kMps},
       "OneReplica"},
      {"too, but first the way",
       Shared(kServer, 1, 4),
       test::SharedPod("p", 2),
       {kMig},
       "SharingMode"},
      {"too many is said last", stock, test::WholePod("p", 3), {kMps}, "SharingMode"},
      {"one of two cards",
       HamiWithModes({"hami-core", "mps"}),
       test::HamiPod("p", 1, 3000),
       {kMps},
       ""},
      {"one card is not two",
       HamiWithModes({"hami-core", "mps"}),
       test::HamiPod("p", 2, 3000),
       {kMps},
       "SharingMode"},
  };
  for (const Row& row : rows) {
    Node node(row.node);
    const Reason reason = node.Class(row.allowed).Try(row.pod);
    EXPECT_EQ(reason == Reason::kNone ? "" : Describe(reason).code, row.reason) << row.name;
  }
  Node refusing(stock);
  refusing.Policy({}, Permission::kRefuse).Class({kExclusive});
  EXPECT_EQ(refusing.Why(test::FractionPod("p", 500)), "NoAgent") << "what no class could have";
}

TEST(SharingModeTest, OnAMixedNodeTheWantedCardsAreTakenFirst) {
  using enum SharingMode;
  Node node(HamiWithModes({"hami-core", "mps", "hami-core", "mps"}));
  ASSERT_TRUE(node.Class({kTimeSliced}).Put(test::HamiPod("p", 1, 3000)));
  const auto cards = [&node](int64_t count) {
    EXPECT_EQ(node.Try(test::HamiPod("p", count, 3000)), Reason::kNone);
    std::vector<int> taken;
    for (const Pick& pick : node.picks()) taken.push_back(pick.card);
    return taken;
  };
  node.Class({kMps, kTimeSliced});
  EXPECT_THAT(cards(2), ElementsAre(1, 3));
  EXPECT_THAT(cards(3), ElementsAre(1, 3, 0)) << "then the fuller of the others";
  node.Class({kTimeSliced, kMps});
  EXPECT_THAT(cards(2), ElementsAre(0, 2));
}

// ---- Memory where nothing isolates --------------------------------------------------------------

struct MemoryRow {
  std::string name;
  std::vector<PodRequest> there;
  PodRequest fits;
  PodRequest too_much;
};

// One card of 46,068 MiB in four replicas of 11,517 MiB.
TEST(SharedMemoryTest, PodsTogetherNeverGetMoreThanTheCardHas) {
  const PodRequest init_heavy = With(MemoryPod(10'000), ContainerRole::kInit, MemoryAsk(30'000));
  const PodRequest with_sidecar =
      With(With(MemoryPod(15'000), ContainerRole::kInit, MemoryAsk(20'000)),
           ContainerRole::kSidecar, MemoryAsk(10'000));
  const PodRequest late_sidecar =
      With(With(MemoryPod(15'000), ContainerRole::kSidecar, MemoryAsk(10'000)),
           ContainerRole::kInit, MemoryAsk(20'000));
  const PodRequest two_apps = With(MemoryPod(10'000), ContainerRole::kApp, MemoryAsk(20'000));
  PodRequest silent = MemoryPod(1);
  silent.asks[0].memory = {};
  const std::vector<MemoryRow> rows = {
      {"an empty card", {}, MemoryPod(kL40sMib), MemoryPod(kL40sMib + 1)},
      {"two who declare", {MemoryPod(30'000)}, MemoryPod(16'068), MemoryPod(16'069)},
      {"a replica counts its part undeclared", {Replica()}, MemoryPod(34'551), MemoryPod(34'552)},
      {"a share that names no memory does too", {silent}, MemoryPod(34'551), MemoryPod(34'552)},
      {"three quarters and a replica", {test::FractionPod("p", 750)}, Replica(), MemoryPod(11'518)},
      {"half a card and a replica",
       {test::FractionPod("p", 500), Replica()},
       MemoryPod(11'517),
       MemoryPod(11'518)},
      {"memory and a fraction",
       {MemoryPod(23'034)},
       test::FractionPod("p", 500),
       test::FractionPod("p", 501)},
      {"two replicas and memory",
       {Replica(), MemoryPod(23'034)},
       Replica(),
       With(MemoryPod(11'000), ContainerRole::kApp, MemoryAsk(518))},
      {"the init phase is the peak", {init_heavy}, MemoryPod(16'068), MemoryPod(16'069)},
      {"a sidecar runs beside later init containers",
       {with_sidecar},
       MemoryPod(16'068),
       MemoryPod(16'069)},
      {"a sidecar that starts after them does not",
       {late_sidecar},
       MemoryPod(21'068),
       MemoryPod(21'069)},
      {"app containers add up", {two_apps}, MemoryPod(16'068), MemoryPod(16'069)},
      {"an arriving init container needs room",
       {MemoryPod(20'000)},
       With(MemoryPod(1000), ContainerRole::kInit, MemoryAsk(26'068)),
       With(MemoryPod(1000), ContainerRole::kInit, MemoryAsk(26'069))},
      {"an arriving sidecar too",
       {MemoryPod(20'000)},
       With(MemoryPod(16'068), ContainerRole::kSidecar, MemoryAsk(10'000)),
       With(MemoryPod(16'069), ContainerRole::kSidecar, MemoryAsk(10'000))},
  };
  for (const SharingMethod method : {kSlices, kServer}) {
    for (const MemoryRow& row : rows) {
      SCOPED_TRACE(row.name + (method == kServer ? ", MPS" : ", time-sliced"));
      Node node(Shared(method, 1, 4));
      for (const PodRequest& pod : row.there) ASSERT_TRUE(node.Put(pod));
      EXPECT_EQ(node.Why(row.fits), Describe(Reason::kNone).code);
      EXPECT_NE(node.Try(row.too_much), Reason::kNone);
    }
  }
}

TEST(SharedMemoryTest, AReplicaGoesToACardThatHasItsPartLeft) {
  for (const SharingMethod method : {kSlices, kServer}) {
    Node node(Shared(method, 2, 4));
    ASSERT_TRUE(node.Put(MemoryPod(34'552)));
    const int filled = node.picks()[0].card;
    EXPECT_EQ(node.Fill(Replica()), 4) << "all on the other card";
    Node one(Shared(method, 1, 4));
    ASSERT_TRUE(one.Put(MemoryPod(34'552)));
    EXPECT_EQ(one.Why(Replica()), "NoRoom") << "one MiB short";
    EXPECT_EQ(filled, 0);
  }
}

TEST(SharedMemoryTest, OnACardOfUnknownSizeNobodyMayDeclareMemory) {
  for (const SharingMethod method : {kSlices, kServer}) {
    NodeFacts facts = Shared(method, 1, 4, "NVIDIA-New-Board");
    facts.memory.reset();
    Node node(facts);
    EXPECT_EQ(node.Why(MemoryPod(1)), "TooLarge");
    ASSERT_TRUE(node.Put(test::FractionPod("p", 500)));
    EXPECT_EQ(node.Fill(Replica()), 2) << "parts of compute are parts of memory";
  }
}

// ---- How many may share -------------------------------------------------------------------------

TEST(ContextLimitTest, MpsTakesSoManyClientsWhateverReplicasAndPolicySay) {
  struct Row {
    std::string name;
    NodeFacts node;
    std::vector<SharingLimit> limits;
    int pods = 0;
  };
  const std::vector<Row> rows = {
      {"replicas below the limit", Shared(kServer, 1, 10), {}, 10},
      {"replicas above it", Shared(kServer, 1, 100), {}, 48},
      {"of each card", Shared(kServer, 2, 100), {}, 96},
      {"before Turing", Shared(kServer, 1, 100, "Tesla-V100-SXM2-32GB"), {}, 16},
      {"from Turing on", Shared(kServer, 1, 100, "Tesla-T4"), {}, 48},
      {"policy asks for more", Shared(kServer, 1, 100), {{"any", 90}}, 48},
      {"policy asks for less", Shared(kServer, 1, 100), {{"any", 7}}, 7},
      {"time-slicing knows no clients", Shared(kSlices, 1, 100), {}, 100},
      {"but policy does", Shared(kSlices, 1, 100), {{"l40s", 60}, {"t4", 2}}, 60},
  };
  for (const Row& row : rows) {
    Node node(row.node);
    node.Policy(row.limits);
    EXPECT_EQ(node.Fill(Replica()), row.pods) << row.name;
    EXPECT_EQ(node.Why(Replica()), "NoRoom") << row.name;
  }
}

TEST(ContextLimitTest, SharesAndReplicasAreClientsAlike) {
  Node node(Shared(kServer, 1, 100));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(node.Put(MemoryPod(10)));
  EXPECT_EQ(node.Fill(Replica()), 8);
  EXPECT_EQ(node.Why(MemoryPod(10)), "NoRoom");
}

TEST(ContextLimitTest, AgentsThatShareByMpsHaveItToo) {
  Node mps(HamiWithModes({"mps"}, 100));
  EXPECT_EQ(mps.Fill(test::HamiPod("p", 1, 10)), 48);
  Node core(HamiWithModes({"hami-core"}, 100));
  EXPECT_EQ(core.Fill(test::HamiPod("p", 1, 10)), 100);
}

TEST(ContextLimitTest, APodThatAloneNeedsMoreWillNeverFit) {
  struct Row {
    std::string name;
    NodeFacts node;
    PodRequest pod;
    std::string reason;
  };
  const std::string fits(Describe(Reason::kNone).code);
  const std::vector<Row> rows = {
      {"as many as the server takes", Shared(kServer, 1, 100), Replicas(48), fits},
      {"one more", Shared(kServer, 1, 100), Replicas(49), "TooManyPerNode"},
      {"one more on two cards", Shared(kServer, 2, 100), Replicas(49), fits},
      {"sidecars run beside", Shared(kServer, 1, 100), Replicas(40, 9), "TooManyPerNode"},
      {"init containers run before", Shared(kServer, 1, 100), Replicas(40, 8, 9), fits},
      {"time slices", Shared(kSlices, 1, 100), Replicas(100), fits},
  };
  for (const Row& row : rows) EXPECT_EQ(Node(row.node).Why(row.pod), row.reason) << row.name;
  Node busy(Shared(kServer, 1, 100));
  ASSERT_TRUE(busy.Put(Replicas(40)));
  EXPECT_EQ(busy.Why(Replicas(9)), "NoRoom") << "an emptier node would do";
}

}  // namespace THIS_FILE
}  // namespace tranche
