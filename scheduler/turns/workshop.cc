#include "scheduler/turns/workshop.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topology/base/status.h"

namespace tranche::agent {
namespace {

std::string Words(const absl::Status& status) { return std::string(status.message()); }

// What records and the kubelet's book name: ids of instances that somebody has or is to have.
std::set<std::string> NamedIds(const Look& look) {
  std::set<std::string> ids;
  for (const BoundPod& pod : *look.pods) {
    if (!pod.record) continue;
    for (const ContainerDevices& container : pod.record->containers) {
      for (const Device& device : container.devices) ids.insert(IdOf(device).str());
    }
  }
  for (const KubeletPod& pod : look.kubelet) {
    for (const std::vector<Holding>* const list : {&pod.holdings, &pod.others}) {
      for (const Holding& holding : *list) ids.insert(holding.ids.begin(), holding.ids.end());
    }
  }
  return ids;
}

// A GPU has one set of the engines that profiles of this name take.
bool TakesMediaEngines(const MigDevice& place) {
  return place.profile.find("+me") != std::string::npos;
}

// Not both can be there, so that one of them stems from a pod that is gone.
bool Exclude(const DeviceId& one, const DeviceId& other) {
  return Overlap(one, other) || (TakesMediaEngines(*one.place) && TakesMediaEngines(*other.place));
}

}  // namespace

absl::Status Workshop::Fail(const DeviceId& id, const std::string& why) {
  failures_[id.str()] = {why, kRests};
  Publish();
  return absl::FailedPreconditionError(fmt::format("MIG instance {}: {}", id.str(), why));
}

// One that this pod was given before, or that may stem from before this process.
bool Workshop::MayBeItsOwn(const Grant& grant, const Instance& instance, const DeviceId& id) const {
  if (instance.place != *id.place || instance.uuid.empty()) return false;
  const auto given = given_.find(id.str());
  if (given == given_.end()) return grant.again;
  return given->second.uid == grant.uid && given->second.uuid == instance.uuid;
}

// What is left of pods that are gone.
absl::Status Workshop::RemoveOthers(const DeviceId& id, const std::vector<Instance>& others) {
  for (const Instance& instance : others) {
    const DeviceId other{id.gpu, instance.place};
    const absl::Status removed = driver_.Remove(id.gpu, instance.id);
    if (!removed.ok()) {
      stuck_[other.str()] = fmt::format(
          "an instance that no record names is there, and the driver "
          "does not remove it: {}",
          Words(removed));
      Publish();
      return absl::FailedPreconditionError(
          fmt::format("MIG instance {}: {} is in the way, which no record names and the driver "
                      "does not remove: {}",
                      id.str(), other.str(), Words(removed)));
    }
    given_.erase(other.str());
    stuck_.erase(other.str());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Workshop::MakeAt(const DeviceId& id,
                                             const std::vector<Instance>& before) {
  const absl::Status made = driver_.Make(id.gpu, *id.place);
  const auto after = driver_.List(id.gpu);
  if (!after.ok()) return Fail(id, Words(made.ok() ? after.status() : made));
  std::vector<Instance> wrong;
  for (const Instance& instance : *after) {
    if (made.ok() && instance.place == *id.place && !instance.uuid.empty()) return instance.uuid;
    if (std::ranges::find(before, instance.id, &Instance::id) == before.end()) {
      wrong.push_back(instance);
    }
  }
  const std::string why =
      made.ok() ? "the driver says that it has made one, and has none there" : Words(made);
  TRANCHE_RETURN_IF_ERROR(RemoveOthers(id, wrong));
  return Fail(id, why);
}

absl::StatusOr<std::string> Workshop::Provide(const Grant& grant, const DeviceId& id) {
  const auto found = driver_.List(id.gpu);
  if (!found.ok()) return Fail(id, Words(found.status()));
  std::vector<Instance> in_the_way;
  std::vector<Instance> before;
  std::string uuid;
  for (const Instance& instance : *found) {
    if (MayBeItsOwn(grant, instance, id)) {
      uuid = instance.uuid;
    } else if (Exclude({id.gpu, instance.place}, id)) {
      in_the_way.push_back(instance);
    } else {
      before.push_back(instance);
    }
  }
  if (uuid.empty()) {
    TRANCHE_RETURN_IF_ERROR(RemoveOthers(id, in_the_way));
    TRANCHE_ASSIGN_OR_RETURN(uuid, MakeAt(id, before));
  }
  given_[id.str()] = {grant.uid, uuid, ++provided_};
  failures_.erase(id.str());
  Publish();
  return uuid;
}

absl::Status Workshop::Check(const DeviceId& id) {
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<Instance> found, driver_.List(id.gpu));
  const auto there = std::ranges::find(found, *id.place, &Instance::place);
  const auto given = given_.find(id.str());
  const bool right = there != found.end() && !there->uuid.empty() &&
                     (given == given_.end() || given->second.uuid == there->uuid);
  if (right) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("MIG instance {} is gone, as after a restart of the node: the pod must be made "
                  "anew",
                  id.str()));
}

void Workshop::ClearCard(const Look& look, const GpuUuid& gpu, uint64_t moment) {
  const auto found = driver_.List(gpu);
  if (!found.ok()) return;
  std::erase_if(stuck_, [&](const auto& one) { return ParseDeviceId(one.first).gpu == gpu; });
  const std::set<std::string> named = NamedIds(look);
  for (const Instance& instance : *found) {
    const DeviceId id{gpu, instance.place};
    const auto given = given_.find(id.str());
    const bool fresh = given != given_.end() && given->second.moment > moment;
    if (fresh || named.contains(id.str())) continue;
    RemoveOthers(id, {instance}).IgnoreError();
  }
}

void Workshop::Clear(const Look& look, uint64_t moment) {
  if (!look.pods) return;
  for (const Card& card : look.cards) {
    if (card.mig && card.problem.empty()) ClearCard(look, card.uuid, moment);
  }
  for (auto& [id, failure] : failures_) --failure.rests;
  std::erase_if(failures_, [](const auto& one) { return one.second.rests <= 0; });
  Publish();
}

// Where two places overlap, as those of two sizes where making failed, the larger one stands.
void Workshop::Publish() {
  std::map<std::string, std::string> all = stuck_;
  for (const auto& [id, failure] : failures_) all.emplace(id, failure.why);
  closed_.clear();
  for (const auto& [text, why] : all) {
    const DeviceId id = ParseDeviceId(text);
    std::vector<ClosedPlace>& places = closed_[id.gpu];
    const auto overlaps = [&](const ClosedPlace& other) {
      return Overlap({id.gpu, other.place}, id);
    };
    const bool larger = std::ranges::any_of(places, [&](const ClosedPlace& other) {
      return overlaps(other) && other.place.size >= id.place->size;
    });
    if (larger) continue;
    std::erase_if(places, overlaps);
    places.push_back({*id.place, why});
  }
}

}  // namespace tranche::agent
