#include "scheduler/kube/watch/observed_resources.h"

#include <optional>
#include <string>
#include <utility>

#include "scheduler/kube/watch/object_sinks.h"
#include "scheduler/wire/claims/claim_objects.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/node_slices.h"
#include "scheduler/wire/workloads/scale_up.h"
#include "scheduler/wire/workloads/workload.h"
#include "topology/base/check.h"
#include "topology/base/status.h"

namespace tranche::kube {
namespace {

// Hands over each slice, and all devices of every node that an event or a list changed.
class SlicesSink : public ObjectSink {
 public:
  explicit SlicesSink(ClusterEvents& events) : events_(events) {}

  Decoded Decode(wire::Element object, const Identity& identity, bool) override {
    Decoded out;
    absl::StatusOr<wire::NodeSlice> slice = wire::DecodeResourceSlice(object);
    absl::StatusOr<dra::Slice> whole = wire::DecodeSlice(object);
    if (!slice.ok() || !whole.ok()) {
      out.problem = std::string((slice.ok() ? whole.status() : slice.status()).message());
      return out;
    }
    out.deliver = [this, name = identity.key, slice = *std::move(slice),
                   whole = *std::move(whole)] {
      slices_.Put(name, slice);
      events_.Receive(DraChanged{whole});
    };
    return out;
  }

  void Gone(const Identity& identity) override {
    slices_.Remove(identity.key);
    events_.Receive(DraGone{{dra::ObjectRef::Kind::kSlice, "", identity.key}});
  }

  void Commit() override {
    for (wire::NodeSlices::Change& change : slices_.TakeChanges()) {
      events_.Receive(NodeSlicesChanged{change.node, std::move(change.devices)});
    }
  }

 private:
  ClusterEvents& events_;
  wire::NodeSlices slices_;
};

// Hands over what autoscalers say. That an Event is gone says nothing: it was old.
class ScaleUpSink : public ObjectSink {
 public:
  explicit ScaleUpSink(ClusterEvents& events) : events_(events) {}

  Decoded Decode(wire::Element object, const Identity&, bool) override {
    Decoded out;
    const absl::StatusOr<std::optional<wire::ScaleUp>> told = wire::DecodeScaleUp(object);
    if (!told.ok()) {
      out.problem = std::string(told.status().message());
    } else if (*told) {
      out.deliver = [this, event = ScaleUpTold{(*told)->pod, (*told)->told}] {
        events_.Receive(event);
      };
    }
    return out;
  }
  void Gone(const Identity&) override {}

 private:
  ClusterEvents& events_;
};

// A NodeResourceTopology is named as its node.
absl::StatusOr<ClusterEvent> ReadZones(wire::Element object, const Identity& identity) {
  TRANCHE_ASSIGN_OR_RETURN(NodeZones zones, wire::DecodeNodeZones(object));
  return NodeZonesChanged{NodeName(identity.key), std::move(zones)};
}

// Koordinator's Device is named as its node.
absl::StatusOr<ClusterEvent> ReadAgent(wire::Element object, const Identity& identity) {
  TRANCHE_ASSIGN_OR_RETURN(wire::KoordinatorDevices devices, wire::DecodeKoordinatorDevice(object));
  return NodeAgentChanged{NodeName(identity.key), std::move(devices.agent)};
}

// Objects of resource.k8s.io that are handed over as they are.
std::unique_ptr<ObjectSink> DraSink(ClusterEvents& events, dra::ObjectRef::Kind kind) {
  const auto read = [kind](wire::Element object, const Identity&) -> absl::StatusOr<ClusterEvent> {
    TRANCHE_ASSIGN_OR_RETURN(dra::Object decoded, wire::DecodeDraObject(object, kind));
    return DraChanged{std::move(decoded)};
  };
  const auto gone = [kind](const Identity& identity) {
    const auto [ns, name] = SplitKey(identity.key);
    return DraGone{{kind, std::string(ns), std::string(name)}};
  };
  return std::make_unique<EventSink>(events, read, gone);
}

// How the objects of one kind tell the size of a gang, and which gang it is. `word`: as in
// ObservedResource.
struct GangWords {
  absl::StatusOr<wire::GangSize> (*decode)(wire::Element object, std::string_view word);
  std::string (*gang_of)(std::string_view word, std::string_view name);
};

std::unique_ptr<ObjectSink> GangSink(ClusterEvents& events, std::string_view word,
                                     GangWords words) {
  const auto read = [=](wire::Element object, const Identity&) -> absl::StatusOr<ClusterEvent> {
    TRANCHE_ASSIGN_OR_RETURN(const wire::GangSize gang, words.decode(object, word));
    return GangSizeChanged{gang.ns, gang.gang, gang.size};
  };
  const auto gone = [=](const Identity& identity) {
    const auto [ns, name] = SplitKey(identity.key);
    return GangSizeChanged{std::string(ns), words.gang_of(word, name), 0};
  };
  return std::make_unique<EventSink>(events, read, gone);
}

}  // namespace

std::unique_ptr<ObjectSink> SinkOf(const ObservedResource& resource, ClusterEvents& events) {
  switch (resource.kind) {
    case ObservedResource::Kind::kZones:
      return std::make_unique<EventSink>(events, ReadZones, [](const Identity& gone) {
        return NodeZonesChanged{NodeName(gone.key), std::nullopt};
      });
    case ObservedResource::Kind::kAgents:
      return std::make_unique<EventSink>(events, ReadAgent, [](const Identity& gone) {
        return NodeAgentChanged{NodeName(gone.key), std::nullopt};
      });
    case ObservedResource::Kind::kSlices:
      return std::make_unique<SlicesSink>(events);
    case ObservedResource::Kind::kClasses:
      return DraSink(events, dra::ObjectRef::Kind::kClass);
    case ObservedResource::Kind::kClaims:
      return DraSink(events, dra::ObjectRef::Kind::kClaim);
    case ObservedResource::Kind::kTemplates:
      return DraSink(events, dra::ObjectRef::Kind::kTemplate);
    case ObservedResource::Kind::kTaintRules:
      return DraSink(events, dra::ObjectRef::Kind::kTaintRule);
    case ObservedResource::Kind::kGangs:
      return GangSink(events, resource.word, {wire::DecodePodGroup, wire::GangOfPodGroup});
    case ObservedResource::Kind::kOwners:
      return GangSink(events, resource.word, {wire::DecodeGangOwner, wire::GangOfOwner});
    case ObservedResource::Kind::kScaleUps:
      return std::make_unique<ScaleUpSink>(events);
  }
  TRANCHE_CHECK(false);
}

}  // namespace tranche::kube
