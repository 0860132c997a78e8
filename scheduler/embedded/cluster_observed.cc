// Objects that tell more of nodes and gangs than Node and Pod do.
#include <utility>

#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"

namespace tranche::embedded {

void Cluster::State::Observe(ManifestObject& object, const std::string& uid) {
  if (auto* zones = std::get_if<NodeZones>(&object.facts)) {
    queue.Push(NodeZonesChanged{NodeName(object.key.name), std::move(*zones)});
  } else if (auto* slice = std::get_if<SliceFacts>(&object.facts)) {
    slices.Put(object.key.name, std::move(slice->node));
    PushSlices();
    queue.Push(DraChanged{std::move(slice->slice)});
  } else if (auto* decoded = std::get_if<dra::Object>(&object.facts)) {
    if (auto* claim = std::get_if<dra::Claim>(decoded)) {
      claim->ns = object.key.ns;
      claim->uid = uid;
    } else if (auto* made = std::get_if<dra::ClaimTemplate>(decoded)) {
      made->claim.ns = object.key.ns;
    }
    queue.Push(DraChanged{std::move(*decoded)});
  } else if (auto* devices = std::get_if<wire::KoordinatorDevices>(&object.facts)) {
    queue.Push(NodeAgentChanged{devices->node, std::move(devices->agent)});
  } else if (const auto* gang = std::get_if<wire::GangSize>(&object.facts)) {
    // The PodGroup of that name may have been one of the other API group: another gang.
    const auto before = gangs.find(object.key);
    if (before != gangs.end() && before->second.gang != gang->gang) Unobserve(object.key);
    gangs[object.key] = *gang;
    queue.Push(GangSizeChanged{gang->ns, gang->gang, gang->size});
  }
}

void Cluster::State::Unobserve(const ObjectKey& key) {
  if (const auto kind = DraKindOf(key.kind)) queue.Push(DraGone{{*kind, key.ns, key.name}});
  if (key.kind == kZonesKind) {
    queue.Push(NodeZonesChanged{NodeName(key.name), std::nullopt});
  } else if (key.kind == kDeviceKind) {
    queue.Push(NodeAgentChanged{NodeName(key.name), std::nullopt});
  } else if (key.kind == kSliceKind) {
    slices.Remove(key.name);
    PushSlices();
  } else if (const auto found = gangs.find(key); found != gangs.end()) {
    queue.Push(GangSizeChanged{found->second.ns, found->second.gang, 0});
    gangs.erase(found);
  }
}

void Cluster::State::PushSlices() {
  for (wire::NodeSlices::Change& change : slices.TakeChanges()) {
    queue.Push(NodeSlicesChanged{change.node, std::move(change.devices)});
  }
}

}  // namespace tranche::embedded
