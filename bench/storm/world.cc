#include "bench/storm/world.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "topology/gpu_model.h"

namespace tranche::bench {
namespace {

constexpr Instant kStart{std::chrono::seconds(1'800'000'000)};
constexpr const char* kTeamLabel = "team";
// Beside the product of the profile.
constexpr std::array<const char*, 3> kProducts = {"NVIDIA-H200", "NVIDIA-A100-SXM4-80GB",
                                                  "NVIDIA-L40S"};
constexpr int kPlainNodes = 2;  // for each with GPUs
constexpr int kTurnsASecond = 4;

std::string TeamOf(int team) { return fmt::format("team-{:03}", team); }

NodeFacts NodeOf(const Profile& profile, const std::string& name, int index) {
  NodeFacts node;
  node.name = NodeName(name);
  node.uid = NodeUid("uid-" + name);
  const auto kind = static_cast<std::size_t>(index) % (kProducts.size() + 1);
  node.product = kind == 0 ? profile.product : kProducts[kind - 1];
  node.memory = Mebibytes::Of(profile.memory_mib);
  node.count = profile.gpus_per_node;
  node.replicas = 1;
  node.gpu = ResourceCount{profile.gpus_per_node, profile.gpus_per_node};
  return node;
}

}  // namespace

PodRequest StormPod(const std::string& name, int team, int64_t gpus) {
  PodRequest request;
  request.uid = PodUid("uid-" + name);
  request.name = {TeamOf(team) + "-0", name};
  request.style = RequestStyle::kNative;
  request.containers.push_back({"main", ContainerRole::kApp, gpus});
  Ask ask;
  ask.resource = Resource::kGpu;
  ask.count = gpus;
  request.asks.push_back(std::move(ask));
  request.pool_needs.push_back({"nvidia.com/gpu", gpus});
  return request;
}

World::World(const Profile& profile)
    : profile_(profile),
      clock_(kStart),
      host_(EngineOptions{}, clock_, nullptr, [] { return true; }) {
  EffectSinks sinks;
  sinks.reclaims = this;
  host_.Connect(std::move(sinks));
  for (int i = 0; i < profile_.nodes * (kPlainNodes + 1); ++i) {
    const bool plain = i >= profile_.nodes;
    const std::string name = fmt::format("{}-{:05}", plain ? "cpu" : "gpu", i);
    NodeFacts node = NodeOf(profile_, name, i);
    if (plain) {
      node = NodeFacts();
      node.name = NodeName(name);
      node.uid = NodeUid("uid-" + name);
    } else {
      names_.push_back(name);
    }
    host_.With(EngineCaller::kStart,
               [&node](Engine& engine, Instant now) { engine.UpsertNode(std::move(node), now); });
  }
  views_.assign(names_.begin(), names_.end());
  host_.FinishRestore({}, {});
}

void World::Declare(int teams, int namespaces, std::vector<GpuBudget> budgets) {
  declared_ = PolicySet();
  teams_ = teams;
  const int64_t milli = int64_t{profile_.nodes} * profile_.gpus_per_node * 1'000;
  GpuQuota org;
  org.name = "org";
  declared_.quotas.push_back(org);
  for (int team = 0; team < teams; ++team) {
    GpuQuota quota;
    quota.name = TeamOf(team);
    quota.parent = "org";
    quota.namespaces.emplace().match_labels[kTeamLabel] = quota.name;
    quota.lines.emplace_back().model = kAnyModel;
    quota.lines.back().nominal.gpus = MilliGpu::Of(milli / teams);
    declared_.quotas.push_back(std::move(quota));
  }
  declared_.budgets = std::move(budgets);
  for (int i = 0; i < namespaces; ++i) {
    const std::string team = TeamOf(i % teams);
    const std::string name = fmt::format("{}-{}", team, i / teams);
    declared_.namespaces[name] = {{"kubernetes.io/metadata.name", name}, {kTeamLabel, team}};
  }
  Apply();
}

void World::AddNamespace() {
  const std::string team = TeamOf(static_cast<int>(declared_.namespaces.size()) % teams_);
  const std::string name = fmt::format("{}-more-{}", team, declared_.namespaces.size());
  declared_.namespaces[name] = {{"kubernetes.io/metadata.name", name}, {kTeamLabel, team}};
  Apply();
}

void World::Apply() {
  declared_.FindOwners();
  auto set = std::make_shared<const PolicySet>(declared_);
  // As the server's intake does.
  NamespaceMoves moves{std::exchange(last_, set), std::nullopt};
  if (moves.before != nullptr) moves.moved = MovedNamespaces(*moves.before, *set);
  host_.With(EngineCaller::kPolicies, [&](Engine& engine, Instant now) {
    engine.SetPolicies(std::move(set), GpuPolicy(), now, moves);
  });
}

void World::See(PodFacts pod) {
  brought_.insert(pod.request.uid);
  host_.With(EngineCaller::kEvents,
             [&pod](Engine& engine, Instant now) { engine.UpsertPod(std::move(pod), now); });
}

PodFacts World::Running(PodRequest request, int node) const {
  PodFacts pod;
  pod.owner = "owner-of-" + request.name.name;
  pod.request = std::move(request);
  pod.node = NodeName(names_[static_cast<std::size_t>(node) % names_.size()]);
  pod.phase = PodPhase::kRunning;
  pod.bound_at = pod.running_at = clock_.Now();
  return pod;
}

void World::End() {
  deaf_ = nullptr;
  for (const PodUid& uid : std::set<PodUid>(brought_)) Gone(uid);
  Turn();
}

absl::Status World::ComeDeaf(std::size_t most) {
  if (deaf_ == nullptr) {
    deaf_ = std::make_unique<DeafClients>(host_);
    if (absl::Status started = deaf_->Start(); !started.ok()) return started;
  }
  return deaf_->Come(most);
}

void World::Gone(const PodUid& uid) {
  brought_.erase(uid);
  host_.With(EngineCaller::kEvents,
             [&uid](Engine& engine, Instant now) { engine.DeletePod(uid, now); });
}

void World::Queue(ReclaimWork work, Instant) {
  const absl::MutexLock lock(&mutex_);
  for (EvictionOrder& order : work.evictions) evictions_.push_back(std::move(order));
}

int World::Evict() {
  std::deque<EvictionOrder> orders;
  {
    const absl::MutexLock lock(&mutex_);
    orders.swap(evictions_);
  }
  for (const EvictionOrder& order : orders) {
    host_.With(EngineCaller::kPlan, [&order](Engine& engine, Instant now) {
      engine.SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, std::nullopt,
                            now);
    });
    Gone(order.uid);
  }
  return static_cast<int>(orders.size());
}

void World::Turn() {
  host_.Tick();
  // Statuses, then a scrape.
  for (const EngineCaller caller : {EngineCaller::kStatus, EngineCaller::kMetrics}) {
    host_.Quotas(caller);
    host_.With(caller, [](Engine& engine, Instant now) { engine.Budgets(now); });
  }
  host_.Totals(EngineCaller::kMetrics);
  host_.With(EngineCaller::kMetrics, [](Engine& engine, Instant) { engine.HeldQuanta(); });
  // What changes MIG layouts looks once a second.
  if (turns_++ % kTurnsASecond == 0) host_.Case();
}

}  // namespace tranche::bench
