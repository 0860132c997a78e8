// The request styles, each a reader from what a pod says to its asks.
//
// DecodePod collects the texts once, decides which style the pod speaks and lets one reader turn
// them into PodRequest::asks. Readers see amounts that were checked already.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "scheduler/wire/pod_requests.h"

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
  kCheckpointedAt,
  kMirror,
  kUseType,
  kNoUseType,
  kUseUuid,
  kNoUseUuid,
  kNumaBind,
  kVgpuMode,
  kNodePolicy,
  kCardPolicy,
  kAllocation,
  kHamiAllocated,
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
    "tranche.dev/checkpointed-at",
    "kubernetes.io/config.mirror",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/numa-bind",
    "nvidia.com/vgpu-mode",
    "hami.io/node-scheduler-policy",
    "hami.io/gpu-scheduler-policy",
    "tranche.dev/allocation",
    "hami.io/vgpu-devices-allocated",
};

class PodAnnotations {
 public:
  // Keeps the annotation if it is one of ours; an empty value is a value, nullopt takes it away.
  void Set(std::string_view key, std::optional<std::string_view> value);

  std::optional<std::string_view> Get(PodKey key) const {
    return values_[static_cast<std::size_t>(key)];
  }
  static std::string_view KeyName(PodKey key) { return kPodKeys[static_cast<std::size_t>(key)]; }
  // A key that makes the pod one of another request style; empty: none.
  std::string_view foreign() const { return foreign_; }

 private:
  std::array<std::optional<std::string_view>, kPodKeys.size()> values_;
  std::string_view foreign_;
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

Refusal MixedDialects(std::string_view one, std::string_view other);
Refusal BadAnnotation(PodKey key, std::string_view expected, std::string_view found);

// The annotation that makes the pod one of Tranche's style; empty: none.
std::string_view TrancheTrigger(const PodAnnotations& annotations);

// Each adds its asks to `request`, or says why it cannot.
std::optional<Refusal> ReadNative(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadHami(const PodText& text, PodRequest& request);
std::optional<Refusal> ReadTranche(const PodText& text, PodRequest& request);

// The annotations that choose among nodes and cards, the same for every style.
std::optional<Refusal> ReadSelection(const PodAnnotations& annotations, PodRequest& request);

}  // namespace tranche::wire
