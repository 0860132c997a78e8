#include "scheduler/embedded/object_edits.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "scheduler/wire/json/json_value.h"

namespace tranche::embedded {
namespace {

constexpr int64_t kDefaultGraceSeconds = 30;  // Kubernetes' default

std::optional<wire::Object> Section(wire::Element element, std::string_view key) {
  wire::Object object;
  if (element.get(object) != simdjson::SUCCESS) return std::nullopt;
  return wire::FindObject(object, key);
}

bool States(wire::Element element, std::string_view section, std::string_view key) {
  const auto object = Section(element, section);
  return object && !wire::FindText(*object, key).value_or("").empty();
}

bool IsOfType(wire::Element condition, std::string_view type) {
  wire::Object object;
  return condition.get(object) == simdjson::SUCCESS && wire::FindText(object, "type") == type;
}

// status.containerStatuses of a pod whose containers all run since `now`.
std::string RunningContainers(const PodFacts& facts, Instant now) {
  wire::Json states = wire::Json::array();
  for (const ContainerInfo& container : facts.request.containers) {
    if (container.role != ContainerRole::kApp) continue;
    states.push_back({{"name", container.name},
                      {"ready", true},
                      {"state", {{"running", {{"startedAt", wire::FormatTime(now)}}}}}});
  }
  return wire::Dump(states);
}

}  // namespace

JsonPatch NewcomerPatch(const ManifestObject& object) {
  JsonPatch patch;
  patch.Remove({"metadata", "managedFields"});
  if (object.kind.name == "Node") patch.Remove({"status", "images"});
  wire::Object members;
  if (object.element.get(members) == simdjson::SUCCESS) {
    if (!wire::FindText(members, "apiVersion")) {
      patch.SetText({"apiVersion"}, object.kind.api_version);
    }
    if (!wire::FindText(members, "kind")) patch.SetText({"kind"}, object.kind.name);
  }
  if (!object.key.ns.empty()) patch.SetText({"metadata", "namespace"}, object.key.ns);
  return patch;
}

void SetVersion(JsonPatch& patch, int64_t version) {
  patch.SetText({"metadata", "resourceVersion"}, fmt::format("{}", version));
}

void SetIdentity(JsonPatch& patch, const StoredObject& object) {
  patch.SetText({"metadata", "uid"}, object.uid);
  patch.SetText({"metadata", "creationTimestamp"}, wire::FormatTime(object.created));
  if (object.generation > 0) {
    patch.Set({"metadata", "generation"}, fmt::format("{}", object.generation));
  }
}

void SetDeletion(JsonPatch& patch, const Deletion& deletion) {
  patch.SetText({"metadata", "deletionTimestamp"}, wire::FormatTime(deletion.at));
  patch.Set({"metadata", "deletionGracePeriodSeconds"}, fmt::format("{}", deletion.grace_seconds));
}

void SetRunning(JsonPatch& patch, wire::Element pod, PodFacts& facts, Instant now) {
  patch.SetText({"status", "phase"}, "Running");
  facts.phase = PodPhase::kRunning;
  if (!facts.bound_at) {
    SetCondition(patch, pod, {"PodScheduled", true, "", "", now});
    facts.bound_at = now;
  }
  if (!facts.started_at) {
    patch.SetText({"status", "startTime"}, wire::FormatTime(now));
    facts.started_at = now;
  }
  if (!facts.running_at) {
    patch.Set({"status", "containerStatuses"}, RunningContainers(facts, now));
    facts.running_at = now;
  }
}

void SetPendingIfUnstated(JsonPatch& patch, wire::Element pod) {
  if (!States(pod, "status", "phase")) patch.SetText({"status", "phase"}, "Pending");
}

void SetBinding(JsonPatch& patch, const BindingWrite& write) {
  patch.SetText({"spec", "nodeName"}, write.node.str());
  for (const auto& [key, value] : write.annotations) {
    patch.SetText({"metadata", "annotations", key}, value);
  }
  patch.Remove({"status", "nominatedNodeName"});
}

void SetCondition(JsonPatch& patch, wire::Element pod, const wire::ConditionText& condition) {
  std::string conditions = "[";
  const auto status = Section(pod, "status");
  if (const auto present = status ? wire::FindArray(*status, "conditions") : std::nullopt) {
    for (const wire::Element other : *present) {
      if (!IsOfType(other, condition.type)) conditions += simdjson::minify(other) + ",";
    }
  }
  patch.Set({"status", "conditions"}, conditions + wire::EncodeCondition(condition) + "]");
}

Labels StatedLabels(wire::Element object) {
  Labels out;
  const auto metadata = Section(object, "metadata");
  const auto labels = metadata ? wire::FindObject(*metadata, "labels") : std::nullopt;
  if (!labels) return out;
  for (const auto label : *labels) {
    std::string_view value;
    if (label.value.get(value) == simdjson::SUCCESS) out[std::string(label.key)] = value;
  }
  return out;
}

int64_t StatedGraceSeconds(wire::Element pod) {
  const auto spec = Section(pod, "spec");
  const auto stated =
      spec ? wire::FindInteger(*spec, "terminationGracePeriodSeconds") : std::nullopt;
  return std::clamp<int64_t>(stated.value_or(kDefaultGraceSeconds), 0, kMaxGraceSeconds);
}

}  // namespace tranche::embedded
