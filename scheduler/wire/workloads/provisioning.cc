#include "scheduler/wire/workloads/provisioning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json_value.h"
#include "scheduler/wire/json/text_fields.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kTranche = "tranche";
constexpr const char* kGang = "tranche.dev/gang";
constexpr std::size_t kMostTold = 256;  // bytes of a condition's message that are kept

// Members of a pod's spec that decide where it can run.
constexpr std::array<std::string_view, 15> kSpecMembers = {
    "nodeSelector",      "affinity",         "tolerations",   "topologySpreadConstraints",
    "priorityClassName", "priority",         "schedulerName", "runtimeClassName",
    "overhead",          "resources",        "hostNetwork",   "os",
    "resourceClaims",    "preemptionPolicy", "restartPolicy"};
constexpr std::array<std::string_view, 5> kContainerMembers = {"name", "image", "resources",
                                                               "ports", "restartPolicy"};

Json Copied(Element element) { return Json::parse(std::string(simdjson::minify(element))); }

template <std::size_t Count>
Json MembersOf(Object object, const std::array<std::string_view, Count>& members) {
  Json copy = Json::object();
  for (const std::string_view member : members) {
    const auto found = Find(object, member);
    if (found && !found->is_null()) copy[std::string(member)] = Copied(*found);
  }
  return copy;
}

Json ContainersOf(Object spec, std::string_view list, FieldReader& reader) {
  Json containers = Json::array();
  for (const Object container : reader.Objects(reader.ReadArray(spec, list, "spec"), list)) {
    containers.push_back(MembersOf(container, kContainerMembers));
  }
  return containers;
}

// Claims bind pods to where their volumes are.
Json VolumesOf(Object spec, FieldReader& reader) {
  constexpr std::array<std::string_view, 3> kMembers = {"name", "persistentVolumeClaim",
                                                        "ephemeral"};
  Json volumes = Json::array();
  for (const Object volume :
       reader.Objects(reader.ReadArray(spec, "volumes", "spec"), "spec.volumes")) {
    Json copy = MembersOf(volume, kMembers);
    if (copy.size() > 1) volumes.push_back(std::move(copy));
  }
  return volumes;
}

// Labels count where pods look at each other; others tell the pods of one kind apart.
bool LooksAtLabels(const Json& spec) {
  if (spec.contains("topologySpreadConstraints")) return true;
  const auto affinity = spec.find("affinity");
  return affinity != spec.end() &&
         (affinity->contains("podAffinity") || affinity->contains("podAntiAffinity"));
}

Json OwnersOf(const ProvisioningWrite& write) {
  Json owners = Json::array();
  for (const ProvisioningSet& set : write.sets) {
    owners.push_back(
        {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", set.pod.name}, {"uid", set.uid.str()}});
  }
  return owners;
}

Json MetadataOf(const ProvisioningWrite& write, const std::string& name) {
  return {{"name", name},
          {"namespace", write.name.ns},
          {"labels", {{std::string(kManagedBy), kTranche}}},
          {"annotations", {{kGang, write.gang}}},
          {"ownerReferences", OwnersOf(write)}};
}

struct Condition {
  bool holds = false;
  std::optional<Instant> since;
  std::string reason;
  std::string message;
};

std::map<std::string, Condition> ConditionsOf(Object root, FieldReader& reader) {
  constexpr std::string_view kWhere = "status.conditions";
  std::map<std::string, Condition> conditions;
  const std::optional<Object> status = reader.ReadObject(root, "status", "request");
  if (!status) return conditions;
  for (const Object one :
       reader.Objects(reader.ReadArray(*status, "conditions", "status"), kWhere)) {
    Condition& condition = conditions[std::string(reader.ReadText(one, "type", kWhere))];
    condition.holds = reader.ReadText(one, "status", kWhere) == "True";
    condition.since = ParseTime(reader.ReadText(one, "lastTransitionTime", kWhere));
    condition.reason = reader.ReadText(one, "reason", kWhere).substr(0, kMostTold);
    condition.message = reader.ReadText(one, "message", kWhere).substr(0, kMostTold);
  }
  return conditions;
}

// A request that failed or expired is never booked again, whatever else is said of it
// (cluster-autoscaler/provisioningrequest/conditions/conditions.go, ShouldCapacityBeBooked).
void Judge(std::map<std::string, Condition> conditions, ProvisioningFound& found) {
  constexpr std::array kEnds = {std::pair("Failed", ProvisioningState::kFailed),
                                std::pair("CapacityRevoked", ProvisioningState::kRevoked),
                                std::pair("BookingExpired", ProvisioningState::kExpired),
                                std::pair("Provisioned", ProvisioningState::kProvisioned)};
  const auto take = [&found](Condition& condition, ProvisioningState state) {
    found.state = state;
    found.since = condition.since;
    found.reason = std::move(condition.reason);
    found.message = std::move(condition.message);
  };
  for (const auto& [type, state] : kEnds) {
    const auto at = conditions.find(type);
    if (at != conditions.end() && at->second.holds) return take(at->second, state);
  }
  if (const auto at = conditions.find("Provisioned"); at != conditions.end()) {
    return take(at->second, ProvisioningState::kNotYet);
  }
  const auto at = conditions.find("Accepted");
  if (at != conditions.end() && at->second.holds) take(at->second, ProvisioningState::kAccepted);
}

}  // namespace

absl::StatusOr<std::string> PodTemplateOf(Element pod) {
  FieldReader reader;
  const std::optional<Object> root = reader.AsObject(pod, "pod");
  if (!root) return reader.status();
  const std::optional<Object> spec = reader.ReadObject(*root, "spec", "pod");
  if (!spec) return absl::InvalidArgumentError("expected object, found nothing, in pod.spec");
  Json made = MembersOf(*spec, kSpecMembers);
  if (Json init = ContainersOf(*spec, "initContainers", reader); !init.empty()) {
    made["initContainers"] = std::move(init);
  }
  made["containers"] = ContainersOf(*spec, "containers", reader);
  if (Json volumes = VolumesOf(*spec, reader); !volumes.empty()) {
    made["volumes"] = std::move(volumes);
  }
  Json metadata = Json::object();
  const std::optional<Object> given = reader.ReadObject(*root, "metadata", "pod");
  const auto labels = given ? Find(*given, "labels") : std::nullopt;
  if (labels && LooksAtLabels(made)) metadata["labels"] = Copied(*labels);
  if (!reader.ok()) return reader.status();
  std::string text = Dump({{"metadata", metadata}, {"spec", made}});
  if (text.size() > kMostTemplateBytes) {
    return absl::InvalidArgumentError(fmt::format(
        "expected at most {} bytes of a template, found {}", kMostTemplateBytes, text.size()));
  }
  return text;
}

absl::StatusOr<ProvisioningObjects> EncodeProvisioning(const ProvisioningWrite& write,
                                                       const std::vector<TemplateSet>& sets) {
  ProvisioningObjects objects;
  std::map<std::string_view, std::size_t> known;  // template -> index
  Json pod_sets = Json::array();
  for (const TemplateSet& set : sets) {
    const auto [at, fresh] = known.try_emplace(set.pod_template, pod_sets.size());
    if (!fresh) {
      Json& count = pod_sets[at->second]["count"];
      count = count.get<int64_t>() + set.count;
      continue;
    }
    const std::string name = fmt::format("{}-{}", write.name.name, pod_sets.size());
    objects.templates.push_back({name, Dump({{"apiVersion", "v1"},
                                             {"kind", "PodTemplate"},
                                             {"metadata", MetadataOf(write, name)},
                                             {"template", Json::parse(set.pod_template)}})});
    pod_sets.push_back({{"podTemplateRef", {{"name", name}}}, {"count", set.count}});
  }
  if (pod_sets.empty() || pod_sets.size() > kMostPodSets) {
    return absl::InvalidArgumentError(
        fmt::format("expected pods of 1 to {} kinds in gang {}, found {}", kMostPodSets,
                    Quoted(write.gang), pod_sets.size()));
  }
  objects.request = Dump(
      {{"apiVersion", kProvisioningApi},
       {"kind", "ProvisioningRequest"},
       {"metadata", MetadataOf(write, write.name.name)},
       {"spec", {{"provisioningClassName", write.provisioning_class}, {"podSets", pod_sets}}}});
  return objects;
}

bool IsOurProvisioning(Element request) {
  Object root;
  if (request.get(root) != simdjson::SUCCESS) return false;
  const auto metadata = FindObject(root, "metadata");
  const auto labels = metadata ? FindObject(*metadata, "labels") : std::nullopt;
  return labels && FindText(*labels, kManagedBy) == kTranche;
}

absl::StatusOr<ProvisioningFound> DecodeProvisioning(Element request) {
  FieldReader reader;
  const std::optional<Object> root = reader.AsObject(request, "request");
  if (!root) return reader.status();
  ProvisioningFound found;
  if (const auto metadata = reader.ReadObject(*root, "metadata", "request")) {
    found.name.ns = reader.ReadText(*metadata, "namespace", "metadata");
    found.name.name = reader.ReadText(*metadata, "name", "metadata");
    found.deleting = !reader.ReadText(*metadata, "deletionTimestamp", "metadata").empty();
    const auto annotations = reader.ReadObject(*metadata, "annotations", "metadata");
    if (annotations) found.gang = reader.ReadText(*annotations, kGang, "metadata.annotations");
  }
  if (const auto spec = reader.ReadObject(*root, "spec", "request")) {
    found.provisioning_class = reader.ReadText(*spec, "provisioningClassName", "spec");
    constexpr std::string_view kWhere = "spec.podSets";
    constexpr IntegerRange kCounts = {0, std::numeric_limits<int32_t>::max()};
    for (const Object set : reader.Objects(reader.ReadArray(*spec, "podSets", "spec"), kWhere)) {
      if (found.templates.size() == kMostPodSets) break;
      found.pods += reader.ReadInteger(set, "count", kWhere, kCounts).value_or(0);
      const auto reference = reader.ReadObject(set, "podTemplateRef", kWhere);
      if (!reference) continue;
      // A request that somebody else wrote under our label may name templates that are not ours.
      const std::string_view name = reader.ReadText(*reference, "name", kWhere);
      if (name.starts_with(found.name.name + "-")) found.templates.emplace_back(name);
    }
  }
  Judge(ConditionsOf(*root, reader), found);
  if (!reader.ok()) return reader.status();
  return found;
}

}  // namespace tranche::wire
