// Annotations that choose among nodes and cards: models, UUIDs, memory, NUMA, mode and policies.
// Source: request-dialects section 4.1, DESIGN section 9.
#include <fmt/format.h>

#include "scheduler/wire/pod_dialects.h"
#include "scheduler/wire/text_fields.h"

namespace tranche::wire {
namespace {

constexpr Millis kMaxRuntime = std::chrono::hours(366 * 24);
constexpr std::size_t kMaxGangName = 253;
constexpr int64_t kMaxGangSize = 10'000;

// The entries of a HAMi list, which may have empty ones; those choose nothing.
std::vector<std::string> Entries(std::optional<std::string_view> list, bool lower_case) {
  std::vector<std::string> entries;
  if (!list) return entries;
  for (const std::string_view entry : SplitList(*list)) {
    if (!entry.empty()) entries.push_back(lower_case ? LowerCase(entry) : std::string(entry));
  }
  return entries;
}

std::optional<Refusal> ReadModels(const PodAnnotations& annotations, PodRequest& request) {
  const std::optional<std::string_view> model = annotations.Get(PodKey::kModel);
  const std::optional<std::string_view> hami_type = annotations.Get(PodKey::kUseType);
  // Each alone is a list of alternatives; both would have to hold at once, which one list of
  // alternatives cannot say.
  if (model && hami_type) {
    return MixedDialects(PodAnnotations::KeyName(PodKey::kModel),
                         PodAnnotations::KeyName(PodKey::kUseType));
  }
  request.models_any = Entries(hami_type, true);
  request.models_none = Entries(annotations.Get(PodKey::kNoUseType), true);
  if (!model) return std::nullopt;
  for (const std::string_view entry : SplitList(*model)) {
    if (entry.empty()) {
      return BadAnnotation(PodKey::kModel, "comma list of model names, none empty", *model);
    }
    request.models_any.push_back(LowerCase(entry));
  }
  return std::nullopt;
}

// What Go's strconv.ParseBool takes, since HAMi reads the value with it.
std::optional<bool> ParseGoBool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False", ""}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::optional<Refusal> ReadAgentWishes(const PodAnnotations& annotations, PodRequest& request) {
  if (const std::optional<std::string_view> bind = annotations.Get(PodKey::kNumaBind)) {
    const std::optional<bool> wanted = ParseGoBool(*bind);
    if (!wanted) return BadAnnotation(PodKey::kNumaBind, "true or false", *bind);
    request.one_numa_node = *wanted;
  }
  if (const std::optional<std::string_view> mode = annotations.Get(PodKey::kVgpuMode)) {
    if (!mode->empty() && *mode != "hami-core" && *mode != "mig" && *mode != "mps") {
      return BadAnnotation(PodKey::kVgpuMode, "hami-core, mig or mps", *mode);
    }
    request.vgpu_mode = *mode;
  }
  return std::nullopt;
}

std::optional<Refusal> ReadNodePolicy(const PodAnnotations& annotations, PodRequest& request) {
  const std::optional<std::string_view> policy = annotations.Get(PodKey::kNodePolicy);
  if (!policy || policy->empty()) return std::nullopt;
  if (*policy == "binpack") {
    request.strategy = Strategy::kBestFit;
  } else if (*policy == "spread") {
    request.strategy = Strategy::kSpread;
  } else {
    return BadAnnotation(PodKey::kNodePolicy, "binpack or spread", *policy);
  }
  return std::nullopt;
}

// A chain such as "binpack,numa": mutex forbids cards and so wins over wishes; among wishes the
// first wins.
std::optional<Refusal> ReadCardPolicy(const PodAnnotations& annotations, PodRequest& request) {
  const std::optional<std::string_view> chain = annotations.Get(PodKey::kCardPolicy);
  if (!chain || chain->empty()) return std::nullopt;
  for (const std::string_view policy : SplitList(*chain)) {
    if (policy == "mutex") {
      request.card_choice = CardChoice::kIdleOnly;
    } else if (policy == "binpack" || policy == "spread") {
      if (request.card_choice == CardChoice::kStrategy) {
        request.card_choice = policy == "binpack" ? CardChoice::kTightest : CardChoice::kLoosest;
      }
    } else if (policy != "topology-aware" && policy != "numa") {
      return BadAnnotation(PodKey::kCardPolicy,
                           "comma list of binpack, spread, mutex, topology-aware and numa", *chain);
    }
  }
  return std::nullopt;
}

std::optional<Refusal> ReadMinMemory(const PodAnnotations& annotations, PodRequest& request) {
  const std::optional<std::string_view> text = annotations.Get(PodKey::kMinGpuMemory);
  if (!text) return std::nullopt;
  const std::optional<int64_t> mib = ParsePlainInteger(*text);
  if (!mib || *mib < 1 || *mib > kMaxAmount) {
    return BadAnnotation(PodKey::kMinGpuMemory, "whole number of MiB above 0", *text);
  }
  request.min_gpu_memory = Mebibytes::Of(*mib);
  return std::nullopt;
}

std::optional<Refusal> ReadRuntime(const PodAnnotations& annotations, PodRequest& request) {
  const std::optional<std::string_view> text = annotations.Get(PodKey::kExpectedRuntime);
  if (!text) return std::nullopt;
  request.expected_runtime = ParseDuration(*text, kMaxRuntime);
  if (request.expected_runtime && *request.expected_runtime > Millis::zero()) return std::nullopt;
  return BadAnnotation(PodKey::kExpectedRuntime, "duration such as 1h30m, above 0 and up to 8784h",
                       *text);
}

std::optional<Refusal> ReadGang(const PodAnnotations& annotations, PodRequest& request) {
  const std::string_view gang = annotations.Get(PodKey::kGang).value_or("");
  if (gang.size() > kMaxGangName) {
    return BadAnnotation(PodKey::kGang, fmt::format("name of at most {} bytes", kMaxGangName),
                         gang);
  }
  request.gang = gang;
  const std::optional<std::string_view> text = annotations.Get(PodKey::kGangSize);
  if (!text) return std::nullopt;
  const std::optional<int64_t> size = ParsePlainInteger(*text);
  if (!size || *size < 1 || *size > kMaxGangSize) {
    return BadAnnotation(PodKey::kGangSize,
                         fmt::format("whole number of pods from 1 to {}", kMaxGangSize), *text);
  }
  request.gang_size = static_cast<int>(*size);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ReadSelection(const PodAnnotations& annotations, PodRequest& request) {
  request.uuids_any = Entries(annotations.Get(PodKey::kUseUuid), false);
  request.uuids_none = Entries(annotations.Get(PodKey::kNoUseUuid), false);
  for (const auto read : {ReadModels, ReadAgentWishes, ReadNodePolicy, ReadCardPolicy,
                          ReadMinMemory, ReadRuntime, ReadGang}) {
    if (std::optional<Refusal> refusal = read(annotations, request)) return refusal;
  }
  return std::nullopt;
}

}  // namespace tranche::wire
