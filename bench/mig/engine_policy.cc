#include "bench/mig/engine_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/engine/engine.h"
#include "topology/base/check.h"

namespace tranche::bench {
namespace {

constexpr std::string_view kProduct = "NVIDIA-H100-80GB-HBM3";
constexpr int64_t kMemoryMib = 81'559;
constexpr std::string_view kNamespace = "mig";
// Arrivals that make a mix known.
constexpr int kKnownArrivals = 20'000;
// A life has a mean of 1; here that is an hour.
constexpr double kMillisPerTime = 3'600'000;

Instant InstantOf(double time) {
  return Instant(Millis(1'700'000'000'000 + static_cast<int64_t>(time * kMillisPerTime)));
}

// Names sort as the GPUs' numbers do.
std::string NodeNameOf(std::size_t gpu) { return fmt::format("gpu-{:06}", gpu); }

NodeFacts NodeOf(std::size_t gpu) {
  NodeFacts node;
  node.name = NodeName(NodeNameOf(gpu));
  node.uid = NodeUid("node-" + node.name.str());
  node.product = kProduct;
  node.memory = Mebibytes::Of(kMemoryMib);
  node.count = 1;
  node.mig_strategy = MigStrategy::kMixed;
  node.mig_planned = true;
  for (const int index : BenchProfiles()) {
    const MigProfile& profile = BenchBoard().profiles[static_cast<std::size_t>(index)];
    MigResourceFacts mig;
    mig.name = {std::string(profile.name), false};
    mig.count = {profile.max_instances, profile.max_instances};
    node.mig.push_back(std::move(mig));
  }
  return node;
}

PodFacts PodOf(std::size_t serial, std::size_t kind) {
  const auto index = static_cast<std::size_t>(BenchProfiles()[kind]);
  Ask ask;
  ask.resource = Resource::kMig;
  ask.count = 1;
  ask.mig = {std::string(BenchBoard().profiles[index].name), false};
  PodFacts pod;
  pod.request.name = {std::string(kNamespace), fmt::format("pod-{}", serial)};
  pod.request.uid = PodUid(fmt::format("uid-{}", serial));
  pod.request.style = RequestStyle::kNative;
  pod.request.containers.push_back({"main", ContainerRole::kApp, 0});
  pod.request.pool_needs.push_back({FormatMigResource(ask.mig), 1});
  pod.request.asks.push_back(std::move(ask));
  return pod;
}

class EnginePolicy : public MigPolicy {
 public:
  EnginePolicy() : engine_(EngineOptions{}) {}

  // Arrivals of the mix that are told to the engine and never placed.
  void TellMix(const MigMix& mix) {
    std::array<double, kMigProfiles> due = {};
    for (int i = 0; i < kKnownArrivals; ++i) {
      for (std::size_t kind = 0; kind < kMigProfiles; ++kind) due[kind] += mix.shares[kind];
      const auto most = std::ranges::max_element(due);
      *most -= 1;
      const PodFacts pod = PodOf(serial_++, static_cast<std::size_t>(most - due.begin()));
      engine_.Filter(pod.request, {}, InstantOf(0), answer_);
      engine_.DeletePod(pod.request.uid, InstantOf(0));
      Drain();
    }
  }

  std::optional<MigRoom> Choose(const MigFleet& fleet, std::size_t kind, double time) override {
    const Instant now = InstantOf(time);
    if (nodes_.empty()) AddNodes(fleet.layouts().size(), now);
    PodFacts pod = PodOf(serial_++, kind);
    const PodUid uid = pod.request.uid;
    engine_.UpsertPod(pod, now);
    engine_.Filter(pod.request, candidates_, now, answer_);
    std::optional<MigRoom> room;
    if (answer_.chosen.empty()) {
      engine_.DeletePod(uid, now);
    } else {
      room = Bind(std::move(pod), answer_.chosen.front(), now);
      placed_.push_back(uid);
    }
    Drain();
    while (engine_.Learn()) {
    }
    return room;
  }

  void Left(MigFleet::Id id, double time) override {
    engine_.DeletePod(placed_[id], InstantOf(time));
    Drain();
  }

 private:
  void AddNodes(std::size_t gpus, Instant now) {
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      nodes_.push_back(NodeNameOf(gpu));
      engine_.UpsertNode(NodeOf(gpu), now);
    }
    candidates_.assign(nodes_.begin(), nodes_.end());
  }

  // Where in the GPU is what the Binding would say; the fleet refuses what is not legal.
  MigRoom Bind(PodFacts pod, std::size_t gpu, Instant now) {
    const NodeName node(nodes_[gpu]);
    BindPlan plan = engine_.Bind(pod.request.name, pod.request.uid, node, now);
    TRANCHE_CHECK_EQ(plan.kind, BindPlan::Kind::kWrite);
    engine_.SettleBind(pod.request.uid, node, BindOutcome::kBound, now);
    const Device& device = plan.allocation.containers.at(0).devices.at(0);
    const MigRoom room = {.gpu = gpu, .start = device.mig.value().start, .moves = {}};
    pod.node = node;
    pod.phase = PodPhase::kRunning;
    pod.bound_at = pod.running_at = now;
    pod.allocation = std::move(plan.allocation);
    engine_.UpsertPod(std::move(pod), now);
    return room;
  }

  // What the server would hand on: pods to be tried again, and the ledger's entries.
  void Drain() { engine_.effects() = {}; }

  Engine engine_;
  std::vector<std::string> nodes_;
  std::vector<std::string_view> candidates_;
  std::vector<PodUid> placed_;  // by the fleet's number
  std::size_t serial_ = 0;
  FilterAnswer answer_;  // kept for its memory
};

}  // namespace

MigPolicyFactory MakeEnginePolicy(const MigMix& mix, bool known) {
  return [mix, known](uint64_t) {
    auto policy = std::make_unique<EnginePolicy>();
    if (known) policy->TellMix(mix);
    return policy;
  };
}

}  // namespace tranche::bench
