#include "scheduler/wire/pods/pod_planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

namespace tranche::wire {
namespace {

constexpr int64_t kMostGraceSeconds = 365 * 24 * 3600;

void ReadOwners(Object metadata, FieldReader& reader, PodFacts& pod) {
  constexpr std::string_view kWhere = "metadata.ownerReferences";
  for (const Object owner :
       reader.Objects(reader.ReadArray(metadata, "ownerReferences", "metadata"), kWhere)) {
    const std::string_view kind = reader.ReadText(owner, "kind", kWhere);
    if (kind == "Node" || kind == "DaemonSet") pod.evictable = false;
    if (reader.ReadBool(owner, "controller", kWhere).value_or(false)) {
      pod.owner = reader.ReadText(owner, "uid", kWhere);
      const std::string_view name = reader.ReadText(owner, "name", kWhere);
      if (!name.empty()) pod.controller = fmt::format("{}/{}", kind, name);
    }
  }
}

// Controllers that make others which make the pods, by the labels that they give to pods: the
// Deployment of a ReplicaSet whose name ends with the hash, and those that name themselves.
std::string OutermostOf(std::string controller, const Labels& labels) {
  constexpr std::string_view kReplicaSet = "ReplicaSet/";
  if (const auto hash = labels.find("pod-template-hash");
      hash != labels.end() && controller.starts_with(kReplicaSet)) {
    const std::string suffix = "-" + hash->second;
    if (controller.ends_with(suffix) && controller.size() > kReplicaSet.size() + suffix.size()) {
      controller.resize(controller.size() - suffix.size());
      return "Deployment/" + controller.substr(kReplicaSet.size());
    }
  }
  constexpr std::array<std::array<std::string_view, 3>, 2> kMakers = {
      {{"Job/", "jobset.sigs.k8s.io/jobset-name", "JobSet/"},
       {"StatefulSet/", "leaderworkerset.sigs.k8s.io/name", "LeaderWorkerSet/"}}};
  for (const auto& [made, label, maker] : kMakers) {
    const auto name = labels.find(std::string(label));
    if (name != labels.end() && controller.starts_with(made)) {
      return std::string(maker) + name->second;
    }
  }
  return controller;
}

}  // namespace

void ReadEvictionFacts(Object metadata, std::optional<Object> spec,
                       const PodAnnotations& annotations, FieldReader& reader, PodFacts& pod) {
  ReadOwners(metadata, reader, pod);
  const auto grace = spec ? FindInteger(*spec, "terminationGracePeriodSeconds") : std::nullopt;
  if (grace) pod.grace = std::chrono::seconds(std::clamp<int64_t>(*grace, 0, kMostGraceSeconds));
  if (annotations.Get(PodKey::kMirror)) pod.evictable = false;
  // Karpenter (apis/v1 DoNotDisruptAnnotationKey) and cluster-autoscaler (FAQ, "What types of pods
  // can prevent CA from removing a node?").
  pod.left_alone = annotations.Get(PodKey::kDoNotDisrupt).value_or("false") != "false" ||
                   annotations.Get(PodKey::kSafeToEvict) == "false";
  if (Labels labels = reader.ReadTexts(metadata, "labels", "metadata"); !labels.empty()) {
    pod.controller = OutermostOf(std::move(pod.controller), labels);
    pod.labels = std::make_shared<const Labels>(std::move(labels));
  }
  if (const std::optional<std::string_view> time = annotations.Get(PodKey::kCheckpointedAt)) {
    pod.checkpointed_at = ParseTime(*time);
  }
}

}  // namespace tranche::wire
