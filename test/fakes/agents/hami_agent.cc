#include "test/fakes/agents/hami_agent.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tranche::fakes {
namespace {

using Json = nlohmann::json;

constexpr int kFirstMinorWithInitSlots = 9;
constexpr int kFirstMinorWithMigText = 10;

HamiKeys KeysOf(int minor) {
  return {"hami.io/mutex.lock",
          "hami.io/vgpu-node",
          "hami.io/bind-time",
          "hami.io/bind-phase",
          "hami.io/vgpu-devices-to-allocate",
          minor >= kFirstMinorWithMigText ? "hami.io/vgpu-mig-allocations" : ""};
}

bool IsMigNode(const FakeNode& node) {
  return std::any_of(node.cards.begin(), node.cards.end(),
                     [](const FakeCard& card) { return !card.profiles.empty(); });
}

const FakeMigProfile* FindProfile(const FakeCard& card, const std::string& name) {
  for (const FakeMigProfile& profile : card.profiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

// The entry of the annotation for one device of a container; null: there is none.
Json* FindEntry(Json& entries, std::size_t container, std::size_t device) {
  for (Json& entry : entries) {
    if (entry.value("containerIndex", -1) == static_cast<int>(container) &&
        entry.value("deviceIndex", -1) == static_cast<int>(device)) {
      return &entry;
    }
  }
  return nullptr;
}

Text EnvOf(const std::vector<ListedDevice>& devices) {
  Text env;
  std::string visible;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    env["CUDA_DEVICE_MEMORY_LIMIT_" + std::to_string(i)] =
        std::to_string(devices[i].memory_mib) + "m";
    visible += (i == 0 ? "" : ",") + devices[i].uuid;
  }
  env["CUDA_DEVICE_SM_LIMIT"] = std::to_string(devices[0].cores);
  env["NVIDIA_VISIBLE_DEVICES"] = visible;
  return env;
}

}  // namespace

HamiAgent::HamiAgent(FakePods& pods, int minor) : HamiAgent(pods, minor, KeysOf(minor)) {}
HamiAgent::HamiAgent(FakePods& pods, int minor, HamiKeys keys)
    : pods_(pods), minor_(minor), keys_(std::move(keys)) {}

FourPdAgent::FourPdAgent(FakePods& pods)
    : HamiAgent(pods, 0,
                {"", "4pd.io/vgpu-node", "4pd.io/bind-time", "4pd.io/bind-phase",
                 "hami.sh/vgpu-devices-to-allocate", ""}) {}

std::optional<FakePod> HamiAgent::Pick(const FakeNode& node, std::string& problem) const {
  constexpr std::size_t kLockParts = 3;
  const std::string lock = keys_.lock.empty() ? "" : node.Note(keys_.lock);
  if (!lock.empty()) {
    const std::vector<std::string> parts = SplitText(lock, ',');
    if (parts.size() == kLockParts) {
      std::optional<FakePod> pod = pods_.PodNamed(parts[1], parts[2]);
      if (!pod) problem = "the pod of lock " + lock + " is gone";
      return pod;
    }
    if (parts.size() != 1) {
      problem = "cannot read lock " + lock;
      return std::nullopt;
    }
  }
  for (FakePod& pod : pods_.PodsOn(node.name)) {
    const std::string phase = pod.Note(keys_.phase);
    const bool waits =
        phase == "allocating" || (minor_ >= kFirstMinorWithInitSlots && phase == "success");
    if (pod.phase == FakePhase::kPending && waits && !pod.Note(keys_.bind_time).empty() &&
        pod.Note(keys_.node) == node.name) {
      return std::move(pod);
    }
  }
  problem = "no pod waits on " + node.name;
  return std::nullopt;
}

Service HamiAgent::Allocate(const DeviceCall& call) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  if (!node) return ServiceError("no node " + call.node);
  std::string problem;
  const std::optional<FakePod> pod = Pick(*node, problem);
  if (!pod) return ServiceError(problem);
  std::optional<DeviceList> list = ReadDeviceList(pod->Note(keys_.to_allocate), true);
  if (!list) return Fail(*pod, call.node, "cannot read its devices");
  const auto next = std::find_if(list->begin(), list->end(),
                                 [](const auto& devices) { return !devices.empty(); });
  if (next == list->end()) return Fail(*pod, call.node, "nothing is left of its devices");
  if (next->size() != call.ids.size()) {
    return Fail(*pod, call.node,
                std::to_string(next->size()) + " devices are written, asked for " +
                    std::to_string(call.ids.size()));
  }
  const auto slot = static_cast<std::size_t>(next - list->begin());
  const int place = ContainerPlace(*pod, slot, minor_ >= kFirstMinorWithInitSlots);
  if (place < 0) return Fail(*pod, call.node, "more slots than containers");

  Service service;
  service.believed = {pod->uid, pod->containers[static_cast<std::size_t>(place)].name};
  service.env = EnvOf(*next);
  TextPatch patch;
  if (!keys_.mig.empty() && IsMigNode(*node)) {
    service.grants = Cut(*pod, *node, slot, *next, patch, problem);
    if (service.grants.empty()) return Fail(*pod, call.node, problem);
  } else {
    for (const ListedDevice& device : *next) {
      const int card = node->CardOf(PlainUuid(device.uuid));
      if (card < 0) return Fail(*pod, call.node, "no card " + device.uuid);
      service.grants.push_back({card, device.memory_mib, device.cores});
    }
  }
  next->clear();
  patch[keys_.to_allocate] = WriteDeviceList(*list, true);
  const bool done =
      std::all_of(list->begin(), list->end(), [](const auto& devices) { return devices.empty(); });
  if (done) patch[keys_.phase] = "success";
  pods_.PatchAnnotations(pod->uid, patch);
  if (done) Unlock(*pod, call.node);
  return service;
}

Service HamiAgent::Fail(const FakePod& pod, const std::string& node, const std::string& why) {
  pods_.PatchAnnotations(pod.uid, {{keys_.phase, "failed"}});
  Unlock(pod, node);
  return ServiceError(pod.name + ": " + why);
}

void HamiAgent::Unlock(const FakePod& pod, const std::string& node) {
  if (keys_.lock.empty()) return;
  const std::optional<FakeNode> now = pods_.Node(node);
  const std::string owner = "," + pod.ns + "," + pod.name;
  if (now && now->Note(keys_.lock).ends_with(owner)) {
    pods_.PatchNode(node, {{keys_.lock, std::nullopt}});
  }
}

void HamiAgent::ForgetEnded() {
  std::erase_if(instances_, [this](const Instance& instance) {
    const std::optional<FakePod> pod = pods_.Pod(instance.uid);
    return !pod || pod->ended();
  });
}

std::vector<Grant> HamiAgent::Cut(const FakePod& pod, const FakeNode& node, std::size_t place,
                                  const std::vector<ListedDevice>& devices, TextPatch& patch,
                                  std::string& problem) {
  ForgetEnded();
  Json entries = Json::parse(pod.Note(keys_.mig), nullptr, false);
  if (!entries.is_array()) {
    problem = "cannot read its MIG instances";
    return {};
  }
  std::vector<Grant> grants;
  std::vector<Instance> made;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Json* const entry = FindEntry(entries, place, i);
    if (entry == nullptr || !entry->contains("placement")) {
      problem = "no MIG instance for device " + std::to_string(i);
      return {};
    }
    const Instance wanted{pod.uid, node.name, node.CardOf(entry->value("gpuUUID", "")),
                          entry->at("placement").value("start", -1),
                          entry->at("placement").value("size", -1)};
    if (wanted.card < 0 || node.CardOf(devices[i].uuid) != wanted.card) {
      problem = "its MIG instance is on another card than its device";
      return {};
    }
    const FakeCard& card = node.cards[static_cast<std::size_t>(wanted.card)];
    const FakeMigProfile* const profile = FindProfile(card, entry->value("profile", ""));
    if (profile == nullptr || profile->size != wanted.size ||
        std::find(profile->starts.begin(), profile->starts.end(), wanted.start) ==
            profile->starts.end()) {
      problem = "the card has no such MIG place";
      return {};
    }
    const auto overlaps = [&wanted](const Instance& other) {
      return other.node == wanted.node && other.card == wanted.card &&
             other.start < wanted.start + wanted.size && wanted.start < other.start + other.size;
    };
    if (std::any_of(instances_.begin(), instances_.end(), overlaps) ||
        std::any_of(made.begin(), made.end(), overlaps)) {
      problem = "its MIG place is taken";
      return {};
    }
    (*entry)["migUUID"] = "MIG-" + pod.uid + "-" + std::to_string(place) + "-" + std::to_string(i);
    made.push_back(wanted);
    grants.push_back({wanted.card, profile->memory_mib, profile->cores});
  }
  instances_.insert(instances_.end(), made.begin(), made.end());
  patch[keys_.mig] = entries.dump();
  return grants;
}

}  // namespace tranche::fakes
