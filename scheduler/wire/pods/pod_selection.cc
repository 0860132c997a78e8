// Annotations that choose among nodes and cards: models, UUIDs, memory, NUMA, mode and policies.
// Source: request-dialects sections 4.1, 6 and 10, DESIGN section 9.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

constexpr Millis kMaxRuntime = std::chrono::hours(366 * 24);
constexpr std::size_t kMaxGangName = 253;
constexpr int64_t kMaxGangSize = 10'000;
constexpr int64_t kMostWeight = 1'000'000;

// How entries are kept: a UUID as it is, a model in lower case, a part of its name as "*part*".
enum class Spelling { kKept, kLower, kPart };

// The entries of a HAMi list, which may have empty ones; those choose nothing.
std::vector<std::string> Entries(std::optional<std::string_view> list, Spelling spelling) {
  std::vector<std::string> entries;
  if (!list) return entries;
  for (const std::string_view entry : SplitList(*list)) {
    if (entry.empty()) continue;
    std::string text = spelling == Spelling::kKept ? std::string(entry) : LowerCase(entry);
    entries.push_back(spelling == Spelling::kPart ? "*" + text + "*" : std::move(text));
  }
  return entries;
}

// Each key alone is a list of alternatives; two would have to hold at once, which one list of
// alternatives cannot say. `taken` is the key that has given some already.
std::optional<Refusal> ReadAlternatives(const PodAnnotations& annotations,
                                        std::initializer_list<std::pair<PodKey, Spelling>> keys,
                                        std::optional<PodKey> taken,
                                        std::vector<std::string>& alternatives) {
  for (const auto& [key, spelling] : keys) {
    const std::optional<std::string_view> list = annotations.Get(key);
    if (!list) continue;
    if (taken) {
      return MixedStyles(PodAnnotations::KeyName(*taken), PodAnnotations::KeyName(key));
    }
    taken = key;
    alternatives = Entries(list, spelling);
  }
  return std::nullopt;
}

// What none of the keys may name.
std::vector<std::string> Exclusions(const PodAnnotations& annotations,
                                    std::initializer_list<std::pair<PodKey, Spelling>> keys) {
  std::vector<std::string> all;
  for (const auto& [key, spelling] : keys) {
    for (std::string& entry : Entries(annotations.Get(key), spelling)) {
      all.push_back(std::move(entry));
    }
  }
  return all;
}

std::optional<Refusal> ReadModels(const PodAnnotations& annotations, PodRequest& request) {
  request.models_none = Exclusions(annotations, {{PodKey::kNoUseType, Spelling::kPart},
                                                 {PodKey::kVgpuNoUseType, Spelling::kLower}});
  std::optional<PodKey> taken;
  if (!request.models_any.empty()) {
    taken = request.style == RequestStyle::kHived ? PodKey::kHivedSpec : PodKey::kOpenModel;
  }
  if (auto refusal = ReadAlternatives(annotations,
                                      {{PodKey::kModel, Spelling::kLower},
                                       {PodKey::kUseType, Spelling::kPart},
                                       {PodKey::kVgpuUseType, Spelling::kLower}},
                                      taken, request.models_any)) {
    return refusal;
  }
  const std::optional<std::string_view> model = annotations.Get(PodKey::kModel);
  if (!model) return std::nullopt;
  for (const std::string_view entry : SplitList(*model)) {
    if (entry.empty()) {
      return BadAnnotation(PodKey::kModel, "comma list of model names, none empty", *model);
    }
  }
  return std::nullopt;
}

std::optional<Refusal> ReadUuids(const PodAnnotations& annotations, PodRequest& request) {
  constexpr Spelling kKept = Spelling::kKept;
  request.uuids_none = Exclusions(annotations, {{PodKey::kNoUseUuid, kKept},
                                                {PodKey::kVolcanoNoUseUuid, kKept},
                                                {PodKey::kVgpuNoUseUuid, kKept}});
  return ReadAlternatives(
      annotations,
      {{PodKey::kUseUuid, kKept}, {PodKey::kVolcanoUseUuid, kKept}, {PodKey::kVgpuUseUuid, kKept}},
      std::nullopt, request.uuids_any);
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
  for (const PodKey key : {PodKey::kVgpuMode, PodKey::kVolcanoMode}) {
    const std::optional<std::string_view> mode = annotations.Get(key);
    if (!mode || mode->empty()) continue;
    if (*mode != "hami-core" && *mode != "mig" && *mode != "mps") {
      return BadAnnotation(key, "hami-core, mig or mps", *mode);
    }
    if (!request.vgpu_mode.empty() && request.vgpu_mode != *mode) {
      return MixedStyles(PodAnnotations::KeyName(PodKey::kVgpuMode), PodAnnotations::KeyName(key));
    }
    request.vgpu_mode = *mode;
  }
  return std::nullopt;
}

std::optional<Refusal> ReadNodePolicy(const PodAnnotations& annotations, PodRequest& request) {
  for (const PodKey key : {PodKey::kNodePolicy, PodKey::kVgpuNodePolicy}) {
    const std::optional<std::string_view> policy = annotations.Get(key);
    if (!policy || policy->empty()) continue;
    if (*policy != "binpack" && *policy != "spread") {
      return BadAnnotation(key, "binpack or spread", *policy);
    }
    const Strategy strategy = *policy == "binpack" ? Strategy::kBestFit : Strategy::kSpread;
    if (request.strategy && *request.strategy != strategy) {
      return MixedStyles(PodAnnotations::KeyName(PodKey::kNodePolicy),
                         PodAnnotations::KeyName(key));
    }
    request.strategy = strategy;
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
    } else if (policy == "topology-aware") {
      if (!request.topology) request.topology = TopologyWish::kPreferred;
    } else if (policy != "numa") {
      return BadAnnotation(PodKey::kCardPolicy,
                           "comma list of binpack, spread, mutex, topology-aware and numa", *chain);
    }
  }
  return std::nullopt;
}

// "slot=1,core=1,memory=3", all three of them. HAMi takes the emptiest card where no policy is
// named, and so do its pods here that weigh.
std::optional<Refusal> ReadCardWeights(const PodAnnotations& annotations, PodRequest& request) {
  const std::optional<std::string_view> text = annotations.Get(PodKey::kCardWeights);
  if (!text) return std::nullopt;
  const auto refused = [&] {
    return BadAnnotation(PodKey::kCardWeights,
                         fmt::format("slot=N,core=N,memory=N with whole numbers up to {}, one of "
                                     "them above 0",
                                     kMostWeight),
                         *text);
  };
  std::map<std::string_view, int64_t> weights;
  for (const std::string_view entry : SplitList(*text)) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = Trimmed(entry.substr(0, equals));
    const std::string_view value =
        Trimmed(equals == entry.size() ? std::string_view() : entry.substr(equals + 1));
    const std::optional<int64_t> number = ParsePlainInteger(value);
    const bool known = name == "slot" || name == "core" || name == "memory";
    if (!known || !number || *number < 0 || *number > kMostWeight ||
        !weights.emplace(name, *number).second) {
      return refused();
    }
  }
  if (weights.size() != 3) return refused();
  request.card_weights = CardWeights{weights["slot"], weights["core"], weights["memory"]};
  if (*request.card_weights == CardWeights()) return refused();
  if (request.card_choice == CardChoice::kStrategy) request.card_choice = CardChoice::kLoosest;
  return std::nullopt;
}

// vgpu-manager's words. Without "-strict" its modes are wishes that may be left unfulfilled.
std::optional<Refusal> ReadVgpuManagerWishes(const PodAnnotations& annotations,
                                             PodRequest& request) {
  const std::string_view policy = annotations.Get(PodKey::kVgpuCardPolicy).value_or("");
  if (policy == "binpack") {
    request.card_choice = CardChoice::kTightest;
  } else if (policy == "spread") {
    request.card_choice = CardChoice::kLoosest;
  } else if (!policy.empty()) {
    return BadAnnotation(PodKey::kVgpuCardPolicy, "binpack or spread", policy);
  }
  const std::string_view mode = annotations.Get(PodKey::kVgpuTopology).value_or("");
  if (mode == "numa-strict") {
    request.one_numa_node = true;
  } else if (mode == "link-strict") {
    request.topology = TopologyWish::kRequired;
  } else if (mode == "numa" || mode == "link") {
    request.topology = TopologyWish::kPreferred;
  } else if (!mode.empty() && mode != "none") {
    return BadAnnotation(PodKey::kVgpuTopology, "numa, numa-strict, link, link-strict or none",
                         mode);
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

template <typename Value>
struct Word {
  std::string_view word;
  Value value;
};

// One of the words, into `value`; `expected` as the error shall say it.
template <typename Value, std::size_t kWords>
std::optional<Refusal> ReadWord(const PodAnnotations& annotations, PodKey key,
                                const Word<Value> (&words)[kWords], std::string_view expected,
                                std::optional<Value>& value) {
  const std::optional<std::string_view> text = annotations.Get(key);
  if (!text) return std::nullopt;
  for (const auto& [word, meaning] : words) {
    if (*text != word) continue;
    value = meaning;
    return std::nullopt;
  }
  return BadAnnotation(key, expected, *text);
}

// How the pod's cards must be connected, to each other and to NICs.
std::optional<Refusal> ReadLinks(const PodAnnotations& annotations, PodRequest& request) {
  static constexpr Word<TopologyWish> kWishes[] = {{"required", TopologyWish::kRequired},
                                                   {"preferred", TopologyWish::kPreferred},
                                                   {"none", TopologyWish::kNone}};
  static constexpr Word<PathClass> kPaths[] = {{"pix", PathClass::kPix},
                                               {"pxb", PathClass::kPxb},
                                               {"phb", PathClass::kPhb},
                                               {"node", PathClass::kNode}};
  static constexpr Word<bool> kNumaWishes[] = {{"single", true}};
  if (auto refusal = ReadWord(annotations, PodKey::kTopology, kWishes,
                              "required, preferred or none", request.topology)) {
    return refusal;
  }
  if (auto refusal =
          ReadWord(annotations, PodKey::kNic, kPaths, "pix, pxb, phb or node", request.nic_floor)) {
    return refusal;
  }
  std::optional<bool> one_numa_node;
  if (auto refusal = ReadWord(annotations, PodKey::kNuma, kNumaWishes, "single", one_numa_node)) {
    return refusal;
  }
  request.one_numa_node |= one_numa_node.value_or(false);
  const std::optional<std::string_view> floor = annotations.Get(PodKey::kMinLink);
  if (!floor) return std::nullopt;
  request.link_floor = ParseLinkFloor(*floor);
  if (request.link_floor) return std::nullopt;
  return BadAnnotation(PodKey::kMinLink, "nvlink, nv2 (or more links), pix, pxb, phb or node",
                       *floor);
}

// A number of pods; nullopt and no refusal where the annotation is absent.
std::optional<Refusal> ReadPodNumber(const PodAnnotations& annotations, PodKey key, int64_t least,
                                     std::optional<int>& number) {
  const std::optional<std::string_view> text = annotations.Get(key);
  if (!text) return std::nullopt;
  const std::optional<int64_t> value = ParsePlainInteger(*text);
  if (!value || *value < least || *value > kMaxGangSize) {
    return BadAnnotation(
        key, fmt::format("whole number of pods from {} to {}", least, kMaxGangSize), *text);
  }
  number = static_cast<int>(*value);
  return std::nullopt;
}

}  // namespace

// Our own words come before those of other controllers.
std::optional<Refusal> ReadGang(const PodAnnotations& annotations, PodRequest& request) {
  static constexpr Word<GangLevel> kLevels[] = {{"clique", GangLevel::kClique},
                                                {"rack", GangLevel::kRack},
                                                {"block", GangLevel::kBlock},
                                                {"zone", GangLevel::kZone}};
  if (auto refusal = ReadWord(annotations, PodKey::kGangWithin, kLevels,
                              "clique, rack, block or zone", request.gang_within)) {
    return refusal;
  }
  const std::string_view gang = annotations.Get(PodKey::kGang).value_or("");
  if (gang.size() > kMaxGangName) {
    return BadAnnotation(PodKey::kGang, fmt::format("name of at most {} bytes", kMaxGangName),
                         gang);
  }
  if (!gang.empty()) {
    request.gang = gang;
    request.gang_size = 0;
  }
  std::optional<int> size, rank;
  if (auto refusal = ReadPodNumber(annotations, PodKey::kGangSize, 1, size)) return refusal;
  if (auto refusal = ReadPodNumber(annotations, PodKey::kGangRank, 0, rank)) return refusal;
  request.gang_size = size.value_or(request.gang_size);
  request.gang_rank = rank.value_or(request.gang_rank);
  return std::nullopt;
}

std::optional<Refusal> ReadSelection(const PodAnnotations& annotations, PodRequest& request) {
  for (const auto read :
       {ReadUuids, ReadModels, ReadAgentWishes, ReadNodePolicy, ReadVgpuManagerWishes,
        ReadCardPolicy, ReadCardWeights, ReadLinks, ReadMinMemory, ReadRuntime, ReadGang}) {
    if (std::optional<Refusal> refusal = read(annotations, request)) return refusal;
  }
  return std::nullopt;
}

}  // namespace tranche::wire
