// Resource claims in the engine: charged once, let in by quota, explained. A team owns two GPUs of
// nodes whose devices only resource slices tell of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "test/unit/scheduler/dra/devices.h"
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kH100 = "NVIDIA H100 80GB HBM3";

class EngineDra : public EngineQuotaTest {
 protected:
  void SetUp() override {
    for (const std::string& name : {std::string("n1"), std::string("n2")}) {
      NodeFacts node;
      node.name = NodeName(name);
      node.ready = true;
      Nodes({node});
      engine_.SetDraObject(
          dra::NodeSlice(name, {dra::GpuDevice("gpu-0", name + "-a", kH100, 81559),
                                dra::GpuDevice("gpu-1", name + "-b", kH100, 81559)}),
          now_);
    }
    for (dra::DeviceClass& each : dra::NvidiaClasses()) engine_.SetDraObject(each, now_);
    Declare({.quotas = {test::Quota("team").Owns("team").Line("h100", "2")}});
    engine_.FinishRestore(now_);
    Metered();
  }

  static dra::Claim Asks(const std::string& name, int64_t gpus = 1) {
    dra::RequestChoice choice = dra::Choice("gpu.nvidia.com", {}, gpus);
    return dra::ClaimOf(name, {{"gpu", {choice}}});
  }
  static dra::Claim Allocated(dra::Claim claim, const std::string& node, const std::string& device,
                              std::vector<std::string> pods = {}) {
    claim = dra::Holding(std::move(claim), {dra::Held("gpu", node, device)});
    for (std::string& pod : pods) claim.reserved_for.emplace_back(std::move(pod));
    return claim;
  }
  void Put(dra::Object object) { engine_.SetDraObject(std::move(object), now_); }

  static PodFacts PodWith(const std::string& name, std::vector<std::string> claims,
                          const std::string& node = "") {
    PodFacts pod;
    pod.request.uid = PodUid(name);
    pod.request.name = {"team", name};
    pod.node = NodeName(node);
    dra::PodClaims uses;
    for (const std::string& claim : claims) {
      uses.claims.push_back({claim, claim, ""});
      uses.containers.push_back({"main", claim, ""});
    }
    pod.claims = std::make_shared<const dra::PodClaims>(std::move(uses));
    return pod;
  }
  // What filter says of the pod: its nodes, "untouched", or the reason.
  std::string Ask(const PodFacts& pod) {
    engine_.UpsertPod(pod, now_);
    std::string nodes;
    for (const std::string& node : Filter(pod.request)) nodes += (nodes.empty() ? "" : " ") + node;
    if (answer_.untouched) return "untouched";
    return nodes.empty() ? std::string(Describe(answer_.reason).code) : nodes;
  }
  // GPUs the team holds.
  int64_t Used() {
    for (const QuotaView& view : engine_.Quotas(now_)) {
      for (const QuotaLineReport& line : view.report.lines) {
        if (line.line.name == "h100") return line.line.used.compute * 1000 / kQuantaPerGpu;
      }
    }
    return -1;
  }
  ~EngineDra() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }
};

TEST_F(EngineDra, AClaimIsChargedOnceHoweverManyPodsUseIt) {
  Put(Allocated(Asks("shared"), "n1", "gpu-0", {"one", "two"}));
  engine_.UpsertPod(PodWith("one", {"shared"}, "n1"), now_);
  engine_.UpsertPod(PodWith("two", {"shared"}, "n1"), now_);
  EXPECT_EQ(Used(), 1000);
  EXPECT_THAT(Metered(), ElementsAre("open shared.0 at 0", "running shared.0 at 0"));
  Pass(Millis(60'000));
  engine_.DeletePod(PodUid("one"), now_);
  EXPECT_EQ(Used(), 1000) << "the other one still uses it";
  engine_.RemoveDraObject({dra::ObjectRef::Kind::kClaim, "team", "shared"}, now_);
  EXPECT_EQ(Used(), 0);
  EXPECT_THAT(Metered(), ElementsAre("close shared.0 at 60"));
}

// kube-scheduler writes the allocation before it binds the pod, so that the pod has no node yet.
TEST_F(EngineDra, AClaimIsOnTheNodeOfItsDevicesBeforeItsPodIs) {
  engine_.UpsertPod(PodWith("one", {"by-pool"}), now_);
  engine_.UpsertPod(PodWith("two", {"by-node"}), now_);
  Put(Allocated(Asks("by-pool"), "n2", "gpu-0", {"one"}));
  dra::Claim claim = Allocated(Asks("by-node"), "rack", "gpu-0", {"two"});
  NodeTerm zone;
  zone.key = "zone";
  zone.values = {"a"};
  NodeTerm name;
  name.key = "metadata.name";
  name.is_field = true;
  name.values = {"n1"};
  claim.allocation->nodes.emplace().affinity = {{zone, name}};
  Put(claim);
  claim.name = claim.uid = "of-many";
  claim.allocation->nodes->affinity.push_back({name});
  Put(claim);
  Metered();
  std::map<std::string, std::string> nodes;
  for (const MeterEvent& event : journal_) {
    if (event.kind == MeterKind::kOpen) nodes[event.pod.name] = event.node.str();
  }
  EXPECT_THAT(nodes, UnorderedElementsAre(Pair("by-pool", "n2"), Pair("by-node", "n1"),
                                          Pair("of-many", "rack")));
}

TEST_F(EngineDra, AClaimIsOnTheLineOfItsPoolBeforeItsPodIsBound) {
  Declare(
      {.quotas = {test::Quota("team").Owns("team").Line("h100", "2").PoolLine("h100", "spot", "2")},
       .pools = {test::Pool("spot")}});
  NodeFacts node;
  node.name = NodeName("s1");
  node.labels = LabelText(Labels{{"pool", "spot"}});
  Nodes({node});
  Put(dra::NodeSlice("s1", {dra::GpuDevice("gpu-0", "s1-a", kH100, 81559)}));
  engine_.UpsertPod(PodWith("one", {"c"}), now_);
  Put(Allocated(Asks("c"), "s1", "gpu-0", {"one"}));
  std::map<std::string, int64_t> used;
  for (const QuotaView& view : engine_.Quotas(now_)) {
    for (const QuotaLineReport& line : view.report.lines) {
      used[line.line.name] = line.line.used.compute / kQuantaPerGpu;
    }
  }
  EXPECT_THAT(used, UnorderedElementsAre(Pair("h100", 0), Pair("h100@spot", 1)));
}

TEST_F(EngineDra, DeallocationAndAnotherDeviceEndWhatWasCharged) {
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  EXPECT_EQ(Used(), 1000);
  Put(Asks("c"));
  EXPECT_EQ(Used(), 0);
  Put(Allocated(Asks("c"), "n2", "gpu-1"));
  EXPECT_EQ(Used(), 1000);
  EXPECT_THAT(Metered(), ElementsAre("open c.0 at 0", "running c.0 at 0", "close c.0 at 0",
                                     "open c.1 at 0", "running c.1 at 0"));
}

TEST_F(EngineDra, ClaimsCostWhatTheirCardsDoAndNameWhatMadeThePod) {
  Declare({.quotas = {test::Quota("team").Owns("team").Line("h100", "2")},
           .prices = {test::Price("all", 2'000)}});
  Put(Asks("c"));
  PodFacts pod = PodWith("one", {"c"}, "n1");
  pod.controller = "Job/train";
  engine_.UpsertPod(pod, now_);
  Put(Allocated(Asks("c"), "n1", "gpu-0", {"one"}));
  Metered();
  ASSERT_FALSE(journal_.empty());
  EXPECT_EQ(journal_.front().controller, "Job/train");
  CostWalk walk;
  while (!walk.done()) engine_.CostSlice(walk, now_);
  const CostSums costs = CostsOf(walk);
  ASSERT_EQ(costs.held.size(), 1U);
  EXPECT_EQ(costs.held[0].leaf, "team");
  EXPECT_EQ(costs.held[0].model, "h100");
  EXPECT_TRUE(costs.held[0].money == Int128{kQuantaPerGpu} * 2'000'000) << "one of two dollars";
  ASSERT_EQ(costs.fleet.size(), 1U);
  EXPECT_TRUE(costs.fleet[0].money == Int128{kQuantaPerGpu} * 8'000'000) << "four of them";
}

TEST_F(EngineDra, AdministratorsLookForNothing) {
  dra::Claim claim = Allocated(Asks("watch"), "n1", "gpu-0");
  claim.allocation->devices[0].admin = true;
  Put(std::move(claim));
  EXPECT_EQ(Used(), 0);
}

TEST_F(EngineDra, SlicesThatAreAwayForAMomentChangeNoCharge) {
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  Metered();
  engine_.RemoveDraObject({dra::ObjectRef::Kind::kSlice, "", "n1-slice"}, now_);
  Put(Allocated(Asks("c"), "n1", "gpu-0", {"one"}));
  EXPECT_EQ(Used(), 1000);
  EXPECT_THAT(Metered(), IsEmpty());
}

TEST_F(EngineDra, FilterRefusesWhatQuotaDoesNotHave) {
  Put(Allocated(Asks("first"), "n1", "gpu-0"));
  Put(Asks("second"));
  Put(Asks("third"));
  EXPECT_EQ(Ask(PodWith("p2", {"second"})), "n1 n2") << "the node that is used already";
  EXPECT_EQ(Ask(PodWith("p3", {"third"})), "WaitingForQuota") << "p2 was let in a moment ago";
  EXPECT_EQ(Ask(PodWith("p2", {"second"})), "n1 n2") << "what is kept for it does not count twice";
  Put(Allocated(Asks("second"), "n1", "gpu-1", {"p2"}));
  EXPECT_EQ(Used(), 2000);
  EXPECT_EQ(Ask(PodWith("p3", {"third"})), "WaitingForQuota");
  engine_.RemoveDraObject({dra::ObjectRef::Kind::kClaim, "team", "first"}, now_);
  EXPECT_EQ(Ask(PodWith("p3", {"third"})), "n1 n2");
}

TEST_F(EngineDra, WhatWasLetInAndNeverAllocatedLapses) {
  Put(Asks("big", 2));
  Put(Asks("other"));
  EXPECT_EQ(Ask(PodWith("p1", {"big"})), "n1 n2");
  EXPECT_EQ(Ask(PodWith("p2", {"other"})), "WaitingForQuota");
  Pass(Millis(11'000));
  EXPECT_THAT(Requeued(), Contains("p2")) << "time alone is no event to kube-scheduler";
  EXPECT_EQ(Ask(PodWith("p2", {"other"})), "n1 n2");
}

TEST_F(EngineDra, PodsOfAnUnknownClaimWaitForIt) {
  EXPECT_EQ(Ask(PodWith("p1", {"late"})), "ClaimUnknown");
  EXPECT_THAT(Requeued(), IsEmpty());
  Put(Asks("late"));
  EXPECT_THAT(Requeued(), ElementsAre("p1"));
  EXPECT_EQ(Ask(PodWith("p1", {"late"})), "n1 n2");
}

TEST_F(EngineDra, ANodeThatIsAboutToGoIsForNoClaim) {
  Put(Asks("c"));
  NodeFacts node;
  node.name = NodeName("n1");
  node.ready = true;
  node.taints = {{"tranche.dev/interruption", "", "NoSchedule"}};
  engine_.UpsertNode(node, now_);
  EXPECT_EQ(Ask(PodWith("p1", {"c"})), "n2");
}

TEST_F(EngineDra, ANodeWhoseDevicesARuleTaintsIsTheLast) {
  Put(Asks("c"));
  EXPECT_EQ(Ask(PodWith("p1", {"c"})), "n1 n2");
  Put(dra::TaintRule{"drain", true, {}, "n1", {}, {"maintenance", "", "NoSchedule"}});
  EXPECT_EQ(Ask(PodWith("p1", {"c"})), "n2 n1");
  engine_.RemoveDraObject({dra::ObjectRef::Kind::kTaintRule, "", "drain"}, now_);
  EXPECT_EQ(Ask(PodWith("p1", {"c"})), "n1 n2");
}

TEST_F(EngineDra, ClaimsWithoutGpusAreNoConcernOfOurs) {
  Put(dra::ClassOf("nic", {"device.driver == 'dra.net'"}));
  Put(dra::ClaimOf("net", {{"nic", {dra::Choice("nic")}}}));
  EXPECT_EQ(Ask(PodWith("p1", {"net"})), "untouched");
  EXPECT_THAT(engine_.Pods({}, PodUid(), 10), IsEmpty());
}

TEST_F(EngineDra, RanksKeepIdleNodesWhole) {
  Put(Allocated(Asks("first"), "n2", "gpu-0"));
  Put(Asks("second"));
  const PodFacts pod = PodWith("p2", {"second"});
  EXPECT_EQ(Ask(pod), "n2 n1");
  std::vector<int> ranks;
  const std::vector<std::string_view> both = {"n1", "n2"};
  engine_.Prioritize(pod.request, both, now_, ranks);
  EXPECT_THAT(ranks, ElementsAre(9, 10));
}

TEST_F(EngineDra, MigInstancesGoToCardsThatAreInUse) {
  for (const std::string& node : {std::string("n1"), std::string("n2")}) {
    Put(dra::NodeSlice(node, {dra::MigDevice(node + "-0", "3g.40gb", node + "-a", kH100, 40192),
                              dra::MigDevice(node + "-1", "3g.40gb", node + "-a", kH100, 40192),
                              dra::MigDevice(node + "-2", "3g.40gb", node + "-b", kH100, 40192)}));
  }
  const auto asks = [](const std::string& name) {
    return dra::ClaimOf(
        name, {{"mig",
                {dra::Choice("mig.nvidia.com",
                             {"device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"})}}});
  };
  dra::Claim held = asks("held");
  Put(dra::Holding(std::move(held), {dra::Held("mig", "n2", "n2-0")}));
  EXPECT_EQ(Used(), 3 * 1000 / 7);
  Put(asks("next"));
  EXPECT_EQ(Ask(PodWith("p", {"next"})), "n2 n1");
  const std::optional<Explanation> why = engine_.Explain({"team", "p"}, now_);
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->nodes[1].detail, "gets n2-1");
}

TEST_F(EngineDra, ExplainSaysWhoUsesWhatAndHowItIsShared) {
  dra::Claim claim = Allocated(Asks("shared"), "n1", "gpu-0", {"one", "two"});
  dra::DriverConfig config;
  config.driver = std::string(dra::kGpuDriver);
  config.sharing.emplace();
  config.sharing->strategy = dra::Sharing::Strategy::kMps;
  config.sharing->thread_percent = 50;
  claim.allocation->configs = {config};
  Put(std::move(claim));
  engine_.UpsertPod(PodWith("one", {"shared"}, "n1"), now_);
  engine_.UpsertPod(PodWith("two", {"shared"}, "n1"), now_);
  const std::optional<Explanation> why = engine_.Explain({"team", "two"}, now_);
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->pod.state, PodState::kBound);
  EXPECT_EQ(why->pod.leaf, "team");
  ASSERT_EQ(why->claims.size(), 1u);
  EXPECT_THAT(why->claims[0].devices, ElementsAre(HasSubstr("gpu-0 (NVIDIA H100 80GB HBM3, n1-a")));
  EXPECT_EQ(why->claims[0].pods.size(), 2u);
  EXPECT_THAT(why->claims[0].sharing, ElementsAre(HasSubstr("50% of the threads")));
  ASSERT_TRUE(why->pod.allocation.has_value());
  EXPECT_EQ(why->pod.allocation->containers[0].devices[0].uuid.str(), "n1-a");
}

TEST_F(EngineDra, ExplainSaysWhyAPodWaits) {
  Put(Allocated(Asks("a"), "n1", "gpu-0"));
  Put(Allocated(Asks("b"), "n1", "gpu-1"));
  Put(Asks("c"));
  EXPECT_EQ(Ask(PodWith("p", {"c"})), "WaitingForQuota");
  const std::optional<Explanation> why = engine_.Explain({"team", "p"}, now_);
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->pod.reason, Reason::kWaitingForQuota);
  EXPECT_THAT(why->pod.detail, HasSubstr("h100"));
  EXPECT_THAT(why->advice, HasSubstr("must end"));
  EXPECT_EQ(why->nodes[0].reason, Reason::kWaitingForQuota);
}

TEST_F(EngineDra, NodesShowTheirGpusAndWhoHoldsThem) {
  Put(Allocated(Asks("shared"), "n1", "gpu-1", {"one"}));
  engine_.UpsertPod(PodWith("one", {"shared"}, "n1"), now_);
  const std::vector<NodeView> nodes = engine_.Nodes(NodeName(), 10, now_);
  ASSERT_EQ(nodes[0].gpus.size(), 2u);
  EXPECT_EQ(nodes[0].model, "h100");
  EXPECT_EQ(nodes[0].knowledge, Knowledge::kExact);
  EXPECT_EQ(nodes[0].gpus[0].free_milli, kWholeGpu);
  EXPECT_EQ(nodes[0].gpus[1].uuid.str(), "n1-b");
  EXPECT_EQ(nodes[0].gpus[1].free_milli, MilliGpu::Zero());
  EXPECT_EQ(nodes[0].gpus[1].pods[0].pod.name, "one");
}

TEST_F(EngineDra, GpusThatOnlySlicesTellOfCountInAllSums) {
  Put(Allocated(Asks("shared"), "n1", "gpu-1", {"one", "two"}));
  engine_.UpsertPod(PodWith("one", {"shared"}, "n1"), now_);
  engine_.UpsertPod(PodWith("two", {"shared"}, "n1"), now_);
  Put(Asks("waits"));
  Ask(PodWith("three", {"waits"}));
  const EngineTotals totals = engine_.Totals();
  ASSERT_EQ(totals.models.size(), 1U);
  EXPECT_EQ(totals.models[0].model, "h100");
  EXPECT_EQ(totals.models[0].gpus, 4);
  EXPECT_EQ(totals.models[0].capacity, MilliGpu::Of(4000));
  EXPECT_EQ(totals.models[0].allocated, MilliGpu::Of(1000)) << "once, though two pods use it";
  EXPECT_EQ(totals.models[0].memory_allocated, Mebibytes::Of(81559));
  EXPECT_EQ(totals.pods_bound, 2);
  EXPECT_EQ(totals.pods_pending, 1);
}

TEST_F(EngineDra, AtItsCreationAPodHearsOfQuota) {
  dra::Claim made = Asks("gpu-template");
  made.uid.clear();
  Put(dra::ClaimTemplate{std::move(made)});
  dra::PodClaims uses;
  uses.claims.push_back({"gpu", "", "gpu-template"});
  PodRequest request;
  request.name = {"team", "new"};
  ClaimForecast word = engine_.ForecastClaims(request, uses, now_);
  EXPECT_TRUE(word.wants_gpus);
  EXPECT_FALSE(word.quota_waits);
  Put(Allocated(Asks("a"), "n1", "gpu-0"));
  Put(Allocated(Asks("b"), "n1", "gpu-1"));
  word = engine_.ForecastClaims(request, uses, now_);
  EXPECT_TRUE(word.wants_gpus);
  EXPECT_TRUE(word.quota_waits);
}

TEST_F(EngineDra, AGateGoesWhenQuotaLetsThePodIn) {
  Put(Allocated(Asks("a"), "n1", "gpu-0"));
  Put(Allocated(Asks("b"), "n1", "gpu-1"));
  Put(Asks("c"));
  PodFacts pod = PodWith("p", {"c"});
  pod.gated = true;
  pod.our_gates.quota = true;
  engine_.UpsertPod(pod, now_);
  Pass(Millis(2'000));
  EXPECT_THAT(std::exchange(engine_.effects().ungate, {}), IsEmpty());
  EXPECT_EQ(engine_.Pod(PodUid("p"))->reason, Reason::kWaitingForQuota);
  engine_.RemoveDraObject({dra::ObjectRef::Kind::kClaim, "team", "a"}, now_);
  Pass(Millis(2'000));
  const std::vector<GateRemoval> removed = std::exchange(engine_.effects().ungate, {});
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].pod.name, "p");
}

TEST_F(EngineDra, ExtendedResourcesGoToNodesThatDraServesAndAreChargedOnce) {
  dra::DeviceClass serves = dra::NvidiaClasses()[0];
  serves.extended_resource = "nvidia.com/gpu";
  Put(std::move(serves));
  const PodRequest request = Pod("team", "plain", 1);
  EXPECT_EQ(Try(request), "n1 n2");
  engine_.UpsertPod(test::Pending(request), now_);  // a condition of it was written
  const BindPlan plan = engine_.Bind(request.name, request.uid, NodeName("n1"), now_);
  EXPECT_EQ(plan.kind, BindPlan::Kind::kWrite);
  EXPECT_FALSE(plan.asks_gpu) << "its devices are in the claim";
  dra::Claim made = Allocated(Asks("plain-extended"), "n1", "gpu-0", {"plain"});
  made.owner = request.uid;
  made.for_extended_resource = true;
  Put(std::move(made));
  engine_.UpsertPod(test::Bound(request, "n1", std::nullopt), now_);
  EXPECT_EQ(Used(), 1000);
  EXPECT_EQ(Try(Pod("team", "third", 2)), "WaitingForQuota");
  EXPECT_EQ(Try(Pod("team", "second", 1)), "n1 n2");
  EXPECT_EQ(Try(Pod("team", "fourth", 1)), "WaitingForQuota") << "kept for the second";
}

// A claim that the ledger had open before a restart.
MeterHistory OpenBefore() {
  OpenInterval open;
  open.uid = PodUid("claim/c-uid");
  open.interval = 3;
  open.pod = {"team", "c"};
  open.leaf = "team";
  open.parts = {{"h100", {kQuantaPerGpu, kQuantaPerGpu}}};
  open.since = test::At(-100);
  MeterHistory history;
  history.open.push_back(open);
  history.heartbeat = test::At(-1);
  return history;
}

TEST_F(EngineDra, AClaimTheLedgerHasOpenGoesOnAfterARestart) {
  Engine again{EngineOptions{}};
  again.Restore(OpenBefore());
  again.SetDraObject(dra::NodeSlice("n1", {dra::GpuDevice("gpu-0", "a", kH100, 81559)}), now_);
  again.SetDraObject(Allocated(Asks("c"), "n1", "gpu-0"), now_);
  again.FinishRestore(now_);
  EXPECT_THAT(again.effects().metering, IsEmpty()) << "nothing is opened twice, nothing is closed";
  EXPECT_THAT(again.Audit(), IsEmpty());
  again.RemoveDraObject({dra::ObjectRef::Kind::kClaim, "team", "c"}, now_);
  const std::vector<MeterEvent> events = std::exchange(again.effects().metering, {});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Text(events[0]), "close c.3 at 0");
}

// Where nobody may read claims at first, theirs end with the last leader. Once they are shown they
// go on under a number of their own: the ledger takes no interval twice.
TEST_F(EngineDra, AClaimThatIsShownLateGoesOnWithTheNextInterval) {
  Engine again{EngineOptions{}};
  again.Restore(OpenBefore());
  again.FinishRestore(now_);
  again.SetDraObject(dra::NodeSlice("n1", {dra::GpuDevice("gpu-0", "a", kH100, 81559)}), now_);
  again.SetDraObject(Allocated(Asks("c"), "n1", "gpu-0"), now_);
  std::vector<std::string> told;
  for (const MeterEvent& event : again.effects().metering) told.push_back(Text(event));
  EXPECT_THAT(told, ElementsAre("close c.3 at -1 estimated", "open c.4 at 0", "running c.4 at 0"));
  EXPECT_THAT(again.Audit(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
