// KAI's and Run:ai's annotations: gpu-fraction or gpu-memory of one container.
// Source: request-dialects section 11 (kai-scheduler/KAI-Scheduler: gpu_request_validator.go).
#include <fmt/format.h>

#include <algorithm>

#include "absl/status/statusor.h"
#include "scheduler/wire/pods/request_styles.h"
#include "topology/base/quantity.h"

namespace tranche::wire {
namespace {

// What both a float and a quantity may look like, in thousandths, rounded down: "0.5", "5e-1".
// nullopt: not above 0 and below 1.
std::optional<int64_t> ParseKaiFraction(std::string_view text) {
  constexpr int64_t kMilli = 1000;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto is_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  if (text.empty() || !is_number(text.front()) || !is_number(text.back())) return std::nullopt;
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return is_number(c) || c == 'e' || c == 'E' || c == '+' || c == '-';
  });
  if (!plain) return std::nullopt;
  // Rounding is upwards, so that of the negative value is ours.
  const absl::StatusOr<int64_t> negative = ParseMilliQuantity("-" + std::string(text));
  if (!negative.ok() || *negative >= 0 || *negative <= -kMilli) return std::nullopt;
  return -*negative;
}

std::optional<Refusal> ReadKaiShare(const PodAnnotations& annotations, Ask& ask) {
  const std::optional<std::string_view> fraction = annotations.Get(PodKey::kKaiFraction);
  const std::optional<std::string_view> memory = annotations.Get(PodKey::kKaiMemory);
  if (fraction && memory) {
    return BadAnnotation(PodKey::kKaiMemory, "only one of gpu-fraction and gpu-memory",
                         fmt::format("{} beside {}", *memory, *fraction));
  }
  if (fraction) {
    const std::optional<int64_t> milli = ParseKaiFraction(*fraction);
    if (!milli) {
      return BadAnnotation(PodKey::kKaiFraction, "decimal number from 0.001 to below 1", *fraction);
    }
    ask.memory = {MemoryNeed::Kind::kMilliOfCard, *milli};
    ask.compute = MilliGpu::Of(*milli);
    return std::nullopt;
  }
  if (!memory) {
    return BadAnnotation(PodKey::kKaiDevices, "gpu-fraction or gpu-memory beside it",
                         annotations.Get(PodKey::kKaiDevices).value_or(""));
  }
  const std::optional<int64_t> mib = ParsePositive(*memory);
  if (!mib) return BadAnnotation(PodKey::kKaiMemory, "whole number of MiB above 0", *memory);
  if (annotations.Get(PodKey::kKaiMps) == "true") {
    return BadAnnotation(PodKey::kKaiMps, "gpu-fraction beside it, not gpu-memory", "true");
  }
  ask.memory = {MemoryNeed::Kind::kMib, *mib};
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ReadKai(const PodText& text, PodRequest& request) {
  const PodAnnotations& annotations = text.annotations;
  const std::optional<std::string_view> name = annotations.Get(PodKey::kKaiContainer);
  const std::optional<int> container = FindContainer(request, name);
  if (!container) {
    return BadAnnotation(PodKey::kKaiContainer, "name of a container of the pod",
                         name.value_or(""));
  }
  Ask ask = ShareOf(*container, 1, MemoryNeed{}, 0);
  if (const std::optional<std::string_view> devices = annotations.Get(PodKey::kKaiDevices)) {
    const std::optional<int64_t> count = ParsePositive(*devices);
    if (!count) return BadAnnotation(PodKey::kKaiDevices, "whole number of GPUs above 0", *devices);
    ask.count = *count;
  }
  if (std::optional<Refusal> refusal = ReadKaiShare(annotations, ask)) return refusal;
  request.asks.push_back(ask);
  return std::nullopt;
}

}  // namespace tranche::wire
