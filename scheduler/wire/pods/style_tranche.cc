// Tranche's annotations: tranche.dev/gpu-fraction or tranche.dev/gpu-memory of one container.
// Source: DESIGN section 9.
#include <fmt/format.h>

#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

// "0.5" -> 500. Nothing but "0." and one to three digits, not all zero.
std::optional<int64_t> ParseFraction(std::string_view text) {
  constexpr std::size_t kMaxDecimals = 3;
  if (!text.starts_with("0.")) return std::nullopt;
  text.remove_prefix(2);
  if (text.empty() || text.size() > kMaxDecimals) return std::nullopt;
  int64_t milli = 0;
  for (std::size_t i = 0; i < kMaxDecimals; ++i) {
    const char digit = i < text.size() ? text[i] : '0';
    if (digit < '0' || digit > '9') return std::nullopt;
    milli = milli * 10 + (digit - '0');
  }
  return milli > 0 ? std::optional(milli) : std::nullopt;
}

std::optional<Refusal> ReadShare(const PodAnnotations& annotations, Ask& ask) {
  const std::optional<std::string_view> fraction = annotations.Get(PodKey::kGpuFraction);
  const std::optional<std::string_view> memory = annotations.Get(PodKey::kGpuMemory);
  if (fraction && memory) {
    return BadAnnotation(PodKey::kGpuMemory, "only one of gpu-fraction and gpu-memory",
                         fmt::format("{} beside {}", *memory, *fraction));
  }
  if (fraction) {
    const std::optional<int64_t> milli = ParseFraction(*fraction);
    if (!milli) {
      return BadAnnotation(PodKey::kGpuFraction, "decimal between 0 and 1 with 1 to 3 places",
                           *fraction);
    }
    ask.compute = MilliGpu::Of(*milli);
    ask.memory = {MemoryNeed::Kind::kMilliOfCard, *milli};
    return std::nullopt;
  }
  if (memory) {
    const std::optional<int64_t> mib = ParsePositive(*memory);
    if (!mib) return BadAnnotation(PodKey::kGpuMemory, "whole number of MiB above 0", *memory);
    ask.memory = {MemoryNeed::Kind::kMib, *mib};
    return std::nullopt;
  }
  return BadAnnotation(PodKey::kGpuCount, "gpu-fraction or gpu-memory beside it",
                       annotations.Get(PodKey::kGpuCount).value_or(""));
}

// The annotation that made the pod one of this style.
std::string_view Trigger(const PodAnnotations& annotations) {
  for (const auto& [style, key] : kStyleKeys) {
    if (style == RequestStyle::kTranche && annotations.Get(key))
      return PodAnnotations::KeyName(key);
  }
  return {};
}

}  // namespace

std::optional<Refusal> ReadTranche(const PodText& text, PodRequest& request) {
  const PodAnnotations& annotations = text.annotations;
  const std::optional<int> container = FindContainer(request, annotations.Get(PodKey::kContainer));
  if (!container) {
    return BadAnnotation(PodKey::kContainer, "name of a container of the pod",
                         annotations.Get(PodKey::kContainer).value_or(""));
  }
  const Amount* const elsewhere = FindAmount(text, [&](const Amount& amount) {
    return amount.kind == AmountKind::kGpu && amount.container != *container;
  });
  if (elsewhere != nullptr) return MixedStyles(Trigger(annotations), elsewhere->key);
  Ask ask;
  ask.container = *container;
  ask.resource = Resource::kShare;
  ask.count = 1;
  if (const std::optional<std::string_view> count = annotations.Get(PodKey::kGpuCount)) {
    const std::optional<int64_t> cards = ParsePositive(*count);
    if (!cards) return BadAnnotation(PodKey::kGpuCount, "whole number of GPUs above 0", *count);
    ask.count = *cards;
  }
  if (std::optional<Refusal> refusal = ReadShare(annotations, ask)) return refusal;
  const int64_t limit = request.containers[static_cast<std::size_t>(*container)].plugin_count;
  if (limit != 0 && limit != ask.count) {
    return Refusal{
        Reason::kBadAmount,
        fmt::format("expected {} equal to {}, found \"{}\" and \"{}\", in container {}", kGpuKey,
                    PodAnnotations::KeyName(PodKey::kGpuCount), limit, ask.count,
                    Quoted(request.containers[static_cast<std::size_t>(*container)].name))};
  }
  request.asks.push_back(std::move(ask));
  return std::nullopt;
}

}  // namespace tranche::wire
