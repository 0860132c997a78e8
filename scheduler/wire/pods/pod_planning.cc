#include "scheduler/wire/pods/pod_planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace tranche::wire {
namespace {

constexpr int64_t kMostGraceSeconds = 365 * 24 * 3600;

// As Kubernetes reads the cost: no plus, no zero in front (pkg/apis/core/helper/helpers.go,
// GetDeletionCostFromPodAnnotations). Ours where the mark beside it says the same.
DeletionCostMark ReadDeletionCost(const PodAnnotations& annotations) {
  DeletionCostMark mark;
  const std::optional<std::string_view> text = annotations.Get(PodKey::kDeletionCost);
  if (!text) return mark;
  mark.by = DeletionCostMark::By::kOthers;
  if (annotations.Get(PodKey::kOurDeletionCost) != text) return mark;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), mark.cost);
  const bool whole = error == std::errc() && end == text->data() + text->size();
  if (whole && std::to_string(mark.cost) == *text) mark.by = DeletionCostMark::By::kUs;
  return mark;
}

// Which request the pod is to use, by the present key or the old one
// (cluster-autoscaler/provisioningrequest/pods/pods.go).
std::string ReadProvisioning(const PodAnnotations& annotations) {
  std::optional<std::string_view> name = annotations.Get(PodKey::kProvisioning);
  if (!name) name = annotations.Get(PodKey::kOldProvisioning);
  // What cannot be the name of an object is somebody's all the same, and not ours.
  return std::string(name.value_or("").substr(0, kMostProvisioningName));
}

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
      pod.of_replica_set =
          kind == "ReplicaSet" && reader.ReadText(owner, "apiVersion", kWhere).starts_with("apps/");
    }
  }
}

// The CronJob of a Job NAME-MINUTES, or the Job itself. Nothing on the pod names it, so its name
// has to: eight digits that are the minutes of Unix time at which the Job was due (kubernetes,
// pkg/controller/cronjob: getJobName), at most a week before the pod came, and no later than clocks
// differ. Dates that people write at the end of names (20261128) are minutes of other years.
std::string CronJobOf(std::string job, Instant created) {
  constexpr std::string_view kJob = "Job/";
  constexpr std::size_t kDigits = 8;
  constexpr std::chrono::hours kQueued{24 * 7};
  constexpr std::chrono::hours kAhead{1};
  if (!job.starts_with(kJob) || job.size() < kJob.size() + 1 + 1 + kDigits) return job;
  const std::size_t dash = job.size() - kDigits - 1;
  const std::string_view digits = std::string_view(job).substr(dash + 1);
  int64_t minutes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), minutes);
  if (job[dash] != '-' || error != std::errc() || end != digits.data() + digits.size()) return job;
  const Instant due{std::chrono::minutes(minutes)};
  if (due > created + kAhead || due + kQueued < created) return job;
  return "CronJob/" + job.substr(kJob.size(), dash - kJob.size());
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
  pod.deletion_cost = ReadDeletionCost(annotations);
  pod.provisioning = ReadProvisioning(annotations);
  if (Labels labels = reader.ReadTexts(metadata, "labels", "metadata"); !labels.empty()) {
    pod.controller = OutermostOf(std::move(pod.controller), labels);
    pod.labels = std::make_shared<const Labels>(std::move(labels));
  }
  if (pod.created) pod.controller = CronJobOf(std::move(pod.controller), *pod.created);
  if (const std::optional<std::string_view> time = annotations.Get(PodKey::kCheckpointedAt)) {
    pod.checkpointed_at = ParseTime(*time);
  }
}

}  // namespace tranche::wire
