#include "scheduler/kube/watch/object_sinks.h"

#include <simdjson.h>

#include <utility>

#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/records/past_object.h"
#include "topology/base/status.h"

namespace tranche::kube {
namespace {

PodPhase PhaseOf(std::string_view text) {
  if (text == "Pending") return PodPhase::kPending;
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

void AppendMinified(std::string& out, std::string_view key, wire::Element value) {
  if (out.back() != '{') out.push_back(',');
  wire::AppendQuoted(out, key);
  out.push_back(':');
  out += simdjson::minify(value);
}

// The object but for metadata.managedFields, which is long and never read.
std::string WithoutManagedFields(wire::Object root) {
  std::string out = "{";
  for (const auto member : root) {
    wire::Object metadata;
    if (member.key != "metadata" || member.value.get(metadata) != simdjson::SUCCESS) {
      AppendMinified(out, member.key, member.value);
      continue;
    }
    if (out.back() != '{') out.push_back(',');
    out += R"("metadata":{)";
    for (const auto field : metadata) {
      if (field.key != "managedFields") AppendMinified(out, field.key, field.value);
    }
    out.push_back('}');
  }
  out.push_back('}');
  return out;
}

// What can be said of a pod that is unreadable.
PodFacts Outline(wire::Element object, const Identity& identity, const std::string& problem) {
  PodFacts facts;
  facts.request.uid = PodUid(identity.uid);
  const auto [ns, name] = SplitKey(identity.key);
  facts.request.name = {std::string(ns), std::string(name)};
  facts.allocation_problem = problem;
  facts.unreadable = true;
  wire::Object root;
  if (object.get(root) != simdjson::SUCCESS) return facts;
  if (const auto metadata = wire::FindObject(root, "metadata")) {
    const auto deletion = wire::FindText(*metadata, "deletionTimestamp").value_or("");
    facts.terminating = !deletion.empty();
    facts.deletion_at = wire::ParseTime(deletion);
  }
  if (const auto spec = wire::FindObject(root, "spec")) {
    facts.node = NodeName(wire::FindText(*spec, "nodeName").value_or(""));
  }
  if (const auto status = wire::FindObject(root, "status")) {
    facts.phase = PhaseOf(wire::FindText(*status, "phase").value_or(""));
  }
  return facts;
}

}  // namespace

std::pair<std::string_view, std::string_view> SplitKey(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {"", key};
  return {key.substr(0, slash), key.substr(slash + 1)};
}

Decoded PodSink::Decode(wire::Element object, const Identity& identity, bool) {
  Decoded out;
  absl::StatusOr<PodFacts> facts = wire::DecodePod(object);
  if (facts.ok()) {
    PodChanged changed{*std::move(facts)};
    if (changed.pod.request.asks_gpu()) {
      changed.object = wire::PastPodText(object);
    }
    out.deliver = [this, changed = std::move(changed)] { events_.Receive(changed); };
    return out;
  }
  return DecodeOutline(object, identity, std::string(facts.status().message()));
}

Decoded PodSink::DecodeOutline(wire::Element outline, const Identity& identity,
                               const std::string& problem) {
  Decoded out;
  out.problem = problem;
  PodFacts facts = Outline(outline, identity, problem);
  const bool ended = facts.phase == PodPhase::kSucceeded || facts.phase == PodPhase::kFailed;
  if (!facts.node.empty() || ended) {
    out.deliver = [this, pod = std::move(facts)] { events_.Receive(PodChanged{pod}); };
  }
  return out;
}

void PodSink::Gone(const Identity& identity) { events_.Receive(PodGone{PodUid(identity.uid)}); }

Decoded EventSink::Decode(wire::Element object, const Identity& identity, bool) {
  Decoded out;
  absl::StatusOr<ClusterEvent> event = read_(object, identity);
  if (!event.ok()) return DecodeOutline(object, identity, std::string(event.status().message()));
  out.deliver = [this, event = *std::move(event)] { events_.Receive(event); };
  return out;
}

Decoded EventSink::DecodeOutline(wire::Element, const Identity& identity,
                                 const std::string& problem) {
  Decoded out;
  out.problem = problem;
  if (unreadable_) {
    out.deliver = [this, event = unreadable_(identity, problem)] { events_.Receive(event); };
  }
  return out;
}

EventSink NodeSink(ClusterEvents& events) {
  const auto read = [](wire::Element object, const Identity&) -> absl::StatusOr<ClusterEvent> {
    TRANCHE_ASSIGN_OR_RETURN(NodeFacts node, wire::DecodeNode(object));
    return NodeChanged{std::move(node), wire::PastNodeText(object)};
  };
  const auto gone = [](const Identity& identity) { return NodeGone{NodeName(identity.key)}; };
  const auto unreadable = [](const Identity& identity, const std::string& problem) {
    return NodeUnreadable{NodeName(identity.key), problem};
  };
  return EventSink(events, read, gone, "nodes", unreadable);
}

Decoded PolicyObjectSink::Decode(wire::Element object, const Identity& identity, bool known) {
  Decoded out;
  wire::Object root;
  if (object.get(root) != simdjson::SUCCESS) return out;
  const auto metadata = wire::FindObject(root, "metadata");
  PolicyObject policy;
  if (metadata) policy.generation = wire::FindInteger(*metadata, "generation").value_or(0);
  const auto before = generations_.find(identity.key);
  const bool same = resource_.custom && known && before != generations_.end() &&
                    policy.generation != 0 && before->second == policy.generation;
  const bool follows = (resource_.written_by_us || resource_.checkpoints) && follows_;
  if (!follows && (same || (resource_.written_by_us && known))) return out;
  const auto [ns, name] = SplitKey(identity.key);
  policy.kind = resource_.kind;
  policy.ns = ns;
  policy.name = name;
  policy.uid = identity.uid;
  policy.json = WithoutManagedFields(root);
  out.deliver = [this, key = identity.key, policy = std::move(policy)] {
    generations_[key] = policy.generation;
    changed_ = true;
    events_.Receive(policy);
  };
  return out;
}

void PolicyObjectSink::Gone(const Identity& identity) {
  if (generations_.erase(identity.key) == 0) return;
  const auto [ns, name] = SplitKey(identity.key);
  changed_ = true;
  events_.Receive(
      PolicyObjectGone{std::string(resource_.kind), {std::string(ns), std::string(name)}});
}

void PolicyObjectSink::Commit() {
  if (std::exchange(changed_, false)) events_.Receive(PolicyObjectsSettled());
}

}  // namespace tranche::kube
