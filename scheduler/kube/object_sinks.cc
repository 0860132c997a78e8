#include "scheduler/kube/object_sinks.h"

#include <simdjson.h>

#include "policy/decode.h"
#include "scheduler/wire/node_decode.h"
#include "scheduler/wire/pod_decode.h"

namespace tranche::kube {
namespace {

PodPhase PhaseOf(std::string_view text) {
  if (text == "Pending") return PodPhase::kPending;
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

// What can be said of a pod object whose details are unreadable.
PodFacts Outline(wire::Element object, const Identity& identity, const std::string& problem) {
  PodFacts facts;
  facts.request.uid = PodUid(identity.uid);
  const std::size_t slash = identity.key.find('/');
  facts.request.name.ns = slash == std::string::npos ? "" : identity.key.substr(0, slash);
  facts.request.name.name =
      slash == std::string::npos ? identity.key : identity.key.substr(slash + 1);
  facts.allocation_problem = problem;
  wire::Object root;
  if (object.get(root) != simdjson::SUCCESS) return facts;
  if (const auto spec = wire::FindObject(root, "spec")) {
    facts.node = NodeName(wire::FindText(*spec, "nodeName").value_or(""));
  }
  if (const auto status = wire::FindObject(root, "status")) {
    facts.phase = PhaseOf(wire::FindText(*status, "phase").value_or(""));
  }
  return facts;
}

}  // namespace

Decoded PodSink::Decode(wire::Element object, const Identity& identity, bool known) {
  Decoded out;
  absl::StatusOr<PodFacts> facts = wire::DecodePod(object);
  if (facts.ok()) {
    out.deliver = [this, pod = std::move(*facts)] { events_.PodChanged(pod); };
    return out;
  }
  out.problem = std::string(facts.status().message());
  PodFacts outline = Outline(object, identity, out.problem);
  if (!known && !outline.node.empty()) {
    out.deliver = [this, pod = std::move(outline)] { events_.PodChanged(pod); };
  }
  return out;
}

void PodSink::Gone(const Identity& identity) { events_.PodGone(PodUid(identity.uid)); }

Decoded NodeSink::Decode(wire::Element object, const Identity&, bool) {
  Decoded out;
  absl::StatusOr<NodeFacts> facts = wire::DecodeNode(object);
  if (facts.ok()) {
    out.deliver = [this, node = std::move(*facts)] { events_.NodeChanged(node); };
  } else {
    out.problem = std::string(facts.status().message());
  }
  return out;
}

void NodeSink::Gone(const Identity& identity) { events_.NodeGone(NodeName(identity.key)); }

Decoded PolicySink::Decode(wire::Element object, const Identity& identity, bool) {
  Decoded out;
  const std::string text = simdjson::minify(object);
  absl::StatusOr<GpuPolicy> policy = DecodeGpuPolicy(text, defaults_);
  if (policy.ok()) {
    out.deliver = [this, name = identity.key, value = std::move(*policy)] {
      policies_[name] = value;
      changed_ = true;
    };
  } else {
    out.problem = std::string(policy.status().message());
  }
  return out;
}

void PolicySink::Gone(const Identity& identity) {
  changed_ = policies_.erase(identity.key) > 0 || changed_;
}

void PolicySink::Commit() {
  if (!changed_) return;
  changed_ = false;
  std::vector<GpuPolicy> all;
  for (const auto& [name, policy] : policies_) all.push_back(policy);
  events_.PoliciesChanged(std::move(all));
}

}  // namespace tranche::kube
