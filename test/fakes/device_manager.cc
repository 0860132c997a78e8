#include "test/fakes/device_manager.h"

#include <algorithm>
#include <iterator>

namespace tranche::fakes {

std::set<std::string> DeviceManager::Taken() const {
  std::set<std::string> taken = in_flight_;
  for (const auto& [key, ids] : book_) taken.insert(ids.begin(), ids.end());
  return taken;
}

void DeviceManager::FreeWhatEnded() {
  if (!ready_) return;
  std::erase_if(book_, [&](const auto& entry) { return !known_.contains(entry.first.first); });
}

void DeviceManager::TakeAny(std::set<std::string>& chosen, std::set<std::string> from,
                            int64_t count) {
  while (static_cast<int64_t>(chosen.size()) < count && !from.empty()) {
    std::uniform_int_distribution<std::size_t> any(0, from.size() - 1);
    const auto at = std::next(from.begin(), static_cast<std::ptrdiff_t>(any(random_)));
    chosen.insert(*at);
    from.erase(at);
  }
}

absl::StatusOr<Ids> DeviceManager::Choose(int64_t count, const std::set<std::string>& reusable,
                                          PluginCalls& plugin) {
  std::set<std::string> chosen;
  TakeAny(chosen, reusable, count);
  if (static_cast<int64_t>(chosen.size()) == count) return Ids(chosen.begin(), chosen.end());
  const std::set<std::string> taken = Taken();
  std::set<std::string> free;
  for (const auto& [id, healthy] : devices_) {
    if (healthy && !taken.contains(id)) free.insert(id);
  }
  if (static_cast<int64_t>(free.size() + chosen.size()) < count) {
    return absl::ResourceExhaustedError("requested number of devices unavailable");
  }
  std::set<std::string> offered = free;
  offered.insert(chosen.begin(), chosen.end());
  const auto preferred =
      plugin.Prefer(Ids(offered.begin(), offered.end()), Ids(chosen.begin(), chosen.end()), count);
  if (!preferred.ok()) return preferred.status();
  std::set<std::string> wanted;
  for (const std::string& id : *preferred) {
    if (free.contains(id)) wanted.insert(id);
  }
  TakeAny(chosen, wanted, count);
  TakeAny(chosen, free, count);
  return Ids(chosen.begin(), chosen.end());
}

absl::Status DeviceManager::Admit(const ManagedPod& pod, PluginCalls& plugin) {
  known_[pod.uid] = pod;
  FreeWhatEnded();
  std::set<std::string> reusable;
  for (const ManagedContainer& container : pod.containers) {
    const Key key(pod.uid, container.name);
    if (container.count == 0) continue;
    if (!book_.contains(key)) {
      auto ids = Choose(container.count, reusable, plugin);
      if (!ids.ok()) return ids.status();
      in_flight_ = {ids->begin(), ids->end()};
      const auto given = plugin.Allocate(*ids);
      in_flight_.clear();
      if (!given.ok()) return given.status();
      book_[key] = *ids;
      given_[key] = *given;
    }
    for (const std::string& id : book_[key]) {
      if (container.init && !container.sidecar) {
        reusable.insert(id);
      } else {
        reusable.erase(id);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceManager::Start(const std::string& uid, const std::string& container,
                                  PluginCalls& plugin) {
  const auto held = book_.find({uid, container});
  if (held == book_.end()) return absl::OkStatus();
  return plugin.PreStart(held->second);
}

void DeviceManager::End(const std::string& uid) {
  known_.erase(uid);
  std::erase_if(given_, [&](const auto& entry) { return entry.first.first == uid; });
}

void DeviceManager::Restart(bool with_checkpoint) {
  ready_ = false;
  known_.clear();
  in_flight_.clear();
  if (!with_checkpoint) book_.clear();
}

std::vector<DeviceManager::Listed> DeviceManager::List() const {
  std::vector<Listed> all;
  for (const auto& [uid, pod] : known_) {
    Listed listed{uid, pod.ns, pod.name, {}};
    for (const ManagedContainer& container : pod.containers) {
      if (container.init && !container.sidecar) continue;
      const auto held = book_.find({uid, container.name});
      listed.containers[container.name] = held == book_.end() ? Ids() : held->second;
    }
    all.push_back(std::move(listed));
  }
  return all;
}

}  // namespace tranche::fakes
