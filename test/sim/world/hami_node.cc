#include "test/sim/world/hami_node.h"

#include <utility>
#include <vector>

#include "test/fakes/agents/hami_agent.h"
#include "test/sim/cluster/pod_writes.h"

namespace tranche::sim {
namespace {

using fakes::FakePod;

constexpr const char* kGpu = "nvidia.com/gpu";

fakes::Text TextOf(const Json& object, const char* part) {
  const Json& metadata = object.at("metadata");
  const auto found = metadata.find(part);
  return found == metadata.end() ? fakes::Text() : found->get<fakes::Text>();
}

FakePod FakeOf(const Stored& stored) {
  const Json& object = stored.object();
  FakePod pod;
  pod.name = stored.name();
  pod.ns = stored.ns();
  pod.uid = stored.uid();
  pod.node = NodeOf(object);
  const std::string phase = PhaseOf(object);
  if (phase == "Running") pod.phase = fakes::FakePhase::kRunning;
  if (phase == "Succeeded") pod.phase = fakes::FakePhase::kSucceeded;
  if (phase == "Failed") pod.phase = fakes::FakePhase::kFailed;
  pod.deleting = object.at("metadata").contains("deletionTimestamp");
  pod.annotations = TextOf(object, "annotations");
  for (const Json& container : object.at("spec").at("containers")) {
    fakes::FakeContainer one;
    one.name = container.at("name");
    const auto resources = container.find("resources");
    if (resources != container.end() && resources->contains("limits")) {
      one.limits = resources->at("limits").get<fakes::Text>();
    }
    pod.containers.push_back(std::move(one));
  }
  return pod;
}

// Those annotations that differ, as a merge patch; null: none do.
Json Difference(const fakes::Text& before, const fakes::Text& after) {
  Json patch;
  for (const auto& [key, value] : after) {
    const auto found = before.find(key);
    if (found == before.end() || found->second != value) patch[key] = value;
  }
  for (const auto& [key, value] : before) {
    if (!after.contains(key)) patch[key] = nullptr;
  }
  return patch;
}

}  // namespace

HamiGrant AskHamiAgent(const Store& store, const Machine& machine, int minor, const PodView& pod) {
  fakes::FakePods cluster;
  fakes::FakeNode node;
  node.name = machine.name;
  const StoredPtr shown = store.Find("nodes", machine.name);
  if (shown != nullptr) node.annotations = TextOf(shown->object(), "annotations");
  for (const std::string& uuid : machine.cards)
    node.cards.push_back({uuid, machine.mib, 100, 10, {}});
  const fakes::Text notes_before = node.annotations;
  cluster.AddNode(std::move(node));
  struct Before {
    std::string uid;
    std::string key;
    fakes::Text annotations;
  };
  std::vector<Before> before;
  for (const auto& [key, stored] : store.All("pods")) {
    // The lock may name a pod that is elsewhere.
    if (NodeOf(stored->object()) != machine.name) continue;
    FakePod there = FakeOf(*stored);
    before.push_back({there.uid, there.ns + "/" + there.name, there.annotations});
    cluster.AddPod(std::move(there));
  }
  fakes::HamiAgent agent(cluster, minor);
  HamiGrant out;
  for (const fakes::FakeContainer& container : FakeOf(*pod.stored).containers) {
    const int64_t count = container.Limit(kGpu);
    if (count == 0) continue;
    fakes::DeviceCall call{machine.name, kGpu, {}};
    for (int64_t i = 0; i < count; ++i) call.ids.push_back("id-" + std::to_string(i));
    const fakes::Service service = agent.Allocate(call);
    if (!service.error.empty()) {
      out.problem = service.error;
      break;
    }
    for (const fakes::Grant& grant : service.grants) {
      out.devices.push_back({{"uuid", machine.cards[static_cast<std::size_t>(grant.card)]},
                             {"index", grant.card},
                             {"milli", grant.cores * 10},
                             {"mib", grant.memory_mib}});
    }
    if (service.believed.uid != pod.uid) out.problem = "it served another pod";
  }
  for (Before& was : before) {
    const std::optional<FakePod> is = cluster.Pod(was.uid);
    Json patch = is ? Difference(was.annotations, is->annotations) : Json(nullptr);
    if (!patch.is_null()) out.pods[std::move(was.key)] = std::move(patch);
  }
  out.node = Difference(notes_before, cluster.Node(machine.name)->annotations);
  return out;
}

}  // namespace tranche::sim
