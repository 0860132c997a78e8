#include "scheduler/wire/pods/pod_planning.h"

#include <algorithm>
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
    }
  }
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
    pod.labels = std::make_shared<const Labels>(std::move(labels));
  }
  if (const std::optional<std::string_view> time = annotations.Get(PodKey::kCheckpointedAt)) {
    pod.checkpointed_at = ParseTime(*time);
  }
}

}  // namespace tranche::wire
