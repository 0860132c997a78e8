// The sinks of the observed resources: what they say of nodes and gangs -> ClusterEvents.
//
// An object that cannot be read any more keeps what its last readable version said.
//
// Thread rule: the reading thread.
#pragma once

#include <memory>
#include <string_view>

#include "scheduler/kube/object_sink.h"
#include "scheduler/kube/observed_resources.h"
#include "scheduler/ports/cluster_events.h"
#include "scheduler/wire/nodes/node_slices.h"

namespace tranche::kube {

// A NodeResourceTopology is named as its node.
class ZonesSink : public ObjectSink {
 public:
  explicit ZonesSink(ClusterEvents& events) : events_(events) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override {}
  void Heard() override {}

 private:
  ClusterEvents& events_;
};

// Hands over each slice, and all devices of every node that an event or a list changed.
class SlicesSink : public ObjectSink {
 public:
  explicit SlicesSink(ClusterEvents& events) : events_(events) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override;
  void Heard() override {}

 private:
  ClusterEvents& events_;
  wire::NodeSlices slices_;
};

// Objects of resource.k8s.io that are handed over as they are.
class DraSink : public ObjectSink {
 public:
  DraSink(ClusterEvents& events, dra::ObjectRef::Kind kind) : events_(events), kind_(kind) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override {}
  void Heard() override {}

 private:
  ClusterEvents& events_;
  const dra::ObjectRef::Kind kind_;
};

// Koordinator's Device is named as its node.
class AgentSink : public ObjectSink {
 public:
  explicit AgentSink(ClusterEvents& events) : events_(events) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override {}
  void Heard() override {}

 private:
  ClusterEvents& events_;
};

class GangSink : public ObjectSink {
 public:
  // `group`: see wire::GangOfPodGroup.
  GangSink(ClusterEvents& events, std::string_view group) : events_(events), group_(group) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override {}
  void Heard() override {}

 private:
  ClusterEvents& events_;
  const std::string_view group_;
};

std::unique_ptr<ObjectSink> SinkOf(const ObservedResource& resource, ClusterEvents& events);

}  // namespace tranche::kube
