#include "test/sim/world/agent_node.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/wire/records/allocation_json.h"
#include "test/sim/cluster/pod_writes.h"

namespace tranche::sim {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kMain = "main";  // the one container of the workload's pods
constexpr int64_t kMilliCard = 1000;

int64_t GpusAskedBy(const PodView& pod) {
  const auto found = pod.requests.find(kGpu);
  return found == pod.requests.end() ? 0 : found->second;
}

agent::BoundPod BoundPodOf(const PodView& pod) {
  agent::BoundPod bound;
  bound.name = {std::string(pod.stored->ns()), std::string(pod.stored->name())};
  bound.uid = PodUid(pod.uid);
  const Json& object = pod.stored->object();
  bound.acknowledged = object.value("status", Json::object()).contains("startTime");
  if (const int64_t count = GpusAskedBy(pod); count > 0) bound.asking = {{kMain, count, false}};
  const Json notes = object.at("metadata").value("annotations", Json::object());
  const auto text = notes.find(wire::kAllocationKey);
  if (text == notes.end() || !text->is_string()) return bound;
  auto record = wire::DecodeAllocation(text->get<std::string>());
  if (record.ok()) {
    bound.record = *std::move(record);
  } else {
    bound.record_problem = std::string(record.status().message());
  }
  return bound;
}

fakes::ManagedPod ManagedPodOf(const PodView& pod) {
  return {pod.uid,
          std::string(pod.stored->ns()),
          std::string(pod.stored->name()),
          {{kMain, GpusAskedBy(pod)}}};
}

}  // namespace

AgentNode::AgentNode(const Store& store, const Machine& machine, uint64_t seed)
    : store_(store), machine_(machine), manager_(seed) {
  for (const std::string& uuid : machine.cards) {
    agent::Card& card = cards_.emplace_back();
    card.uuid = GpuUuid(uuid);
    card.index = static_cast<int>(cards_.size()) - 1;
    card.mib = machine.mib;
    card.slots = machine.slots;
  }
  Close(0);
}

void AgentNode::Close(int dead) {
  for (agent::Card& card : cards_) card.problem = card.index < dead ? "it fell off the bus" : "";
  std::map<std::string, bool> devices;
  for (const agent::TellableDevice& one : agent::DevicesOf(cards_, "")) {
    devices[one.id.str()] = one.healthy;
  }
  manager_.SetDevices(std::move(devices));
}

std::optional<Json> AgentNode::Admit(const PodView& pod, std::string& problem) {
  given_ = Json::array();
  const absl::Status admitted = manager_.Admit(ManagedPodOf(pod), *this);
  if (admitted.ok()) return std::exchange(given_, Json::array());
  problem = "Allocate failed due to rpc error: " + std::string(admitted.message());
  return std::nullopt;
}

bool AgentNode::MayStart(const PodView& pod, std::string& problem) {
  const absl::Status may = manager_.Start(pod.uid, kMain, *this);
  problem = std::string(may.message());
  return may.ok();
}

agent::Look AgentNode::Look() const {
  agent::Look look;
  look.cards = cards_;
  look.pods.emplace();
  for (const auto& [key, stored] : store_.All("pods")) {
    if (NodeOf(stored->object()) != machine_.name) continue;
    const PodView pod(stored);
    if (!pod.terminal()) look.pods->push_back(BoundPodOf(pod));
  }
  for (const fakes::DeviceManager::Listed& listed : manager_.List()) {
    agent::KubeletPod known{{listed.ns, listed.name}, {}, {}};
    for (const auto& [container, ids] : listed.containers) {
      if (!ids.empty()) known.holdings.push_back({container, ids});
    }
    look.kubelet.push_back(std::move(known));
  }
  return look;
}

absl::StatusOr<fakes::Ids> AgentNode::Prefer(const fakes::Ids& available, const fakes::Ids& keep,
                                             int64_t size) {
  return turns_.Open(Look(), {available, keep, size});
}

absl::StatusOr<fakes::Ids> AgentNode::Allocate(const fakes::Ids& ids) {
  auto closed = turns_.Close(ids);
  const absl::StatusOr<agent::Grant> grant = closed ? *closed : turns_.Serve(Look(), ids);
  if (!grant.ok()) return grant.status();
  Give(*grant);
  fakes::Ids seen;
  for (const agent::DeviceId& device : grant->devices) seen.push_back(device.str());
  return seen;
}

absl::Status AgentNode::PreStart(const fakes::Ids& ids) { return turns_.MayStart(Look(), ids); }

void AgentNode::Give(const agent::Grant& grant) {
  for (const agent::DeviceId& device : grant.devices) {
    const auto card = std::ranges::find(cards_, device.gpu, &agent::Card::uuid);
    const auto part = std::ranges::find(grant.parts, device.gpu, &agent::Part::gpu);
    const bool whole = part == grant.parts.end();
    given_.push_back({{"uuid", device.gpu.str()},
                      {"index", card == cards_.end() ? -1 : card->index},
                      {"milli", whole ? kMilliCard : part->compute.count()},
                      {"mib", whole ? machine_.mib : part->memory.count()}});
  }
}

}  // namespace tranche::sim
