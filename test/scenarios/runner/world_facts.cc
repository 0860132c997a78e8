#include "test/scenarios/runner/world_facts.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "test/builders/budget.h"
#include "test/builders/cluster.h"
#include "test/builders/machines.h"
#include "test/builders/policies.h"

namespace tranche::scenario {
namespace {

// A GPU model as its driver names it, and its memory as nvidia-smi reports it.
struct Model {
  std::string product;
  int64_t mib = 0;
};
const std::vector<std::pair<std::string, Model>>& Models() {
  static const std::vector<std::pair<std::string, Model>> models = {
      {"h100", {"NVIDIA-H100-80GB-HBM3", 81559}},
      {"a100", {"NVIDIA-A100-SXM4-80GB", 81920}},
      {"v100", {"Tesla-V100-SXM2-32GB", 32768}},
      {"l40s", {"NVIDIA-L40S", 46068}},
      {"t4", {"Tesla-T4", 15109}},
  };
  return models;
}

enum class Links : uint8_t { kUnknown, kPcie, kPairs, kCube, kSwitch };

// Nodes that cut their A100 as pods are bound say that they could hold this many of each profile.
std::vector<test::MigCount> PlannedProfiles(int gpus) {
  std::vector<test::MigCount> counts;
  for (const char* profile : {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}) {
    counts.push_back({profile, int64_t{gpus} * 7});
  }
  return counts;
}

NodeFacts Device(const std::string& name, int gpus, Options& options) {
  enum class Sharing : uint8_t { kNone, kTimeSlicing, kMps };
  const bool hami = options.Choice<bool>("agent", {{"none", false}, {"hami", true}}, false);
  const bool planned =
      options.Choice<bool>("layout", {{"static", false}, {"planned", true}}, false);
  const auto sharing = options.Choice<Sharing>(
      "sharing",
      {{"none", Sharing::kNone}, {"timeslicing", Sharing::kTimeSlicing}, {"mps", Sharing::kMps}},
      Sharing::kNone);
  const int replicas = static_cast<int>(options.Integer("replicas", 4));
  std::vector<test::MigCount> instances;
  for (const auto& [profile, count] : options.Pairs("mig")) {
    instances.push_back({profile, *ParseThousandths(count) / 1000});
  }
  if (planned) {
    NodeFacts node = test::MigNode(name, gpus, 0, PlannedProfiles(gpus));
    node.mig_planned = true;
    return node;
  }
  if (!instances.empty()) return test::MigNode(name, gpus, 0, instances);
  if (sharing != Sharing::kNone) {
    return test::SharedNode(
        name, gpus, replicas, true,
        sharing == Sharing::kMps ? SharingMethod::kMps : SharingMethod::kTimeSlicing);
  }
  return hami ? test::HamiNode(name, gpus) : test::StockNode(name, gpus);
}

void SetModel(NodeFacts& node, const Model& model) {
  node.product = model.product;
  node.memory = Mebibytes::Of(model.mib);
  if (!node.agent) return;
  for (AgentDevice& device : node.agent->devices) {
    device.memory = *node.memory;
    device.type = "NVIDIA-" + model.product;
  }
}

std::optional<Machine> MachineOf(Links links, int gpus) {
  switch (links) {
    case Links::kUnknown:
      return std::nullopt;
    case Links::kPcie:
      return test::PcieOnly(gpus, gpus / 2);
    case Links::kPairs:
      return test::BridgedPairs(gpus);
    case Links::kCube:
      return test::CubeMesh();
    case Links::kSwitch:
      return test::Switched(gpus, gpus / 2);
  }
  return std::nullopt;
}

Labels LabelsOf(Options& options) {
  Labels labels;
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"clique", "nvidia.com/gpu.clique"},
      {"rack", "topology.kubernetes.io/rack"},
      {"zone", "topology.kubernetes.io/zone"},
  };
  for (const auto& [option, label] : keys) {
    if (options.Has(option)) labels[label] = options.Text(option);
  }
  return labels;
}

// The GPUs of a pod, by the option that names their style; of several the first counts, and the
// others are reported as unknown.
PodRequest Wanted(const std::string& name, Options& options) {
  const int64_t cards = options.Integer("cards", 1);
  if (options.Has("gpus")) return test::WholePod(name, options.Integer("gpus", 1));
  if (options.Has("fraction")) {
    return test::FractionPod(name, options.Thousandths("fraction", 0), cards);
  }
  if (options.Has("replicas")) return test::SharedPod(name, options.Integer("replicas", 1));
  if (options.Has("gpumem")) {
    return test::HamiPod(name, cards, options.Integer("gpumem", 0), options.Integer("gpucores", 0));
  }
  if (options.Has("mig")) {
    return test::MigPod(name, options.Text("mig"), options.Integer("count", 1));
  }
  return test::EmptyRequest(name);
}

std::string AmountText(const std::vector<std::pair<std::string, std::string>>& amounts,
                       const std::string& model) {
  for (const auto& [of, amount] : amounts) {
    if (of == model) return amount;
  }
  return "";
}

}  // namespace

NodeFacts NodeOf(const std::string& name, Options& options) {
  const int gpus = static_cast<int>(options.Integer("gpus", 8));
  NodeFacts node = Device(name, gpus, options);
  if (options.Has("model")) SetModel(node, options.Choice<Model>("model", Models(), Model()));
  if (gpus == 0) {
    node = NodeFacts();
    node.name = NodeName(name);
  }
  if (options.Has("healthy") && node.gpu) node.gpu->allocatable = options.Integer("healthy", gpus);
  node.ready = options.Yes("ready", true);
  node.cordoned = options.Yes("cordoned", false);
  if (options.Choice<bool>("register", {{"readable", false}, {"unreadable", true}}, false)) {
    node.agent.reset();
    node.agent_unreadable = "hami.io/node-nvidia-register: expected a uuid, found none";
  }
  node.matrix = MachineOf(options.Choice<Links>("links",
                                                {{"unknown", Links::kUnknown},
                                                 {"pcie", Links::kPcie},
                                                 {"pairs", Links::kPairs},
                                                 {"cube", Links::kCube},
                                                 {"nvswitch", Links::kSwitch}},
                                                Links::kUnknown),
                          gpus);
  if (node.matrix && node.agent) {
    for (AgentDevice& device : node.agent->devices) {
      device.numa = node.matrix->gpu(device.index).numa;
    }
  }
  node.labels = LabelText(LabelsOf(options));
  return node;
}

PodFacts PodOf(const std::string& name, Options& options) {
  const std::vector<std::string> parts = Split(name, '/');
  PodRequest request = Wanted(parts.back(), options);
  request.name = {parts.size() == 2 ? parts.front() : kPlainNamespace, parts.back()};
  request.uid = PodUid("uid-" + request.name.str());
  request.priority_class = options.Text("class");
  request.priority = static_cast<int32_t>(options.Integer("priority", 0));
  request.models_any = options.List("models");
  request.gang = options.Text("gang");
  request.gang_size = static_cast<int>(options.Integer("size", 0));
  request.expected_runtime = options.Span("runtime");
  if (options.Has("topology")) {
    request.topology = options.Choice<TopologyWish>("topology",
                                                    {{"required", TopologyWish::kRequired},
                                                     {"preferred", TopologyWish::kPreferred},
                                                     {"none", TopologyWish::kNone}},
                                                    TopologyWish::kNone);
  }
  PodFacts pod = test::Pending(request);
  pod.owner = options.Text("owner");
  pod.labels = std::make_shared<const Labels>(Labels{{"app", options.Text("app", parts.back())}});
  return pod;
}

GpuQuota QuotaOf(const std::string& name, Options& options) {
  test::Quota quota(name);
  quota.Under(options.Text("parent")).Weight(options.Integer("weight", 1));
  for (const std::string& ns : options.List("owns")) quota.Owns(ns);
  const auto nominal = options.Pairs("gpus"), borrow = options.Pairs("borrow"),
             lend = options.Pairs("lend");
  for (const auto& [model, amount] : nominal) {
    quota.Line(model, amount, AmountText(borrow, model), AmountText(lend, model));
  }
  quota.Mode(options.Choice<QuotaMode>("mode",
                                       {{"Enforce", QuotaMode::kEnforce},
                                        {"Observe", QuotaMode::kObserve},
                                        {"Off", QuotaMode::kOff}},
                                       QuotaMode::kEnforce));
  quota.EvictionsPerHour(static_cast<int>(options.Integer("evictions-per-hour", 20)));
  return quota;
}

GpuBudget BudgetOf(const std::string& name, Options& options) {
  GpuBudget budget =
      test::PlainBudget(options.Choice<BudgetWindow::Type>("window",
                                                           {{"Day", BudgetWindow::Type::kDay},
                                                            {"Week", BudgetWindow::Type::kWeek},
                                                            {"Month", BudgetWindow::Type::kMonth}},
                                                           BudgetWindow::Type::kDay),
                        options.Integer("hours", 0));
  budget.name = name;
  budget.uid = "uid-of-" + name;
  budget.quota_ref = options.Text("quota");
  budget.ns = options.Text("namespace");
  budget.on_exhaustion = options.Choice<OnExhaustion>("exhausted",
                                                      {{"Warn", OnExhaustion::kWarn},
                                                       {"Demote", OnExhaustion::kDemote},
                                                       {"Block", OnExhaustion::kBlock},
                                                       {"Drain", OnExhaustion::kDrain}},
                                                      OnExhaustion::kBlock);
  return budget;
}

GpuClass ClassOf(const std::string& name, Options& options) {
  GpuClass made =
      test::Class(name, static_cast<int>(options.Integer("rank", 2)),
                  options.Choice<Preemptible>("preemptible",
                                              {{"Never", Preemptible::kNever},
                                               {"Always", Preemptible::kAlways},
                                               {"OverQuota", Preemptible::kOverQuota},
                                               {"OverNominal", Preemptible::kOverNominal}},
                                              Preemptible::kAlways));
  made.min_runtime = options.Span("min-runtime").value_or(Millis(0));
  made.max_runtime = options.Span("max-runtime");
  return made;
}

GpuPolicy PolicyOf(Options& options) {
  const std::vector<std::pair<std::string, Permission>> permissions = {
      {"Allow", Permission::kAllow}, {"Refuse", Permission::kRefuse}};
  GpuPolicy policy;
  policy.strategy = options.Choice<Strategy>("strategy",
                                             {{"Fragmentation", Strategy::kFragmentation},
                                              {"BestFit", Strategy::kBestFit},
                                              {"Spread", Strategy::kSpread}},
                                             policy.strategy);
  policy.filter_width = static_cast<int>(options.Integer("width", policy.filter_width));
  policy.unenforced_sharing =
      options.Choice<Permission>("unenforced", permissions, policy.unenforced_sharing);
  policy.unassigned = options.Choice<Permission>("unassigned", permissions, policy.unassigned);
  return policy;
}

DisruptionBudget DisruptionBudgetOf(const std::string& name, Options& options) {
  DisruptionBudget budget;
  budget.ns = options.Text("namespace", kPlainNamespace);
  budget.name = name;
  budget.selector = LabelSelector{{{"app", options.Text("app")}}, {}};
  budget.allowed = options.Integer("allowed", 0);
  return budget;
}

}  // namespace tranche::scenario
