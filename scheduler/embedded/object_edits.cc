#include "scheduler/embedded/object_edits.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

namespace tranche::embedded {
namespace {

constexpr int64_t kDefaultGraceSeconds = 30;  // Kubernetes' default

// API times have whole seconds.
std::string ApiTime(Instant time) {
  return wire::FormatTime(std::chrono::floor<std::chrono::seconds>(time));
}

std::optional<wire::Object> Section(wire::Element element, std::string_view key) {
  wire::Object object;
  if (element.get(object) != simdjson::SUCCESS) return std::nullopt;
  return wire::FindObject(object, key);
}

bool States(wire::Element element, std::string_view section, std::string_view key) {
  const auto object = Section(element, section);
  return object && !wire::FindText(*object, key).value_or("").empty();
}

bool IsPodScheduled(wire::Element condition) {
  wire::Object object;
  return condition.get(object) == simdjson::SUCCESS &&
         wire::FindText(object, "type") == "PodScheduled";
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
  patch.SetText({"metadata", "creationTimestamp"}, ApiTime(object.created));
}

void SetDeletion(JsonPatch& patch, const Deletion& deletion) {
  patch.SetText({"metadata", "deletionTimestamp"}, ApiTime(deletion.at));
  patch.Set({"metadata", "deletionGracePeriodSeconds"}, fmt::format("{}", deletion.grace_seconds));
}

void SetRunning(JsonPatch& patch, wire::Element pod, Instant now) {
  patch.SetText({"status", "phase"}, "Running");
  if (!States(pod, "status", "startTime")) patch.SetText({"status", "startTime"}, ApiTime(now));
}

void SetPendingIfUnstated(JsonPatch& patch, wire::Element pod) {
  if (!States(pod, "status", "phase")) patch.SetText({"status", "phase"}, "Pending");
}

void SetBinding(JsonPatch& patch, wire::Element pod, const BindingWrite& write, Instant now) {
  patch.SetText({"spec", "nodeName"}, write.node.str());
  for (const auto& [key, value] : write.annotations) {
    patch.SetText({"metadata", "annotations", key}, value);
  }
  std::string conditions = "[";
  const auto status = Section(pod, "status");
  if (const auto present = status ? wire::FindArray(*status, "conditions") : std::nullopt) {
    for (const wire::Element condition : *present) {
      if (!IsPodScheduled(condition)) conditions += simdjson::minify(condition) + ",";
    }
  }
  conditions += fmt::format(R"({{"lastProbeTime":null,"lastTransitionTime":"{}","status":"True",)"
                            R"("type":"PodScheduled"}}])",
                            ApiTime(now));
  patch.Set({"status", "conditions"}, std::move(conditions));
}

int64_t StatedGraceSeconds(wire::Element pod) {
  const auto spec = Section(pod, "spec");
  const auto stated =
      spec ? wire::FindInteger(*spec, "terminationGracePeriodSeconds") : std::nullopt;
  return std::clamp<int64_t>(stated.value_or(kDefaultGraceSeconds), 0, kMaxGraceSeconds);
}

}  // namespace tranche::embedded
