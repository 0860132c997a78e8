#include "scheduler/wire/nodes/node_slices.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tranche::wire {
namespace {

std::vector<SliceDevice> Merged(const std::map<std::string, NodeSlice>& slices) {
  std::map<std::pair<std::string, std::string>, int64_t> newest;  // by driver and pool
  for (const auto& [name, slice] : slices) {
    int64_t& generation = newest[{slice.driver, slice.pool}];
    generation = std::max(generation, slice.generation);
  }
  using Place = std::tuple<bool, std::string, std::string, std::string>;
  std::vector<std::pair<Place, const SliceDevice*>> places;
  for (const auto& [name, slice] : slices) {
    if (slice.generation != newest[{slice.driver, slice.pool}]) continue;
    for (const SliceDevice& device : slice.devices) {
      places.push_back({{device.is_nic, slice.driver, slice.pool, device.name}, &device});
    }
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::vector<SliceDevice> devices;
  devices.reserve(places.size());
  for (const auto& [place, device] : places) devices.push_back(*device);
  return devices;
}

}  // namespace

void NodeSlices::Put(const std::string& name, NodeSlice slice) {
  Remove(name);
  if (slice.node.empty()) return;
  node_of_[name] = slice.node;
  touched_.insert(slice.node);
  Node& node = nodes_[slice.node];
  node.slices.insert_or_assign(name, std::move(slice));
}

void NodeSlices::Remove(const std::string& name) {
  const auto found = node_of_.find(name);
  if (found == node_of_.end()) return;
  touched_.insert(found->second);
  nodes_.at(found->second).slices.erase(name);
  node_of_.erase(found);
}

std::vector<NodeSlices::Change> NodeSlices::TakeChanges() {
  std::vector<Change> changes;
  for (const NodeName& name : std::exchange(touched_, {})) {
    const auto found = nodes_.find(name);
    Node& node = found->second;
    std::vector<SliceDevice> devices = Merged(node.slices);
    if (devices != node.told) {
      node.told = devices;
      changes.push_back({name, std::move(devices)});
    }
    if (node.slices.empty()) nodes_.erase(found);
  }
  return changes;
}

}  // namespace tranche::wire
