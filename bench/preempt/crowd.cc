#include "bench/preempt/crowd.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "topology/gpu_model.h"

namespace tranche::bench {
namespace {

constexpr const char* kRoot = "org";
constexpr const char* kNamespaceLabel = "kubernetes.io/metadata.name";
constexpr int64_t kWhole = 1'000;
constexpr int64_t kSmallest = 500;

std::string TeamName(int team) { return fmt::format("team-{:02}", team); }
std::string DepartmentName(int department) { return fmt::format("department-{}", department); }

NodeFacts NodeOf(const std::string& name, const Profile& profile) {
  NodeFacts node;
  node.name = NodeName(name);
  node.uid = NodeUid("uid-" + name);
  node.product = profile.product;
  node.memory = Mebibytes::Of(profile.memory_mib);
  node.count = profile.gpus_per_node;
  node.replicas = 1;
  node.gpu = ResourceCount{profile.gpus_per_node, profile.gpus_per_node};
  return node;
}

GpuQuota QuotaOf(const Profile& profile, const std::string& name, const std::string& parent,
                 int64_t milli) {
  GpuQuota quota;
  quota.name = name;
  quota.parent = parent;
  QuotaLine line;
  line.model = GpuModelName(profile.product);
  line.nominal.gpus = MilliGpu::Of(milli);
  quota.lines.push_back(std::move(line));
  quota.max_evictions_per_hour = 0;
  return quota;
}

// What the pods of one node ask, in milli GPUs, largest first: halves of halves at random until
// there are `pods` of them.
std::vector<int64_t> Split(int gpus, int pods, std::mt19937_64& random) {
  std::vector<int64_t> sizes = {gpus * kWhole};
  while (static_cast<int>(sizes.size()) < pods) {
    std::vector<std::size_t> larger;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] > kSmallest) larger.push_back(i);
    }
    if (larger.empty()) break;
    const std::size_t chosen = larger[random() % larger.size()];
    const int64_t size = sizes[chosen];
    const int64_t half = size > kWhole ? size / kWhole / 2 * kWhole : kSmallest;
    sizes[chosen] = size - half;
    sizes.push_back(half);
  }
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  return sizes;
}

// Of every four nodes one has a single pod, the next one those it lacks, and two have the average.
int PodsOn(int node, int pods, int nodes) {
  const auto before = [&](int first) { return static_cast<int>(int64_t{pods} * first / nodes); };
  const int average = std::max(1, before(node + 1) - before(node));
  if (node % 4 == 0) return 1;
  return node % 4 == 1 ? average + std::max(0, average - 1) : average;
}

int TeamAtRandom(const Profile& profile, std::mt19937_64& random) {
  std::vector<ProfileTeam> teams;
  for (int team = 0; team < profile.teams; ++team) teams.push_back(profile.KindOf(team));
  return static_cast<int>(&ByShare(teams, random()) - teams.data());
}

}  // namespace

std::string NamespaceOf(int team) { return TeamName(team); }

PodRequest RequestFor(const std::string& name, int team, int64_t milli) {
  PodRequest request;
  request.uid = PodUid("uid-" + name);
  request.name = {NamespaceOf(team), name};
  request.priority_class = "gpu-training";
  request.containers.push_back({"main", ContainerRole::kApp, milli / kWhole});
  Ask ask;
  if (milli < kWhole) {
    request.style = RequestStyle::kTranche;
    ask.resource = Resource::kShare;
    ask.count = 1;
    ask.compute = MilliGpu::Of(milli);
    ask.memory = {MemoryNeed::Kind::kMilliOfCard, milli};
  } else {
    request.style = RequestStyle::kNative;
    ask.resource = Resource::kGpu;
    ask.count = milli / kWhole;
    request.pool_needs.push_back({"nvidia.com/gpu", ask.count});
  }
  request.asks.push_back(std::move(ask));
  return request;
}

Crowd::Crowd() : engine_(EngineOptions{}), start_(std::chrono::seconds(1'800'000'000)) {}

absl::StatusOr<std::unique_ptr<Crowd>> Crowd::Make(const Profile& profile, uint64_t seed) {
  std::unique_ptr<Crowd> crowd(new Crowd());
  crowd->Declare(profile);
  std::mt19937_64 random(seed);
  if (absl::Status status = crowd->Fill(profile, random); !status.ok()) return status;
  return crowd;
}

void Crowd::Declare(const Profile& profile) {
  const int64_t milli = int64_t{profile.nodes} * profile.gpus_per_node * kWhole;
  auto set = std::make_shared<PolicySet>();
  set->quotas.push_back(QuotaOf(profile, kRoot, "", 0));
  for (int department = 0; department < profile.departments; ++department) {
    set->quotas.push_back(QuotaOf(profile, DepartmentName(department), kRoot, 0));
  }
  for (int team = 0; team < profile.teams; ++team) {
    const std::string ns = NamespaceOf(team);
    const int per_department = profile.teams / profile.departments;
    GpuQuota quota = QuotaOf(profile, TeamName(team), DepartmentName(team / per_department),
                             milli / profile.teams);
    quota.namespaces = LabelSelector{{{kNamespaceLabel, ns}}, {}};
    set->quotas.push_back(std::move(quota));
    set->namespaces[ns] = {{kNamespaceLabel, ns}};
  }
  std::ranges::sort(set->quotas, {}, &GpuQuota::name);
  GpuClass training = DefaultClass("training");
  training.priority_classes = {"gpu-training"};
  training.sharing = {SharingMode::kExclusive, SharingMode::kTimeSliced};
  set->classes.push_back(std::move(training));
  GpuPolicy defaults;
  defaults.unenforced_sharing = Permission::kAllow;
  engine_.SetPolicies(std::move(set), defaults, start_);
}

absl::Status Crowd::Fill(const Profile& profile, std::mt19937_64& random) {
  for (int i = 0; i < profile.nodes; ++i) {
    nodes_.push_back(fmt::format("node-{:05}", i));
    engine_.UpsertNode(NodeOf(nodes_.back(), profile), start_);
  }
  node_views_.assign(nodes_.begin(), nodes_.end());
  int made = 0;
  for (int i = 0; i < profile.nodes; ++i) {
    for (const int64_t milli :
         Split(profile.gpus_per_node, PodsOn(i, profile.pods, profile.nodes), random)) {
      const PodRequest request =
          RequestFor(fmt::format("run-{}", made++), TeamAtRandom(profile, random), milli);
      const std::string& node = nodes_[static_cast<std::size_t>(i)];
      if (absl::Status status = Run(request, node, random); !status.ok()) return status;
    }
  }
  engine_.effects() = {};
  return absl::OkStatus();
}

absl::Status Crowd::Run(const PodRequest& request, const std::string& node,
                        std::mt19937_64& random) {
  PodFacts pod;
  pod.request = request;
  engine_.UpsertPod(pod, start_);
  BindPlan plan = engine_.Bind(request.name, request.uid, NodeName(node), start_);
  if (plan.kind != BindPlan::Kind::kWrite) {
    return absl::InternalError(fmt::format("expected {} to fit on {}, found {} {}",
                                           request.name.str(), node, Describe(plan.reason).code,
                                           plan.detail));
  }
  pod.allocation = std::move(plan.allocation);
  pod.node = NodeName(node);
  pod.phase = PodPhase::kRunning;
  pod.owner = "job-" + request.name.name;
  // Past every minimum runtime.
  pod.running_at = start_ - std::chrono::minutes(60 + random() % 540);
  pod.bound_at = pod.running_at;
  if (random() % 2 == 0) pod.checkpointed_at = start_ - std::chrono::minutes(random() % 60);
  engine_.UpsertPod(pod, start_);
  running_.push_back(std::move(pod));
  return absl::OkStatus();
}

}  // namespace tranche::bench
