// The three sinks: Pod, Node and GPUPolicy objects -> ClusterEvents.
//
// Thread rule: the reading thread.
#pragma once

#include <map>
#include <string>

#include "scheduler/kube/object_sink.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::kube {

// A pod that was never read but has a node is handed over with its identity and node alone and an
// allocation_problem: what holds devices must not be left out.
class PodSink : public ObjectSink {
 public:
  explicit PodSink(ClusterEvents& events) : events_(events) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override {}
  void Heard() override { events_.Heard("pods"); }

 private:
  ClusterEvents& events_;
};

class NodeSink : public ObjectSink {
 public:
  explicit NodeSink(ClusterEvents& events) : events_(events) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override {}
  void Heard() override { events_.Heard("nodes"); }

 private:
  ClusterEvents& events_;
};

// A policy that cannot be read leaves the last good one of its name in force.
class PolicySink : public ObjectSink {
 public:
  PolicySink(ClusterEvents& events, GpuPolicy defaults)
      : events_(events), defaults_(std::move(defaults)) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override;
  void Heard() override {}

 private:
  ClusterEvents& events_;
  GpuPolicy defaults_;
  std::map<std::string, GpuPolicy> policies_;  // by name
  bool changed_ = false;
};

}  // namespace tranche::kube
