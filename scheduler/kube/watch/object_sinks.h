// The sinks: Pod, Node and policy objects -> ClusterEvents.
//
// Thread rule: the reading thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "scheduler/kube/watch/object_sink.h"
#include "scheduler/kube/watch/policy_resources.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::kube {

// Namespace (empty: cluster scope) and name of a key.
std::pair<std::string_view, std::string_view> SplitKey(std::string_view key);

// A pod that cannot be read is handed over as PodFacts::unreadable when it has a node or has ended:
// what holds devices must not be left out, and what ended must not hold them for ever. A waiting
// one keeps what was last read of it.
class PodSink : public ObjectSink {
 public:
  explicit PodSink(ClusterEvents& events) : events_(events) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  Decoded DecodeOutline(wire::Element outline, const Identity& identity,
                        const std::string& problem) override;
  void Gone(const Identity& identity) override;
  void Heard() override { events_.Receive(tranche::Heard{"pods"}); }
  void Listed() override { events_.Receive(tranche::Heard{.resource = "pods", .whole = true}); }

 private:
  ClusterEvents& events_;
};

// A sink that keeps nothing: every readable object is one event, and so is its end. Of an object
// that cannot be read any more what its last readable version said stands.
class EventSink : public ObjectSink {
 public:
  using ReadChange = std::function<absl::StatusOr<ClusterEvent>(wire::Element, const Identity&)>;
  using MakeGone = std::function<ClusterEvent(const Identity&)>;
  using MakeUnreadable = std::function<ClusterEvent(const Identity&, const std::string&)>;
  // `heard`: under which name signs of life are told; null: they are not. `unreadable`: what is
  // told of a version that cannot be read, and why; empty: nothing.
  EventSink(ClusterEvents& events, ReadChange read, MakeGone gone, const char* heard = nullptr,
            MakeUnreadable unreadable = {})
      : events_(events),
        read_(std::move(read)),
        gone_(std::move(gone)),
        heard_(heard),
        unreadable_(std::move(unreadable)) {}
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override;
  Decoded DecodeOutline(wire::Element outline, const Identity& identity,
                        const std::string& problem) override;
  void Gone(const Identity& identity) override { events_.Receive(gone_(identity)); }
  void Heard() override {
    if (heard_ != nullptr) events_.Receive(tranche::Heard{heard_});
  }

 private:
  ClusterEvents& events_;
  const ReadChange read_;
  const MakeGone gone_;
  const char* const heard_;
  const MakeUnreadable unreadable_;
};

// A node that cannot be read is told as NodeUnreadable.
EventSink NodeSink(ClusterEvents& events);

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

 private:
  ClusterEvents& events_;
  const PolicyResource resource_;
  const bool& follows_;
  std::map<std::string, int64_t> generations_;  // by key, of what was handed over
  bool changed_ = false;                        // since the last commit
};

}  // namespace tranche::kube
