// The request styles, each a reader from what a pod says to its asks.
//
// DecodePod collects the texts once, decides which style the pod speaks and lets one reader turn
// them into PodRequest::asks. Readers see amounts that were checked already.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "scheduler/wire/pods/pod_requests.h"

namespace tranche::wire {

// The annotations a pod may carry for us.
enum class PodKey : uint8_t {
  kGpuFraction,
  kGpuMemory,
  kGpuCount,
  kContainer,
  kModel,
  kMinGpuMemory,
  kExpectedRuntime,
  kGang,
  kGangSize,
  kGangRank,
  kGangWithin,
  kTopology,
  kMinLink,
  kNic,
  kNuma,
  kCheckpointedAt,
  kMirror,
  kDoNotDisrupt,
  kSafeToEvict,
  kDeletionCost,
  kOurDeletionCost,
  kProvisioning,
  kOldProvisioning,
  kUseType,
  kNoUseType,
  kUseUuid,
  kNoUseUuid,
  kNumaBind,
  kVgpuMode,
  kNodePolicy,
  kCardPolicy,
  kCardWeights,
  kHamiLimits,
  kAllocation,
  kVolcanoMode,
  kVolcanoUseUuid,
  kVolcanoNoUseUuid,
  kVgpuUseType,
  kVgpuNoUseType,
  kVgpuUseUuid,
  kVgpuNoUseUuid,
  kVgpuNodePolicy,
  kVgpuCardPolicy,
  kVgpuTopology,
  kKaiFraction,
  kKaiMemory,
  kKaiDevices,
  kKaiContainer,
  kKaiMps,
  kOpenMilli,
  kOpenCount,
  kOpenModel,
  kHivedSpec,
  kCount
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(PodKey::kCount)> kPodKeys = {
    "tranche.dev/gpu-fraction",
    "tranche.dev/gpu-memory",
    "tranche.dev/gpu-count",
    "tranche.dev/container",
    "tranche.dev/model",
    "tranche.dev/min-gpu-memory",
    "tranche.dev/expected-runtime",
    "tranche.dev/gang",
    "tranche.dev/gang-size",
    "tranche.dev/gang-rank",
    "tranche.dev/gang-within",
    "tranche.dev/topology",
    "tranche.dev/min-link",
    "tranche.dev/nic",
    "tranche.dev/numa",
    "tranche.dev/checkpointed-at",
    "kubernetes.io/config.mirror",
    "karpenter.sh/do-not-disrupt",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "controller.kubernetes.io/pod-deletion-cost",
    "tranche.dev/deletion-cost",
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/numa-bind",
    "nvidia.com/vgpu-mode",
    "hami.io/node-scheduler-policy",
    "hami.io/gpu-scheduler-policy",
    "hami.io/device-scoring-weights",
    "tranche.dev/hami-limits",
    "tranche.dev/allocation",
    "volcano.sh/vgpu-mode",
    "volcano.sh/vgpu-use-gpuuuid",
    "volcano.sh/vgpu-nouse-gpuuuid",
    "nvidia.com/include-gpu-type",
    "nvidia.com/exclude-gpu-type",
    "nvidia.com/include-gpu-uuid",
    "nvidia.com/exclude-gpu-uuid",
    "nvidia.com/node-scheduler-policy",
    "nvidia.com/device-scheduler-policy",
    "nvidia.com/device-topology-mode",
    "gpu-fraction",
    "gpu-memory",
    "gpu-fraction-num-devices",
    "gpu-fraction-container-name",
    "mps",
    "alibabacloud.com/gpu-milli",
    "alibabacloud.com/gpu-count",
    "alibabacloud.com/gpu-card-model",
    "hivedscheduler.microsoft.com/pod-scheduling-spec",
};

class PodAnnotations {
 public:
  // Keeps the annotation if it is one of these; an empty value is a value, nullopt takes it away.
  // Cost: a binary search by length, since pods carry many annotations that are none of these.
  void Set(std::string_view key, std::optional<std::string_view> value);

  std::optional<std::string_view> Get(PodKey key) const {
    return values_[static_cast<std::size_t>(key)];
  }
  static constexpr std::string_view KeyName(PodKey key) {
    return kPodKeys[static_cast<std::size_t>(key)];
  }

 private:
  std::array<std::optional<std::string_view>, kPodKeys.size()> values_;
};

// Everything a pod says about GPUs. Views point into the parsed document.
struct PodText {
  PodAnnotations annotations;
  std::vector<Amount> amounts;  // ascending container, then key; overhead last
};

// The first amount of a container that fulfils the predicate and is present; nullptr: none.
template <typename Predicate>
const Amount* FindAmount(const PodText& text, Predicate predicate) {
  for (const Amount& amount : text.amounts) {
    if (amount.container != kOverhead && amount.is_present() && predicate(amount)) return &amount;
  }
  return nullptr;
}

// What one container names of one style's keys. Valid as long as the text.
class ContainerAmounts {
 public:
  ContainerAmounts(const ContainerInfo& info, int container)
      : info_(&info), container_(container) {}
  void Add(const Amount& amount) { amounts_.push_back(&amount); }

  const ContainerInfo& info() const { return *info_; }
  int container() const { return container_; }
  const Amount& front() const { return *amounts_.front(); }
  // nullptr: the container does not name the key. Zero is a value.
  const Amount* Find(AmountKind kind) const;
  // 0: absent, or zero.
  int64_t Value(AmountKind kind) const;

 private:
  const ContainerInfo* info_;
  int container_;
  std::vector<const Amount*> amounts_;
};
// The containers that ask for something by keys of this style, ascending; their zeros included.
std::vector<ContainerAmounts> ByContainer(const PodText& text, const PodRequest& request,
                                          RequestStyle style);

Refusal MixedStyles(std::string_view one, std::string_view other);
Refusal BadAnnotation(PodKey key, std::string_view expected, std::string_view found);
Refusal BadAmount(const ContainerAmounts& container, const Amount& amount,
                  std::string_view expected);
// Agents that tell pods apart by the total of the pod are called for each container, and so can
// serve one container only; `why` says so in the agent's terms. Most know nothing of init
// containers.
std::optional<Refusal> RefuseSecondContainer(const std::vector<ContainerAmounts>& containers,
                                             std::string_view why);
std::optional<Refusal> RefuseInitContainers(const std::vector<ContainerAmounts>& containers);

// "A whole number from 1 to kMaxAmount" in plain digits; nullopt: something else.
std::optional<int64_t> ParsePositive(std::string_view text);
// The container of that name, or the first app container where none is named; nullopt: there is no
// such container.
std::optional<int> FindContainer(const PodRequest& request, std::optional<std::string_view> name);

// A part of each of `count` cards.
Ask ShareOf(int container, int64_t count, MemoryNeed memory, int64_t milli);
// Whole cards.
Ask CardsOf(int container, int64_t count);

inline constexpr int64_t kMaxPercent = 100;
inline constexpr int64_t kMilliPerPercent = 10;
// Of the memory; all of it is the whole card.
MemoryNeed PercentOfMemory(int64_t percent);

// The annotations that make a pod one of a style; of one style the first tells.
struct StyleKey {
  RequestStyle style;
  PodKey key;
};
inline constexpr std::array kStyleKeys = {
    StyleKey{RequestStyle::kTranche, PodKey::kGpuFraction},
    StyleKey{RequestStyle::kTranche, PodKey::kGpuMemory},
    StyleKey{RequestStyle::kTranche, PodKey::kGpuCount},
    StyleKey{RequestStyle::kKai, PodKey::kKaiFraction},
    StyleKey{RequestStyle::kKai, PodKey::kKaiMemory},
    StyleKey{RequestStyle::kKai, PodKey::kKaiDevices},
    StyleKey{RequestStyle::kOpenGpuShare, PodKey::kOpenMilli},
    StyleKey{RequestStyle::kOpenGpuShare, PodKey::kOpenCount},
    StyleKey{RequestStyle::kHived, PodKey::kHivedSpec},
};

// Each adds its asks to `request`, or says why it cannot.
std::optional<Refusal> ReadNative(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadHami(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadTranche(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadVolcano(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadVolcanoOld(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadGpushare(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadTkestack(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadElastic(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadVgpuManager(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadKai(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadKoordinator(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadOpenGpuShare(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadHived(const PodText& text, PodRequest& request);

// The gang as tranche.dev annotations say; over what the request has from others (pod_gang.h).
std::optional<Refusal> ReadGang(const PodAnnotations& annotations, PodRequest& request);
// The annotations that choose among nodes and cards, the same for every style. After the asks.
std::optional<Refusal> ReadSelection(const PodAnnotations& annotations, PodRequest& request);

}  // namespace tranche::wire
