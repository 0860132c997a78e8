#include "scheduler/wire/pod_dialects.h"

#include <fmt/format.h>

#include "scheduler/wire/json.h"

namespace tranche::wire {
namespace {

// KAI and open-gpu-share speak through annotations alone. Source: request-dialects section 2.
bool IsForeignAnnotation(std::string_view key) {
  return key == "gpu-fraction" || key == "gpu-memory" || key == "gpu-fraction-num-devices" ||
         key.starts_with("alibabacloud.com/gpu-");
}

}  // namespace

void PodAnnotations::Set(std::string_view key, std::optional<std::string_view> value) {
  for (std::size_t i = 0; i < kPodKeys.size(); ++i) {
    if (kPodKeys[i] == key) {
      values_[i] = value;
      return;
    }
  }
  if (value && foreign_.empty() && IsForeignAnnotation(key)) foreign_ = key;
}

Refusal MixedDialects(std::string_view one, std::string_view other) {
  return {Reason::kMixedDialects,
          fmt::format("expected keys of one request style, found {} and {}, in the pod",
                      Quoted(one), Quoted(other))};
}

Refusal BadAnnotation(PodKey key, std::string_view expected, std::string_view found) {
  return {Reason::kBadAmount, fmt::format("expected {}, found {}, in annotation {}", expected,
                                          Quoted(found), PodAnnotations::KeyName(key))};
}

}  // namespace tranche::wire
