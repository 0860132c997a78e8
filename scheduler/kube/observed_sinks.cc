#include "scheduler/kube/observed_sinks.h"

#include <optional>
#include <utility>

#include "scheduler/wire/claims/claim_objects.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "topology/base/check.h"

namespace tranche::kube {
namespace {

template <typename Value>
std::string ProblemOf(const absl::StatusOr<Value>& value) {
  return std::string(value.status().message());
}

}  // namespace

Decoded ZonesSink::Decode(wire::Element object, const Identity& identity, bool) {
  Decoded out;
  absl::StatusOr<NodeZones> zones = wire::DecodeNodeZones(object);
  if (!zones.ok()) {
    out.problem = ProblemOf(zones);
    return out;
  }
  out.deliver = [this, node = NodeName(identity.key), zones = *std::move(zones)] {
    events_.NodeZonesChanged(node, zones);
  };
  return out;
}

void ZonesSink::Gone(const Identity& identity) {
  events_.NodeZonesChanged(NodeName(identity.key), std::nullopt);
}

Decoded SlicesSink::Decode(wire::Element object, const Identity& identity, bool) {
  Decoded out;
  absl::StatusOr<wire::NodeSlice> slice = wire::DecodeResourceSlice(object);
  if (!slice.ok()) {
    out.problem = ProblemOf(slice);
    return out;
  }
  absl::StatusOr<dra::Slice> whole = wire::DecodeSlice(object);
  if (!whole.ok()) {
    out.problem = ProblemOf(whole);
    return out;
  }
  out.deliver = [this, name = identity.key, slice = *std::move(slice), whole = *std::move(whole)] {
    slices_.Put(name, slice);
    events_.DraChanged(whole);
  };
  return out;
}

void SlicesSink::Gone(const Identity& identity) {
  slices_.Remove(identity.key);
  events_.DraGone({dra::ObjectRef::Kind::kSlice, "", identity.key});
}

void SlicesSink::Commit() {
  for (wire::NodeSlices::Change& change : slices_.TakeChanges()) {
    events_.NodeSlicesChanged(change.node, std::move(change.devices));
  }
}

Decoded DraSink::Decode(wire::Element object, const Identity&, bool) {
  Decoded out;
  absl::StatusOr<dra::Object> decoded = wire::DecodeDraObject(object, kind_);
  if (!decoded.ok()) {
    out.problem = ProblemOf(decoded);
    return out;
  }
  out.deliver = [this, decoded = *std::move(decoded)] { events_.DraChanged(decoded); };
  return out;
}

void DraSink::Gone(const Identity& identity) {
  const std::size_t slash = identity.key.find('/');
  dra::ObjectRef gone{kind_, "", identity.key};
  if (slash != std::string::npos) {
    gone.ns = identity.key.substr(0, slash);
    gone.name = identity.key.substr(slash + 1);
  }
  events_.DraGone(gone);
}

Decoded AgentSink::Decode(wire::Element object, const Identity& identity, bool) {
  Decoded out;
  absl::StatusOr<wire::KoordinatorDevices> devices = wire::DecodeKoordinatorDevice(object);
  if (!devices.ok()) {
    out.problem = ProblemOf(devices);
    return out;
  }
  out.deliver = [this, node = NodeName(identity.key), agent = std::move(devices->agent)] {
    events_.NodeAgentChanged(node, agent);
  };
  return out;
}

void AgentSink::Gone(const Identity& identity) {
  events_.NodeAgentChanged(NodeName(identity.key), std::nullopt);
}

Decoded GangSink::Decode(wire::Element object, const Identity&, bool) {
  Decoded out;
  absl::StatusOr<wire::GangSize> gang = wire::DecodePodGroup(object, group_);
  if (!gang.ok()) {
    out.problem = ProblemOf(gang);
    return out;
  }
  out.deliver = [this, gang = *std::move(gang)] {
    events_.GangSizeChanged(gang.ns, gang.gang, gang.size);
  };
  return out;
}

void GangSink::Gone(const Identity& identity) {
  const std::size_t slash = identity.key.find('/');
  if (slash == std::string::npos) return;  // without a namespace no pod is in it
  events_.GangSizeChanged(identity.key.substr(0, slash),
                          wire::GangOfPodGroup(group_, identity.key.substr(slash + 1)), 0);
}

std::unique_ptr<ObjectSink> SinkOf(const ObservedResource& resource, ClusterEvents& events) {
  switch (resource.kind) {
    case ObservedResource::Kind::kZones:
      return std::make_unique<ZonesSink>(events);
    case ObservedResource::Kind::kSlices:
      return std::make_unique<SlicesSink>(events);
    case ObservedResource::Kind::kClasses:
      return std::make_unique<DraSink>(events, dra::ObjectRef::Kind::kClass);
    case ObservedResource::Kind::kClaims:
      return std::make_unique<DraSink>(events, dra::ObjectRef::Kind::kClaim);
    case ObservedResource::Kind::kTemplates:
      return std::make_unique<DraSink>(events, dra::ObjectRef::Kind::kTemplate);
    case ObservedResource::Kind::kGangs:
      return std::make_unique<GangSink>(events, resource.group);
    case ObservedResource::Kind::kAgents:
      return std::make_unique<AgentSink>(events);
  }
  TRANCHE_CHECK(false);
}

}  // namespace tranche::kube
