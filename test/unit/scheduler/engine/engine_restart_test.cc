// What a start makes of objects that changed meanwhile: a pod with a node holds what it was given,
// and no state that a start can meet ends the process.
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Bound;
using test::FractionPod;
using test::HamiNode;
using test::HamiPod;
using test::Pending;
using test::Quota;
using test::StockNode;
using test::WholePod;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Allocation On(const std::string& uuid, int card, int64_t milli, int64_t mib) {
  Device device;
  device.card = card;
  device.uuid = GpuUuid(uuid);
  device.milli = MilliGpu::Of(milli);
  device.memory = Mebibytes::Of(mib);
  Allocation record;
  record.epoch = 1;
  record.knowledge = Knowledge::kExact;
  record.containers.push_back({"main", {device}});
  return record;
}

class EngineRestartTest : public EngineQuotaTest {
 protected:
  // An engine that has read the nodes and pods of a cluster.
  std::unique_ptr<Engine> Started(const std::vector<NodeFacts>& nodes,
                                  const std::vector<PodFacts>& pods, MeterHistory history = {},
                                  test::Objects objects = {}, int64_t epoch = 1) {
    EngineOptions options;
    options.epoch = epoch;
    auto engine = std::make_unique<Engine>(options);
    engine->Restore(std::move(history));
    engine->SetPolicies(test::Declare(std::move(objects)), Defaults(), now_);
    for (const NodeFacts& node : nodes) engine->UpsertNode(node, now_);
    for (const PodFacts& pod : pods) engine->UpsertPod(pod, now_);
    engine->FinishRestore(now_);
    EXPECT_THAT(engine->Audit(), IsEmpty());
    return engine;
  }
  // "card:free milli/free MiB" of every card of the first node, and what closes it.
  std::string Free(Engine& engine) {
    const NodeView node = engine.Nodes(NodeName(), 1, now_).at(0);
    std::string text;
    for (const GpuView& gpu : node.gpus) {
      text += fmt::format("{}/{} ", gpu.free_milli.count(), gpu.free_memory.count());
    }
    return text + std::string(Describe(node.closed).code);
  }
  static std::vector<std::string> Faults(Engine& engine) {
    std::vector<std::string> names;
    for (const BookFault& fault : std::exchange(engine.effects().faults, {})) {
      names.emplace_back(BookFaultName(fault.kind));
    }
    return names;
  }
  static OpenInterval OpenOf(const PodRequest& request, const std::string& node, int interval) {
    OpenInterval open;
    open.uid = request.uid;
    open.interval = interval;
    open.pod = request.name;
    open.node = NodeName(node);
    open.parts = {{"h100", {kQuantaPerGpu, kQuantaPerGpu}}};
    open.since = At(-100 + interval);
    return open;
  }
};

TEST_F(EngineRestartTest, WhosePodsCarryOurRecordsAsksUs) {
  const auto advice = [&](const char* scheduler, std::optional<Allocation> record) {
    PodRequest mine = WholePod("mine", 1);
    mine.scheduler = "batch";
    PodFacts bound = Bound(mine, "n1");
    bound.allocation = std::move(record);
    PodRequest waits = WholePod("waits", 8);
    waits.scheduler = scheduler;
    auto engine = Started({StockNode("n1", 2)}, {bound, Pending(waits)});
    return engine->Explain(waits.name, now_)->advice;
  };
  const auto stranger = HasSubstr("which has asked about none of its pods");
  const Allocation ours = On("GPU-n1-0", 0, 1000, 81'920);
  Allocation of_hami = ours;
  of_hami.epoch = 0;
  EXPECT_THAT(advice("batch", ours), testing::Not(stranger));
  EXPECT_THAT(advice("batch", of_hami), stranger);
  EXPECT_THAT(advice("batch", std::nullopt), stranger);
  EXPECT_THAT(advice("", ours), stranger);
  EXPECT_THAT(advice("gpu-scheduler", std::nullopt), testing::Not(stranger)) << "configured";
}

TEST_F(EngineRestartTest, TheRecordOfABoundPodDecidesWhateverItAsksNow) {
  const PodRequest half = FractionPod("mine", 500);
  PodRequest refused = half;
  refused.asks.clear();
  refused.refusal = Refusal{Reason::kBadAmount, "abc"};
  PodRequest hami = HamiPod("mine", 1, 3000, 30);
  hami.asks.clear();
  hami.refusal = Refusal{Reason::kBadAmount, "two styles"};
  const struct {
    const char* name;
    PodRequest request;
    Allocation record;
    const char* free;
  } cases[] = {
      {"as bound", half, On("GPU-a-1", 1, 500, 7000), "1000/15109 500/7555 None"},
      {"refused", refused, On("GPU-a-1", 1, 500, 7000), "1000/15109 500/8109 None"},
      {"of another style, refused", hami, On("GPU-a-1", 1, 300, 3000), "1000/15109 700/12109 None"},
      {"two cards", FractionPod("mine", 500, 2), On("GPU-a-1", 1, 500, 7000),
       "1000/15109 500/8109 None"},
      {"less", FractionPod("mine", 100), On("GPU-a-1", 1, 500, 7000), "1000/15109 500/8109 None"},
      {"more: what is said last and is larger", FractionPod("mine", 900),
       On("GPU-a-1", 1, 500, 7000), "1000/15109 100/1511 None"},
      {"a record of other cards", refused, On("GPU-z", 1, 500, 7000),
       "1000/15109 1000/15109 DevicesUnknown"},
      {"a record of nothing", refused, Allocation{1, "", Knowledge::kExact, {}},
       "1000/15109 1000/15109 DevicesUnknown"},
  };
  for (const auto& [name, request, record, free] : cases) {
    SCOPED_TRACE(name);
    auto engine = Started({HamiNode("a", 2)}, {Bound(request, "a", record)});
    EXPECT_EQ(Free(*engine), free);
  }
}

TEST_F(EngineRestartTest, ARecordIsNoWayToHoldLessThanTheKubeletGave) {
  PodRequest refused = HamiPod("mine", 2, 3000);
  refused.asks.clear();
  refused.refusal = Refusal{Reason::kBadAmount, "two styles"};
  auto engine = Started({HamiNode("a", 2)}, {Bound(refused, "a", On("GPU-a-1", 1, 1, 1))});
  EXPECT_THAT(Free(*engine), HasSubstr("DevicesUnknown"));
}

TEST_F(EngineRestartTest, ABoundPodThatCannotBeUnderstoodIsNotNothing) {
  PodRequest refused = WholePod("mine", 1);
  refused.asks.clear();
  refused.refusal = Refusal{Reason::kBadAmount, "abc"};
  auto exact = Started({HamiNode("a", 1)}, {Bound(refused, "a")});
  EXPECT_EQ(Free(*exact), "0/0 DevicesUnknown") << "unknown is busy";
  auto stock = Started({StockNode("a", 2)}, {Bound(refused, "a")}, {},
                       {.quotas = {Quota("team").Owns("team").Line("h100", "8")}});
  EXPECT_EQ(Free(*stock), "0/0 1000/81559 None") << "a whole card, as the kubelet counted";
  EXPECT_EQ(stock->HeldQuanta().compute, kQuantaPerGpu) << "and charged";
}

TEST_F(EngineRestartTest, AnUnreadablePodTakesAllGpusOfItsNodeUntilItIsReadOrGone) {
  PodFacts odd;
  odd.request.uid = PodUid("uid-odd");
  odd.request.name = {"team", "odd"};
  odd.node = NodeName("a");
  odd.unreadable = true;
  odd.allocation_problem = "expected at most 1024 containers, found more";
  for (const NodeFacts& node : {StockNode("a", 1), HamiNode("a", 1)}) {
    auto engine = Started({node}, {odd});
    EXPECT_THAT(Free(*engine), HasSubstr("DevicesUnknown"));
    EXPECT_THAT(Faults(*engine), ElementsAre("unreadable_pod"));
    EXPECT_EQ(engine->Totals().book_faults[static_cast<std::size_t>(BookFaultKind::kUnreadablePod)],
              1);
    PodFacts read = Bound(WholePod("odd", 1), "a");
    read.request.uid = odd.request.uid;
    engine->UpsertPod(read, now_);
    engine->UpsertPod(odd, now_);  // a later version: what is known stays
    EXPECT_THAT(Free(*engine), HasSubstr(node.agent ? "DevicesUnknown" : "0/0 None"));
    engine->DeletePod(odd.request.uid, now_);
    EXPECT_THAT(Free(*engine), HasSubstr("1000/"));
    EXPECT_THAT(Free(*engine), HasSubstr("None"));
    EXPECT_THAT(engine->Audit(), IsEmpty());
  }
}

TEST_F(EngineRestartTest, AnUnreadablePodThatTurnsOutToAskNothingHoldsNothing) {
  PodFacts odd = Bound(test::EmptyRequest("odd"), "a");
  odd.unreadable = true;
  auto engine = Started({StockNode("a", 1)}, {odd});
  odd.unreadable = false;
  engine->UpsertPod(odd, now_);
  EXPECT_EQ(Free(*engine), "1000/81559 None");
  odd.unreadable = true;
  engine->UpsertPod(odd, now_);
  EXPECT_EQ(Free(*engine), "1000/81559 None") << "it was read before";
  EXPECT_THAT(engine->Audit(), IsEmpty());
}

// The bind that the ledger knows failed, and a leader that had no ledger bound the pod.
TEST_F(EngineRestartTest, OnANodeOfCountsTheRecordOfALaterLeaderCounts) {
  const PodRequest request = WholePod("mine", 1);
  Allocation ledgers;
  ledgers.epoch = 1;
  ledgers.knowledge = Knowledge::kCounts;
  Device device;
  device.card = 2;
  device.milli = kWholeGpu;
  device.memory = Mebibytes::Of(81559);
  ledgers.containers = {{"main", {device}}};
  Allocation records = ledgers;
  records.containers[0].devices[0].card = 0;
  MeterHistory history;
  history.open = {OpenOf(request, "a", 0)};
  history.open[0].allocation = ledgers;
  records.epoch = 2;
  auto later = Started({StockNode("a", 3)}, {Bound(request, "a", records)}, history, {}, 3);
  EXPECT_EQ(Free(*later), "0/0 1000/81559 1000/81559 None");
  EXPECT_THAT(Faults(*later), IsEmpty());
  for (const int64_t epoch : {1, 3, 900}) {
    records.epoch = epoch;
    auto edited = Started({StockNode("a", 3)}, {Bound(request, "a", records)}, history, {}, 3);
    EXPECT_EQ(Free(*edited), "1000/81559 1000/81559 0/0 None") << "epoch " << epoch;
    EXPECT_THAT(Faults(*edited), ElementsAre("disputed_devices"));
  }
}

TEST_F(EngineRestartTest, WhereTheTextsDisagreeAllNamedDevicesAreBusy) {
  const PodRequest request = HamiPod("mine", 1, 3000, 30);
  PodFacts pod = Bound(request, "a", On("GPU-a-1", 1, 300, 3000));
  pod.disputed = On("GPU-a-0", 0, 0, 0);
  auto by_agent = Started({HamiNode("a", 3)}, {pod});
  EXPECT_EQ(Free(*by_agent), "0/0 700/12109 1000/15109 None");
  EXPECT_THAT(Faults(*by_agent), ElementsAre("disputed_devices"));

  pod.disputed.reset();
  MeterHistory history;
  history.open = {OpenOf(request, "a", 0)};
  history.open[0].allocation = On("GPU-a-2", 2, 300, 3000);
  auto by_ledger = Started({HamiNode("a", 3)}, {pod}, history);
  EXPECT_EQ(Free(*by_ledger), "1000/15109 700/12109 700/12109 None");
  EXPECT_THAT(Faults(*by_ledger), ElementsAre("disputed_devices"));

  pod.allocation->epoch = 1'000'000;
  auto forged_epoch = Started({HamiNode("a", 3)}, {pod}, history);
  EXPECT_EQ(Free(*forged_epoch), "1000/15109 700/12109 700/12109 None");
  pod.allocation.reset();
  auto taken_off = Started({HamiNode("a", 3)}, {pod}, history);
  EXPECT_EQ(Free(*taken_off), "1000/15109 1000/15109 700/12109 None") << "the ledger knows";
}

// The process died between the charge and the Binding; somebody terminates where the pod is
// nominated, and is listed first.
TEST_F(EngineRestartTest, ANominatedPodWithAnOpenChargeIsNoEndOfTheProcess) {
  const PodRequest victim = WholePod("a-victim", 1), wants = WholePod("wants", 1);
  PodFacts leaves = Bound(victim, "n1");
  leaves.terminating = true;
  leaves.deletion_at = At(30);
  PodFacts waits = Pending(wants);
  waits.nominated = NodeName("n1");
  MeterHistory history;
  history.open = {OpenOf(wants, "n1", 0)};
  history.heartbeat = At(-1);
  auto engine = Started({StockNode("n1", 1)}, {leaves, waits}, history);
  std::vector<std::string> told;
  for (const MeterEvent& event : engine->effects().metering) told.push_back(Text(event));
  EXPECT_THAT(told, Contains("void wants.0 at -100"));
  engine->DeletePod(victim.uid, now_);
  FilterAnswer answer;
  engine->Filter(WholePod("other", 1), std::vector<std::string_view>{"n1"}, now_, answer);
  EXPECT_TRUE(answer.chosen.empty()) << "the room is kept for the nominated pod";
  engine->Filter(wants, std::vector<std::string_view>{"n1"}, now_, answer);
  EXPECT_EQ(answer.chosen.size(), 1U);
}

TEST_F(EngineRestartTest, OfTwoOpenUsesOfAPodTheNewestGoesOn) {
  const PodRequest request = WholePod("one", 1);
  MeterHistory history;
  history.open = {OpenOf(request, "n1", 1), OpenOf(request, "n1", 0)};
  history.heartbeat = At(-1);
  auto engine = Started({StockNode("n1", 1)}, {Bound(request, "n1")}, history);
  std::vector<std::string> told;
  for (const MeterEvent& event : std::exchange(engine->effects().metering, {})) {
    told.push_back(Text(event));
  }
  EXPECT_THAT(told, ElementsAre("close one.0 at -99 estimated"));
  EXPECT_THAT(Faults(*engine), ElementsAre("open_twice"));
  EXPECT_EQ(engine->HeldQuanta().compute, kQuantaPerGpu);
  engine->DeletePod(request.uid, now_);
  EXPECT_EQ(Text(engine->effects().metering.at(0)), "close one.1 at 0");
}

TEST_F(EngineRestartTest, EndingTheRestartTwiceChangesNothing) {
  auto engine = Started({StockNode("n1", 2)}, {Bound(WholePod("one", 1), "n1")});
  const std::string before = engine->Digest();
  engine->effects().metering.clear();
  engine->FinishRestore(now_);
  EXPECT_EQ(engine->Digest(), before);
  EXPECT_THAT(engine->effects().metering, IsEmpty());
}

TEST_F(EngineRestartTest, RecordsOfALaterEpochAreGoneOnFromUpToABound) {
  const struct {
    int64_t epoch;
    const char* free;
  } cases[] = {{3, "700/12109 None"},
               {1'001, "700/12109 None"},
               {1'002, "700/12109 DevicesUnknown"},
               {INT32_MAX, "700/12109 DevicesUnknown"}};
  for (const auto& [epoch, free] : cases) {
    SCOPED_TRACE(epoch);
    Allocation record = On("GPU-a-0", 0, 300, 3000);
    record.epoch = epoch;
    auto engine = Started({HamiNode("a", 1)}, {Bound(HamiPod("one", 1, 3000, 30), "a", record)});
    EXPECT_EQ(Free(*engine), free);
    if (epoch > 1'001) continue;
    engine->UpsertPod(Pending(HamiPod("next", 1, 100)), now_);
    const BindPlan plan = engine->Bind({"team", "next"}, PodUid("uid-next"), NodeName("a"), now_);
    EXPECT_EQ(plan.allocation.epoch, epoch) << "what is written next is no older";
  }
}

TEST_F(EngineRestartTest, ARecordThatIsEditedBeforeTheWatchTellsOfItFreesNothing) {
  Nodes({HamiNode("a", 2)});
  const PodRequest request = HamiPod("one", 1, 3000, 30);
  const BindPlan plan = Bind(request, "a");
  ASSERT_EQ(plan.kind, BindPlan::Kind::kWrite);
  const int given = plan.allocation.containers[0].devices[0].card;
  PodFacts seen = Bound(request, "a", plan.allocation);
  seen.allocation->containers[0].devices[0].milli = MilliGpu::Of(1);
  seen.allocation->containers[0].devices[0].memory = Mebibytes::Of(1);
  seen.request = HamiPod("one", 1, 1, 1);
  engine_.UpsertPod(seen, now_);
  EXPECT_EQ(Free(engine_), given == 0 ? "700/12109 1000/15109 None" : "1000/15109 700/12109 None");
  engine_.DeletePod(request.uid, now_);
  const BindPlan again = Bind(HamiPod("two", 1, 3000, 30), "a");
  ASSERT_EQ(again.kind, BindPlan::Kind::kWrite);
  seen = Bound(HamiPod("two", 1, 3000, 30), "a", again.allocation);
  Device& device = seen.allocation->containers[0].devices[0];
  device.card = 1 - device.card;
  device.uuid = GpuUuid(fmt::format("GPU-a-{}", device.card));
  engine_.UpsertPod(seen, now_);
  EXPECT_EQ(Free(engine_), "700/12109 700/12109 None");
  EXPECT_THAT(Faults(engine_), ElementsAre("disputed_devices"));
}

TEST_F(EngineRestartTest, ARecordThatIsRemovedBeforeTheWatchTellsOfItClosesNothing) {
  Nodes({HamiNode("a", 1)});
  const PodRequest request = HamiPod("one", 1, 3000, 30);
  ASSERT_EQ(Bind(request, "a").kind, BindPlan::Kind::kWrite);
  engine_.UpsertPod(Bound(request, "a"), now_);
  EXPECT_EQ(Free(engine_), "700/12109 None") << "we know what we wrote";
}

// Neither takes the other's place: our own bind, the edited record and the agent's keys.
TEST_F(EngineRestartTest, OfARecordThatIsEditedAndKeysThatDifferAllDevicesAreBusy) {
  Nodes({HamiNode("a", 3)});
  const PodRequest request = HamiPod("one", 1, 3000, 30);
  const BindPlan plan = Bind(request, "a");
  ASSERT_EQ(plan.kind, BindPlan::Kind::kWrite);
  const int given = plan.allocation.containers[0].devices[0].card;
  const auto other = [given](int step) {
    const int card = (given + step) % 3;
    return On(fmt::format("GPU-a-{}", card), card, 300, 3000);
  };
  PodFacts seen = Bound(request, "a", other(1));
  seen.disputed = other(2);
  engine_.UpsertPod(seen, now_);
  EXPECT_EQ(Free(engine_), "700/12109 700/12109 700/12109 None");
  EXPECT_THAT(Faults(engine_), ElementsAre("disputed_devices"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// ---- binds -----------------------------------------------------------------------------------

TEST_F(EngineRestartTest, APodFirstSeenWithoutWishesGivesItsReservationBack) {
  Nodes({StockNode("n1", 1)});
  PodRequest plain = test::EmptyRequest("late");
  plain.cpu = MilliCpu::Of(1000);
  engine_.UpsertPod(Pending(plain), now_);
  const PodRequest wishes = WholePod("late", 1);
  // kube-scheduler sees an annotation before we do.
  EXPECT_THAT(Filter(wishes), ElementsAre("n1"));
  const BindPlan first = engine_.Bind(wishes.name, wishes.uid, NodeName("n1"), now_);
  EXPECT_EQ(first.kind, BindPlan::Kind::kWrite);
  engine_.SettleBind(wishes.uid, NodeName("n1"), BindOutcome::kNotBound, now_);
  EXPECT_EQ(engine_.Totals().reservations, 0);
  EXPECT_THAT(Filter(WholePod("other", 1)), ElementsAre("n1"));
  EXPECT_EQ(Bind(wishes, "n1").kind, BindPlan::Kind::kWrite) << "and may be bound again";
}

TEST_F(EngineRestartTest, APodWhoseBindIsUnderWayIsAnsweredItsNodeAlone) {
  Nodes({StockNode("n1", 1), StockNode("n2", 1)});
  const PodRequest request = WholePod("one", 1);
  ASSERT_EQ(Bind(request, "n2").kind, BindPlan::Kind::kWrite);
  EXPECT_THAT(Filter(request), ElementsAre("n2"));
  EXPECT_EQ(ReasonOn(request, "n1"), "PodElsewhere");
  std::vector<int> ranks;
  engine_.Prioritize(request, std::vector<std::string_view>{"n1", "n2"}, now_, ranks);
  EXPECT_THAT(ranks, ElementsAre(0, 10));
  const PodRequest low = WholePod("low", 1);
  ASSERT_TRUE(Place(low, "n1"));
  EXPECT_THAT(engine_.Preempt(request, std::vector<PreemptNode>{{"n1", {low.uid}, 0}}, now_),
              IsEmpty());
}

// ---- quota -----------------------------------------------------------------------------------

TEST_F(EngineRestartTest, WorkOfAQuotaThatIsGoneFallsToTheOneThatOwnsItsNamespace) {
  const auto org = [](const char* team) {
    return test::Objects{.quotas = {Quota("org").Line("h100", "0"),
                                    Quota(team).Under("org").Owns("a").Line("h100", "4"),
                                    Quota("team-b").Under("org").Owns("b").Line("h100", "4")}};
  };
  Declare(org("team-a"));
  Nodes({StockNode("n1", 8)});
  ASSERT_TRUE(Place(Pod("a", "runs", 4), "n1"));
  Metered();
  Declare(org("team-a2"));
  EXPECT_THAT(Metered(), ElementsAre("close runs.0 at 0", "open runs.1 at 0"));
  EXPECT_EQ(View(Pod("a", "runs", 4)).leaf, "team-a2");
  EXPECT_EQ(Try(Pod("b", "mine", 4)), "n1");
  ASSERT_TRUE(Place(Pod("b", "mine", 4), "n1")) << "the owner's room is still its own";
  // Nobody owns the namespace: it is told, once.
  Declare({.quotas = {Quota("org").Line("h100", "8")}});
  EXPECT_THAT(Faults(engine_), ElementsAre("unowned_work", "unowned_work"));
  Declare({.quotas = {Quota("org").Line("h100", "9")}});
  EXPECT_THAT(Faults(engine_), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
