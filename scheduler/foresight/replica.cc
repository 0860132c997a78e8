#include "scheduler/foresight/replica.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace tranche {
namespace {

constexpr uint64_t kNameSeed = 0x9e3779b97f4a7c15;

void TellNode(const NodeCopy& node, Engine& engine, Instant now) {
  const NodeName& name = node.facts.name;
  if (node.zones) engine.SetNodeZones(name, node.zones, now);
  if (!node.slices.empty()) engine.SetNodeSlices(name, node.slices, now);
  if (node.agent) engine.SetNodeAgent(name, node.agent, now);
  if (node.plain_cpu > MilliCpu()) {
    PodFacts plain;
    plain.request.uid = PodUid("plain-pods-of/" + name.str());
    plain.request.name = {"", name.str()};
    plain.request.cpu = node.plain_cpu;
    plain.node = name;
    plain.phase = PodPhase::kRunning;
    engine.UpsertPod(std::move(plain), now);
  }
  if (node.present) engine.UpsertNode(node.facts, now);
  if (!node.unreadable.empty()) engine.SetUnreadable(name, node.unreadable, now);
  if (!node.held.empty()) engine.SetHeld(name, node.held, now);
}

void TakeLearned(const ClusterCopy& copy, Engine& engine) {
  std::vector<PodUid> counted;
  for (const auto& [uid, pod] : copy.pods) {
    if (pod.counted) counted.push_back(uid);
  }
  engine.TakeLearned(*copy.learned, counted);
}

}  // namespace

std::unique_ptr<Engine> MakeReplica(const ClusterCopy& copy) {
  EngineOptions options = copy.options;
  options.tentative_lifetime = Millis(0);
  options.nominates = false;
  // Short names meet in one place of the table where there is no seed.
  if (options.name_seed == 0) options.name_seed = kNameSeed;
  auto engine = std::make_unique<Engine>(options);
  const Instant now = copy.at;
  engine->Restore(copy.history);
  engine->SetPolicies(copy.set, copy.defaults, now);
  for (const auto& [gang, size] : copy.gang_sizes) {
    const std::size_t slash = gang.find('/');
    engine->SetGangSize(gang.substr(0, slash), gang.substr(slash + 1), size, now);
  }
  for (const NamespaceCap& cap : copy.caps) engine->SetNamespaceCap(cap, now);
  for (const DisruptionBudget& budget : copy.disruption_budgets) {
    engine->SetDisruptionBudget(budget, now);
  }
  for (const NodeCopy& node : copy.nodes) TellNode(node, *engine, now);
  for (const dra::Object& object : copy.dra_objects) engine->SetDraObject(object, now);
  for (const auto& [uid, pod] : copy.pods) engine->UpsertPod(pod.facts, now);
  engine->RestoreReclaims(copy.reclaims);
  engine->FinishRestore(now);
  if (copy.learned) TakeLearned(copy, *engine);
  engine->effects() = {};
  return engine;
}

}  // namespace tranche
