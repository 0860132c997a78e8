// Which gang a pod belongs to, how many pods that has and which of them it is, in the words of
// every controller that starts groups of pods.
//
// Names are made unique by the controller's word: "volcano/NAME"; those of tranche.dev/gang stand
// alone. What another controller wrote and cannot be read counts as not said.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/facts/pod_request.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// Sources, each in the repository of its name: Kueue (pkg/controller/constants, apis), Volcano
// (apis/scheduling), scheduler-plugins (apis/scheduling), Koordinator (apis/extension),
// LeaderWorkerSet (api/leaderworkerset/v1), JobSet (api/jobset/v1alpha2), Kubeflow
// training-operator (pkg/apis/kubeflow.org/v1). Kubernetes' own groups
// (kubernetes/api core/v1, scheduling/v1beta1) are no keys: GangText::SetSpec reads them. KubeRay:
// ray-operator/controllers/ray/utils.
enum class GangKey : uint8_t {
  // annotations
  kKueueCount,
  kVolcanoName,
  kVolcanoOwnName,
  kVolcanoMinMember,
  kKoordinatorName,
  kKoordinatorMin,
  kLwsSize,
  // labels
  kKueueName,
  kKueueIndex,
  kPluginsName,
  kOldPluginsName,
  kOldPluginsLabel,
  kOldPluginsMin,
  kLwsName,
  kLwsGroup,
  kLwsWorker,
  kJobSetName,
  kJobSetIndex,
  kTrainingName,
  kTrainingIndex,
  kRayCluster,
  kCompletionIndex,
  kCount
};
inline constexpr std::size_t kFirstGangLabel = static_cast<std::size_t>(GangKey::kKueueName);
inline constexpr std::array<std::string_view, static_cast<std::size_t>(GangKey::kCount)> kGangKeys =
    {
        "kueue.x-k8s.io/pod-group-total-count",
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-name",
        "scheduling.volcano.sh/group-min-member",
        "gang.scheduling.koordinator.sh/name",
        "gang.scheduling.koordinator.sh/min-available",
        "leaderworkerset.sigs.k8s.io/size",
        "kueue.x-k8s.io/pod-group-name",
        "kueue.x-k8s.io/pod-group-pod-index",
        "scheduling.x-k8s.io/pod-group",
        "pod-group.scheduling.sigs.k8s.io/name",
        "pod-group.scheduling.sigs.k8s.io",
        "pod-group.scheduling.sigs.k8s.io/min-available",
        "leaderworkerset.sigs.k8s.io/name",
        "leaderworkerset.sigs.k8s.io/group-index",
        "leaderworkerset.sigs.k8s.io/worker-index",
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/job-global-index",
        "training.kubeflow.org/job-name",
        "training.kubeflow.org/replica-index",
        "ray.io/cluster",
        "batch.kubernetes.io/job-completion-index",
};

class GangText {
 public:
  void SetAnnotation(std::string_view key, std::optional<std::string_view> value);
  void SetLabel(std::string_view key, std::optional<std::string_view> value);
  // spec.schedulingGroup (Kubernetes 1.36 and newer), or spec.workloadRef (1.35).
  void SetSpec(Object spec, FieldReader& reader);

  // Fills gang, gang_size and gang_rank.
  void Read(PodRequest& request) const;

 private:
  std::optional<std::string_view> Get(GangKey key) const {
    return values_[static_cast<std::size_t>(key)];
  }
  // The number; nullopt: none, or not one up to `most`.
  std::optional<int> Number(GangKey key, int64_t most) const;
  void Set(std::size_t first, std::size_t end, std::string_view key,
           std::optional<std::string_view> value);

  std::array<std::optional<std::string_view>, kGangKeys.size()> values_;
  std::string group_;  // of kube-scheduler; empty: none
};

}  // namespace tranche::wire
