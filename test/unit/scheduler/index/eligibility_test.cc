// What keeps a request off a node, whatever is free there.
#include "scheduler/index/eligibility.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "scheduler/facts/reason.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

std::string Why(const NodeFacts& node, const PodRequest& request, GpuPolicy policy = {},
                const NodeRules& rules = {}) {
  Inventory inventory = BuildInventory(node, 0);
  inventory.rules = rules;
  Load load;
  load.Reset(inventory);
  policy.unenforced_sharing = Permission::kAllow;
  const Reason reason = Obstacle(inventory, load, request, {.policy = &policy});
  return reason == Reason::kNone ? "" : std::string(Describe(reason).code);
}

PodRequest With(PodRequest request, const std::function<void(PodRequest&)>& change) {
  change(request);
  return request;
}

NodeFacts WithNode(NodeFacts node, const std::function<void(NodeFacts&)>& change) {
  change(node);
  return node;
}

// A T4 and an A100.
NodeFacts Mixed() {
  return WithNode(test::HamiNode("n", 2), [](NodeFacts& node) {
    node.agent->devices[1].type = "NVIDIA-NVIDIA A100-SXM4-40GB";
    node.agent->devices[1].memory = Mebibytes::Of(40960);
  });
}

TEST(Eligibility, TheMostFundamentalThingThatIsMissingIsTold) {
  const auto models = [](std::vector<std::string> any) {
    return [any](PodRequest& request) { request.models_any = any; };
  };
  const PodRequest two = test::HamiPod("p", 2, 1000);
  const struct {
    const char* what;
    NodeFacts node;
    PodRequest request;
    const char* reason;
  } rows[] = {
      {"nothing", Mixed(), two, ""},
      {"another model", test::StockNode("n", 2), With(test::WholePod("p", 1), models({"a100"})),
       "WrongModel"},
      {"a second card of the model", Mixed(), With(two, models({"a100"})), "WrongModel"},
      {"either model", Mixed(), With(two, models({"a100", "t4"})), ""},
      {"a model that is excluded", test::StockNode("n", 2),
       With(test::WholePod("p", 1), [](PodRequest& request) { request.models_none = {"h100"}; }),
       "WrongModel"},
      {"a model of instances", test::MigNode("n", 1, 0, {{"3g.40gb", 2}}),
       With(test::MigPod("p", "3g.40gb", 1), models({"h100"})), "WrongModel"},
      {"the card it names", Mixed(),
       With(two, [](PodRequest& request) { request.uuids_any = {"GPU-n-0"}; }), "WrongDevice"},
      {"the card it excludes", Mixed(),
       With(two, [](PodRequest& request) { request.uuids_none = {"GPU-n-0"}; }), "WrongDevice"},
      {"memory of a card", Mixed(),
       With(two, [](PodRequest& request) { request.min_gpu_memory = Mebibytes::Of(20'000); }),
       "TooLarge"},
      {"memory of an instance", test::MigNode("n", 1, 0, {{"3g.40gb", 2}}),
       With(test::MigPod("p", "3g.40gb", 1),
            [](PodRequest& request) { request.min_gpu_memory = Mebibytes::Of(50'000); }),
       "TooLarge"},
      {"a healthy card",
       WithNode(Mixed(), [](NodeFacts& node) { node.agent->devices[0].healthy = false; }), two,
       "Unhealthy"},
      {"a card that is not cordoned",
       WithNode(Mixed(), [](NodeFacts& node) { node.cordoned_devices = {GpuUuid("GPU-n-1")}; }),
       two, "Unhealthy"},
      {"a GPU that the kubelet counts", test::StockNode("n", 0), test::WholePod("p", 1), "NoGpu"},
      {"a key that the kubelet counts", test::StockNode("n", 2), test::SharedPod("p", 1), "NoGpu"},
      {"any GPU", NodeFacts{}, test::WholePod("p", 1), "NoGpu"},
      {"MIG in a card of an agent that does not cut it",
       WithNode(test::HamiNode("n", 1),
                [](NodeFacts& node) { node.agent->devices[0].mode = "mig"; }),
       test::HamiPod("p", 1, 1000), "WrongDevice"},
  };
  for (const auto& row : rows) EXPECT_EQ(Why(row.node, row.request), row.reason) << row.what;
}

// Of several keys the worst is told, in whichever order they are.
TEST(Eligibility, OfSeveralKeysTheWorstIsTold) {
  const NodeFacts node = WithNode(test::MigNode("n", 2, 0, {{"1g.10gb", 7}, {"3g.40gb", 2}}),
                                  [](NodeFacts& facts) { facts.mig[1].count.allocatable = 1; });
  PodRequest request = test::MigPod("p", "1g.10gb", 8);      // the node has seven
  const PodRequest other = test::MigPod("p", "3g.40gb", 2);  // one of two is ill
  request.asks.push_back(other.asks[0]);
  request.pool_needs.push_back(other.pool_needs[0]);
  EXPECT_EQ(Why(node, other), "Unhealthy");
  EXPECT_EQ(Why(node, request), "TooManyPerNode");
  std::swap(request.pool_needs[0], request.pool_needs[1]);
  EXPECT_EQ(Why(node, request), "TooManyPerNode");
}

// failRequestsGreaterThanOne of NVIDIA's device plugin, as a GPUPolicy tells of it.
TEST(Eligibility, APolicySaysWhetherAContainerMayHaveSeveralReplicas) {
  using Says = std::optional<Permission>;
  constexpr Permission kAllow = Permission::kAllow;
  constexpr Permission kRefuse = Permission::kRefuse;
  const NodeFacts mps = test::SharedNode("n", 2, 4, true, SharingMethod::kMps);
  const NodeFacts sliced = test::SharedNode("n", 2, 4, true);
  const NodeFacts instances = test::MigNode("n", 1, 0, {{"3g.40gb", 2, 2}});
  const PodRequest two = test::SharedPod("p", 2);
  const PodRequest two_of_mig = test::MigPod("p", "3g.40gb", 2, true);
  const struct {
    const NodeFacts& node;
    const PodRequest& request;
    Says policy, rules;
    std::string_view reason;
  } rows[] = {
      {sliced, two, {}, {}, ""},
      {sliced, two, kAllow, {}, ""},
      {sliced, two, kRefuse, {}, "OneReplica"},
      {sliced, two, kRefuse, kAllow, ""},
      {sliced, two, kAllow, kRefuse, "OneReplica"},
      {mps, two, {}, {}, "OneReplica"},
      {mps, two, kRefuse, {}, "OneReplica"},
      {mps, two, kAllow, {}, ""},
      {mps, two, {}, kAllow, ""},
      {instances, two_of_mig, {}, {}, ""},
      {instances, two_of_mig, kRefuse, {}, "OneReplica"},
  };
  for (const auto& row : rows) {
    GpuPolicy policy;
    policy.several_replicas = row.policy;
    NodeRules rules;
    rules.several_replicas = row.rules;
    EXPECT_EQ(Why(row.node, row.request, policy, rules), row.reason) << &row - rows;
  }
  GpuPolicy refuse;
  refuse.several_replicas = kRefuse;
  EXPECT_EQ(Why(sliced, test::SharedPod("p", 1), refuse), "");
  EXPECT_EQ(Why(test::StockNode("n", 4), test::WholePod("p", 4), refuse), "") << "whole GPUs";
  EXPECT_EQ(
      Why(test::MigNode("n", 1, 0, {{"3g.40gb", 2}}), test::MigPod("p", "3g.40gb", 2), refuse), "")
      << "instances that nobody shares";
  EXPECT_EQ(Why(sliced, test::FractionPod("p", 100, 2), refuse), "") << "shares, of two cards";
}

// tranche-node writes a share's limits into variables, and refuses a container that sets them.
TEST(Eligibility, WhoSetsLimitsOfMpsItselfGetsNoShareOfTrancheNode) {
  const NodeFacts own = WithNode(test::HamiNode("n", 2), [](NodeFacts& node) {
    node.agent->kind = AgentKind::kTranche;
    for (AgentDevice& device : node.agent->devices) device.mode = "mps";
  });
  const NodeFacts mps = test::SharedNode("n", 2, 4, true, SharingMethod::kMps);
  const PodRequest plain = With(test::FractionPod("p", 500), [](PodRequest& request) {
    request.containers[0].plugin_count = 1;
    request.pool_needs = {{"nvidia.com/gpu", 1}};
  });
  const auto sets = [](const PodRequest& request, int container) {
    return With(request, [container](PodRequest& made) {
      made.containers.push_back({"beside", ContainerRole::kApp, 0});
      made.own_limits = {{container, MilliGpu::Of(250), std::nullopt, ""}};
    });
  };
  EXPECT_EQ(Why(own, plain), "");
  EXPECT_EQ(Why(own, sets(plain, 0)), "AgentCannotServe");
  EXPECT_EQ(Why(own, sets(plain, 1)), "") << "a container without GPUs";
  const PodRequest whole =
      With(plain, [](PodRequest& request) { request.asks[0].compute = kWholeGpu; });
  EXPECT_EQ(Why(own, sets(whole, 0)), "") << "limits of a whole GPU are nobody else's";
  EXPECT_EQ(Why(mps, sets(test::SharedPod("p", 1), 0)), "") << "NVIDIA's plugin lets it";
}

// The server of MPS refuses a container that asks for two of its replicas; nobody else does.
TEST(Eligibility, UnderMpsAContainerHasOneReplica) {
  const NodeFacts mps = test::SharedNode("n", 2, 4, true, SharingMethod::kMps);
  EXPECT_EQ(Why(mps, test::SharedPod("p", 1)), "");
  EXPECT_EQ(Why(mps, test::SharedPod("p", 2)), "OneReplica");
  EXPECT_EQ(Why(test::SharedNode("n", 2, 4, true), test::SharedPod("p", 2)), "");
  NodeFacts unreplicated = test::StockNode("n", 2);
  unreplicated.sharing = SharingMethod::kMps;
  EXPECT_EQ(Why(unreplicated, test::WholePod("p", 2)), "") << "whole cards";
  NodeFacts beside = mps;
  beside.product = "NVIDIA-A100-80GB-PCIe";
  beside.memory = Mebibytes::Of(81'251);
  beside.mig = test::MigNode("n", 1, 0, {{"3g.40gb", 2}}).mig;
  EXPECT_EQ(Why(beside, test::MigPod("p", "3g.40gb", 2)), "") << "instances beside them";
  EXPECT_EQ(Why(mps, test::FractionPod("p", 100, 2)), "") << "shares, which are of two cards";
}

// Cards that are cut serve one container with several instances, of which each is a user.
TEST(Eligibility, MoreInstancesThanCardsTakeUsersAreTooMany) {
  const NodeFacts node = WithNode(test::HamiNode("n", 1, /*slots=*/3), [](NodeFacts& facts) {
    facts.product = "NVIDIA-A100-SXM4-40GB";
    facts.memory = Mebibytes::Of(40960);
    facts.gpu = ResourceCount{20, 20};
    facts.agent->minor = 10;
    facts.agent->devices[0].memory = Mebibytes::Of(40960);
    facts.agent->devices[0].mode = "mig";
  });
  const auto instances = [](int64_t count) {
    return With(test::HamiPod("p", count, 4000),
                [](PodRequest& request) { request.vgpu_mode = "mig"; });
  };
  EXPECT_EQ(Why(node, instances(3)), "");
  EXPECT_EQ(Why(node, instances(4)), "TooManyPerNode");
}

}  // namespace THIS_FILE
}  // namespace tranche
