// The sinks: Pod, Node and policy objects -> ClusterEvents.
//
// Thread rule: the reading thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "scheduler/kube/object_sink.h"
#include "scheduler/kube/policy_resources.h"
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

// Hands objects over as JSON text. A version that differs in status or metadata alone is skipped
// where metadata.generation tells. Of what we write ourselves the first version alone, or all of
// them while `follows`: somebody else of our kind is writing. So with statuses that carry
// checkpoints.
class PolicyObjectSink : public ObjectSink {
 public:
  PolicyObjectSink(ClusterEvents& events, const PolicyResource& resource, const bool& follows)
      : events_(events), resource_(resource), follows_(follows) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  void Gone(const Identity& identity) override;
  void Commit() override;
  void Heard() override {}

 private:
  ClusterEvents& events_;
  const PolicyResource resource_;
  const bool& follows_;
  std::map<std::string, int64_t> generations_;  // by key, of what was handed over
  bool changed_ = false;                        // since the last commit
};

}  // namespace tranche::kube
