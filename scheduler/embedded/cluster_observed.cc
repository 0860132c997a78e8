// Objects that tell more of nodes and gangs than Node and Pod do.
#include <utility>

#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"

namespace tranche::embedded {

void Cluster::Impl::Observe(ManifestObject& object, const std::string& uid) {
  if (auto* zones = std::get_if<NodeZones>(&object.facts)) {
    queue.Push([node = NodeName(object.key.name), facts = std::move(*zones)](
                   ClusterEvents& receiver) { receiver.NodeZonesChanged(node, facts); });
  } else if (auto* slice = std::get_if<SliceFacts>(&object.facts)) {
    slices.Put(object.key.name, std::move(slice->node));
    PushSlices();
    PushDra(std::move(slice->slice));
  } else if (auto* decoded = std::get_if<dra::Object>(&object.facts)) {
    if (auto* claim = std::get_if<dra::Claim>(decoded)) {
      claim->ns = object.key.ns;
      claim->uid = uid;
    } else if (auto* made = std::get_if<dra::ClaimTemplate>(decoded)) {
      made->claim.ns = object.key.ns;
    }
    PushDra(std::move(*decoded));
  } else if (auto* devices = std::get_if<wire::KoordinatorDevices>(&object.facts)) {
    queue.Push([facts = std::move(*devices)](ClusterEvents& receiver) {
      receiver.NodeAgentChanged(facts.node, facts.agent);
    });
  } else if (const auto* gang = std::get_if<wire::GangSize>(&object.facts)) {
    // The PodGroup of that name may have been one of the other API group: another gang.
    const auto before = gangs.find(object.key);
    if (before != gangs.end() && before->second.gang != gang->gang) Unobserve(object.key);
    gangs[object.key] = *gang;
    PushGang(*gang);
  }
}

void Cluster::Impl::PushDra(dra::Object object) {
  queue.Push(
      [object = std::move(object)](ClusterEvents& receiver) { receiver.DraChanged(object); });
}

void Cluster::Impl::Unobserve(const ObjectKey& key) {
  if (const auto kind = DraKindOf(key.kind)) {
    queue.Push([gone = dra::ObjectRef{*kind, key.ns, key.name}](ClusterEvents& receiver) {
      receiver.DraGone(gone);
    });
  }
  if (key.kind == kZonesKind) {
    queue.Push([node = NodeName(key.name)](ClusterEvents& receiver) {
      receiver.NodeZonesChanged(node, std::nullopt);
    });
  } else if (key.kind == kDeviceKind) {
    queue.Push([node = NodeName(key.name)](ClusterEvents& receiver) {
      receiver.NodeAgentChanged(node, std::nullopt);
    });
  } else if (key.kind == kSliceKind) {
    slices.Remove(key.name);
    PushSlices();
  } else if (const auto found = gangs.find(key); found != gangs.end()) {
    wire::GangSize gang = std::move(found->second);
    gangs.erase(found);
    gang.size = 0;
    PushGang(gang);
  }
}

void Cluster::Impl::PushSlices() {
  for (wire::NodeSlices::Change& change : slices.TakeChanges()) {
    queue.Push([change = std::move(change)](ClusterEvents& receiver) {
      receiver.NodeSlicesChanged(change.node, change.devices);
    });
  }
}

void Cluster::Impl::PushGang(const wire::GangSize& gang) {
  queue.Push(
      [gang](ClusterEvents& receiver) { receiver.GangSizeChanged(gang.ns, gang.gang, gang.size); });
}

}  // namespace tranche::embedded
