#include "scheduler/wire/pods/pod_gang.h"

#include <fmt/format.h>

#include <string>

#include "scheduler/engine/gangs/gang_seats.h"
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/workloads/gang_sizes.h"

namespace tranche::wire {
namespace {

constexpr int64_t kMostPods = 10'000;
constexpr std::size_t kMaxName = 253;

}  // namespace

void GangText::Set(std::size_t first, std::size_t end, std::string_view key,
                   std::optional<std::string_view> value) {
  for (std::size_t i = first; i < end; ++i) {
    if (kGangKeys[i] != key) continue;
    // An empty name names nothing, and nobody's are longer.
    const bool usable = value && !value->empty() && value->size() <= kMaxName;
    values_[i] = usable ? value : std::nullopt;
    return;
  }
}

void GangText::SetAnnotation(std::string_view key, std::optional<std::string_view> value) {
  Set(0, kFirstGangLabel, key, value);
}

void GangText::SetLabel(std::string_view key, std::optional<std::string_view> value) {
  Set(kFirstGangLabel, kGangKeys.size(), key, value);
}

void GangText::SetSpec(Object spec, FieldReader& reader) {
  constexpr std::string_view kGroup = "schedulingGroup";
  constexpr std::string_view kWorkload = "workloadRef";
  if (const std::optional<Object> group = reader.ReadObject(spec, kGroup, "spec")) {
    const std::string_view name = reader.ReadText(*group, "podGroupName", kGroup);
    if (!name.empty()) group_ = GangOfPodGroup(kNativeGroup, name);
  } else if (const std::optional<Object> workload = reader.ReadObject(spec, kWorkload, "spec")) {
    // The replicas of one of its groups are gangs of their own.
    const std::string_view replica = reader.ReadText(*workload, "podGroupReplicaKey", kWorkload);
    group_ = fmt::format("workload/{}/{}{}{}", reader.ReadText(*workload, "name", kWorkload),
                         reader.ReadText(*workload, "podGroup", kWorkload),
                         replica.empty() ? "" : "/", replica);
  }
}

std::optional<int> GangText::Number(GangKey key, int64_t most) const {
  const std::optional<std::string_view> text = Get(key);
  if (!text) return std::nullopt;
  const std::optional<int64_t> number = ParsePlainInteger(*text);
  if (!number || *number < 0 || *number > most) return std::nullopt;
  return static_cast<int>(*number);
}

void GangText::Read(PodRequest& request) const {
  if (!group_.empty()) {
    request.gang = group_;
    request.gang_size = kGangOfAll;
    request.gang_rank = Number(GangKey::kCompletionIndex, kMostPods).value_or(-1);
    return;
  }
  struct Style {
    GangKey name;
    std::string_view word;
    GangKey size;  // kCount: the pod does not say; an object of the controller may
    GangKey rank;
  };
  static constexpr Style kStyles[] = {
      {GangKey::kKueueName, "kueue/", GangKey::kKueueCount, GangKey::kKueueIndex},
      {GangKey::kLwsName, "lws/", GangKey::kLwsSize, GangKey::kLwsWorker},
      {GangKey::kVolcanoName, "volcano/", GangKey::kVolcanoMinMember, GangKey::kCompletionIndex},
      {GangKey::kVolcanoOwnName, "volcano/", GangKey::kVolcanoMinMember, GangKey::kCompletionIndex},
      {GangKey::kPluginsName, "podgroup/", GangKey::kCount, GangKey::kCompletionIndex},
      {GangKey::kOldPluginsName, "podgroup/", GangKey::kOldPluginsMin, GangKey::kCompletionIndex},
      {GangKey::kOldPluginsLabel, "podgroup/", GangKey::kCount, GangKey::kCompletionIndex},
      {GangKey::kKoordinatorName, "koordinator/", GangKey::kKoordinatorMin,
       GangKey::kCompletionIndex},
      {GangKey::kJobSetName, "jobset/", GangKey::kCount, GangKey::kJobSetIndex},
      {GangKey::kTrainingName, "training/", GangKey::kCount, GangKey::kTrainingIndex},
      {GangKey::kRayCluster, "ray/", GangKey::kCount, GangKey::kCompletionIndex},
  };
  for (const Style& style : kStyles) {
    const std::optional<std::string_view> name = Get(style.name);
    if (!name) continue;
    request.gang = std::string(style.word) + std::string(*name);
    // The groups of one set are gangs of their own.
    if (style.name == GangKey::kLwsName) {
      request.gang += "-" + std::string(Get(GangKey::kLwsGroup).value_or("0"));
    }
    if (style.size != GangKey::kCount) {
      request.gang_size = Number(style.size, kMostPods).value_or(0);
    }
    request.gang_rank = Number(style.rank, kMostPods).value_or(-1);
    break;
  }
  if (request.gang_rank < 0) {
    request.gang_rank = Number(GangKey::kCompletionIndex, kMostPods).value_or(-1);
  }
}

}  // namespace tranche::wire
