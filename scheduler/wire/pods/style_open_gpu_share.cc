// open-gpu-share's annotations: thousandths of each of several GPUs, by model.
// Source: request-dialects section 13 (hkust-adsl/kubernetes-scheduler-simulator).
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

constexpr int64_t kMilli = 1000;

// "V100M16|V100M32": either.
std::optional<Refusal> ReadModelList(const PodAnnotations& annotations, PodRequest& request) {
  const std::optional<std::string_view> models = annotations.Get(PodKey::kOpenModel);
  if (!models || models->empty()) return std::nullopt;
  std::string_view rest = *models;
  while (true) {
    const std::optional<std::string_view> before = TakeUntil(rest, '|');
    const std::string_view model = Trimmed(before.value_or(rest));
    if (model.empty()) {
      return BadAnnotation(PodKey::kOpenModel, "model names with | between them, none empty",
                           *models);
    }
    request.models_any.push_back(LowerCase(model));
    if (!before) return std::nullopt;
  }
}

}  // namespace

std::optional<Refusal> ReadOpenGpuShare(const PodText& text, PodRequest& request) {
  const PodAnnotations& annotations = text.annotations;
  const std::string_view milli_text = annotations.Get(PodKey::kOpenMilli).value_or("");
  const std::optional<int64_t> milli = ParsePositive(milli_text);
  if (!milli || *milli > kMilli) {
    return BadAnnotation(PodKey::kOpenMilli, "whole number from 1 to 1000", milli_text);
  }
  const std::string_view count_text = annotations.Get(PodKey::kOpenCount).value_or("1");
  const std::optional<int64_t> count = ParsePositive(count_text);
  if (!count) return BadAnnotation(PodKey::kOpenCount, "whole number of GPUs above 0", count_text);
  const std::optional<int> container = FindContainer(request, std::nullopt);
  if (!container) {
    return BadAnnotation(PodKey::kOpenMilli, "a container in the pod to give it to", milli_text);
  }
  request.asks.push_back(
      *milli == kMilli
          ? CardsOf(*container, *count)
          : ShareOf(*container, *count, {MemoryNeed::Kind::kMilliOfCard, *milli}, *milli));
  return ReadModelList(annotations, request);
}

}  // namespace tranche::wire
