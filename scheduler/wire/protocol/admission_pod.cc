#include "scheduler/wire/protocol/admission_pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "scheduler/wire/agents/agents.h"
#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/pods/request_styles.h"
#include "scheduler/wire/records/placeholder_pod.h"
#include "topology/base/quantity.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kAnnotations = "/metadata/annotations";
constexpr std::string_view kFractionKey = "tranche.dev/gpu-fraction";
constexpr std::string_view kMemoryKey = "tranche.dev/gpu-memory";
constexpr std::string_view kContainerKey = "tranche.dev/container";
constexpr std::string_view kDefaultScheduler = "default-scheduler";
constexpr std::array<std::string_view, 2> kLists = {"initContainers", "containers"};
constexpr std::array<std::string_view, 2> kSides = {"limits", "requests"};

// The count that an agent's device plugin is called for, and what asks for a part of a card.
struct CountedShares {
  std::string_view count;
  PodMutation::Keys parts;
};
constexpr CountedShares kHamiShares = {
    kGpuKey, {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}};
// Nothing but their agents knows these counts: one is right whatever the node has.
constexpr std::array kVgpuShares = {
    CountedShares{
        "volcano.sh/vgpu-number",
        {"volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"}},
    CountedShares{"nvidia.com/vgpu-number",
                  {"nvidia.com/vgpu-memory", "nvidia.com/vgpu-cores", ""}},
};

// Thousandths of a quantity between 0 and 1, exclusive; nullopt where it has finer parts than that,
// or is none.
std::optional<int64_t> FractionOf(Element value) {
  const std::string text =
      value.is_string() ? std::string(std::string_view(value)) : AmountText(value);
  if (text.empty() || ((text[0] < '0' || text[0] > '9') && text[0] != '.')) return std::nullopt;
  const absl::StatusOr<int64_t> up = ParseMilliQuantity(text);
  // Amounts below zero are cut, others rounded up: equal only where nothing was lost.
  const absl::StatusOr<int64_t> down = ParseMilliQuantity("-" + text);
  constexpr int64_t kOne = 1'000;
  if (!up.ok() || !down.ok() || *up != -*down || *up <= 0 || *up >= kOne) return std::nullopt;
  return *up;
}

// "0.5", "1.125": no digits that say nothing.
std::string FormatMilli(int64_t milli) {
  constexpr int64_t kOne = 1'000;
  std::string text = fmt::format("{}.{:03}", milli / kOne, milli % kOne);
  while (text.back() == '0') text.pop_back();
  return text;
}

// The API server sends 1500m where its user wrote 1.5.
std::string Shown(Element value) {
  const std::string text = AmountText(value);
  const absl::StatusOr<int64_t> milli = ParseMilliQuantity(text);
  if (!text.ends_with('m') || !milli.ok() || *milli <= 0) return Quoted(text);
  return fmt::format("{} ({})", Quoted(text), FormatMilli(*milli));
}

std::string_view NameOf(Object container) { return FindText(container, "name").value_or(""); }

// The annotations that count: of equal keys the last one, null is none.
std::map<std::string_view, std::string_view> ResultsOf(Object pod) {
  std::map<std::string_view, std::string_view> results;
  const std::optional<Object> metadata = FindObject(pod, "metadata");
  const std::optional<Object> all = metadata ? FindObject(*metadata, "annotations") : std::nullopt;
  if (!all) return results;
  for (const auto field : *all) {
    if (!IsResultKey(field.key)) continue;
    results.erase(field.key);
    if (field.value.is_string()) results[field.key] = std::string_view(field.value);
  }
  return results;
}

// Asks for a part of a card, and not for how many.
bool IsUncountedShare(Object resources, std::string_view count, const PodMutation::Keys& parts) {
  bool shares = false;
  for (const std::string_view side : kSides) {
    const std::optional<Object> amounts = FindObject(resources, side);
    if (!amounts) continue;
    if (Find(*amounts, count)) return false;
    for (const std::string_view key : parts) {
      const std::optional<Element> value = Find(*amounts, key);
      shares |= value && WholeAmount(*value).value_or(0) > 0;
    }
  }
  return shares;
}

// A container's amounts of a part of a card, and where they stand.
struct Movable {
  std::map<std::string_view, std::string> amounts;
  std::vector<std::string> paths;
};

// nullopt: what is there is for those to judge who read the pod.
std::optional<Movable> HamiLimitsOf(Object resources, const std::string& path) {
  Movable movable;
  for (const std::string_view side : kSides) {
    const std::optional<Object> amounts = FindObject(resources, side);
    if (!amounts) continue;
    for (const std::string_view key : kHamiShares.parts) {
      const std::optional<Element> value = Find(*amounts, key);
      if (!value) continue;
      if (!IsQuantityType(*value) || !WholeAmount(*value)) return std::nullopt;
      const auto [at, fresh] = movable.amounts.emplace(key, AmountText(*value));
      if (!fresh && at->second != AmountText(*value)) return std::nullopt;
      std::string place = path;
      AppendPointer(place, side);
      AppendPointer(place, key);
      movable.paths.push_back(std::move(place));
    }
  }
  return movable;
}

// The kubelet calls HAMi's plugin for the container, as it is or once the webhook has given it one.
bool HasCount(Object resources, const MutationRules& rules) {
  for (const std::string_view side : kSides) {
    const std::optional<Object> amounts = FindObject(resources, side);
    const std::optional<Element> count = amounts ? Find(*amounts, kGpuKey) : std::nullopt;
    if (count) return IsQuantityType(*count) && WholeAmount(*count).value_or(0) > 0;
  }
  return rules.count_hami_shares && IsUncountedShare(resources, kGpuKey, kHamiShares.parts);
}

}  // namespace

struct PodMutation::PodContainer {
  Object container;
  std::string path;        // in a patch
  bool first_app = false;  // of those that are no init containers
};

template <typename Work>
void PodMutation::ForEachContainer(Work work) const {
  for (const std::string_view list : kLists) {
    const std::optional<Array> containers = FindArray(*spec_, list);
    if (!containers) continue;
    std::size_t position = 0;
    for (const Element element : *containers) {
      PodContainer one;
      one.path = fmt::format("/spec/{}/{}", list, position);
      one.first_app = list == kLists[1] && position == 0;
      ++position;
      if (element.get(one.container) == simdjson::SUCCESS) work(one);
    }
  }
}

struct PodMutation::Fraction {
  std::string_view container;
  bool first_app = false;
  Element value;  // as it is written
  int64_t milli = 0;
};

PodMutation::PodMutation(Object pod, const MutationRules& rules)
    : pod_(pod), rules_(rules), spec_(FindObject(pod, "spec")) {
  if (const std::optional<Object> metadata = FindObject(pod, "metadata")) {
    annotations_ = FindObject(*metadata, "annotations");
  }
  if (rules.strip_results) StripResults();
  if (!spec_) return;
  RewriteFractions();
  if (refusal_) return;
  if (rules.count_hami_shares) CountShares(kHamiShares.count, kHamiShares.parts);
  // Another scheduler has rules of its own for counts that are missing.
  if (!is_ours() || !FindText(*spec_, "nodeName").value_or("").empty()) return;
  for (const CountedShares& shares : kVgpuShares) CountShares(shares.count, shares.parts);
  if (rules.move_hami_limits) MoveHamiLimits();
}

void PodMutation::StripResults() {
  for (const auto& [key, value] : ResultsOf(pod_)) {
    std::string path(kAnnotations);
    AppendPointer(path, key);
    patch_.Remove(path);
    warnings_.push_back(fmt::format(
        "annotation {} was taken away: schedulers and node agents write it, users do not", key));
  }
}

void PodMutation::RewriteFractions() {
  std::optional<Fraction> found;
  ForEachContainer([&](const PodContainer& one) {
    if (!refusal_) ReadFraction(one, found);
  });
  if (found && !refusal_) WriteFraction(*found);
}

void PodMutation::ReadFraction(const PodContainer& one, std::optional<Fraction>& found) {
  const std::optional<Object> resources = FindObject(one.container, "resources");
  if (!resources) return;
  std::optional<Fraction> own;
  std::optional<Element> whole;
  for (const std::string_view side : kSides) {
    const std::optional<Object> amounts = FindObject(*resources, side);
    const std::optional<Element> value = amounts ? Find(*amounts, kGpuKey) : std::nullopt;
    if (!value || !IsQuantityType(*value)) continue;
    if (WholeAmount(*value)) {
      whole = value;
      continue;
    }
    const std::optional<int64_t> milli = FractionOf(*value);
    if (!milli) {
      refusal_ = fmt::format(
          "expected a whole number of GPUs, or a part of one as a decimal between 0 and 1 with at "
          "most 3 places, found {}, in {} of container {}",
          Shown(*value), kGpuKey, Quoted(NameOf(one.container)));
      return;
    }
    if (own && own->milli != *milli) whole = value;
    if (!own) own = Fraction{NameOf(one.container), one.first_app, *value, *milli};
    std::string path = one.path + "/resources";
    AppendPointer(path, side);
    AppendPointer(path, kGpuKey);
    if (rules_.count_hami_shares) {
      patch_.Add(path, "1");
    } else {
      patch_.Remove(path);
    }
  }
  if (!own) return;
  if (whole) {
    refusal_ =
        fmt::format("expected equal limits and requests, found {} and {}, in {} of container {}",
                    Shown(own->value), Shown(*whole), kGpuKey, Quoted(own->container));
  } else if (found) {
    refusal_ = fmt::format(
        "expected a part of a GPU in one container of the pod, found {} in container {} and {} in "
        "container {}",
        Shown(found->value), Quoted(found->container), Shown(own->value), Quoted(own->container));
  } else {
    found = own;
  }
}

void PodMutation::WriteFraction(const Fraction& fraction) {
  const std::string text = FormatMilli(fraction.milli);
  const std::string container(fraction.first_app ? "" : fraction.container);
  const auto written = [this](std::string_view key) {
    return annotations_ ? FindText(*annotations_, key) : std::nullopt;
  };
  for (const auto& [key, wanted] :
       {std::pair(kFractionKey, text), std::pair(kMemoryKey, std::string()),
        std::pair(kContainerKey, std::string(fraction.container))}) {
    const std::optional<std::string_view> other = written(key);
    if (!other || *other == wanted) continue;
    refusal_ = fmt::format(
        "expected a part of a GPU asked for once, found {} in {} of container {} and {} in "
        "annotation {}",
        Shown(fraction.value), kGpuKey, Quoted(fraction.container), Quoted(*other), key);
    return;
  }
  SetAnnotation(kFractionKey, text);
  if (!container.empty()) SetAnnotation(kContainerKey, container);
  changes_request_ = true;
}

void PodMutation::CountShares(std::string_view count, const Keys& parts) {
  ForEachContainer([&](const PodContainer& one) {
    const std::optional<Object> resources = FindObject(one.container, "resources");
    if (!resources || !IsUncountedShare(*resources, count, parts)) return;
    for (const std::string_view side : kSides) {
      std::string amounts = one.path + "/resources";
      AppendPointer(amounts, side);
      const bool there = FindObject(*resources, side).has_value();
      // Requests that are not there the API server takes from the limits.
      if (!there && side != kSides[0]) continue;
      if (!there) patch_.Add(amounts, Json::object());
      AppendPointer(amounts, count);
      patch_.Add(amounts, "1");
    }
    changes_request_ = true;
  });
}

void PodMutation::MoveHamiLimits() {
  const std::string_view key = PodAnnotations::KeyName(PodKey::kHamiLimits);
  if (annotations_ && Find(*annotations_, key)) return;
  Json moved = Json::object();
  std::vector<std::string> left_out;
  bool all = true;  // of the pod's amounts can be moved
  ForEachContainer([&](const PodContainer& one) {
    const std::optional<Object> resources = FindObject(one.container, "resources");
    if (!resources) return;
    const std::optional<Movable> movable = HamiLimitsOf(*resources, one.path + "/resources");
    all = all && movable && (movable->amounts.empty() || HasCount(*resources, rules_));
    if (!all) return;
    for (const auto& [name, amount] : movable->amounts) {
      moved[std::string(NameOf(one.container))][std::string(name)] = amount;
    }
    left_out.insert(left_out.end(), movable->paths.begin(), movable->paths.end());
  });
  if (!all || moved.empty()) return;
  for (const std::string& path : left_out) patch_.Remove(path);
  SetAnnotation(key, moved.dump());
}

void PodMutation::SpareFromAutoscalers() {
  for (const auto& [key, value] :
       {std::pair(PodKey::kDoNotDisrupt, "true"), std::pair(PodKey::kSafeToEvict, "false")}) {
    const std::string_view name = PodAnnotations::KeyName(key);
    if (!annotations_ || !Find(*annotations_, name)) SetAnnotation(name, value);
  }
}

void PodMutation::SetAnnotation(std::string_view key, std::string_view value) {
  if (!annotations_ && !std::exchange(annotations_made_, true))
    patch_.Add(kAnnotations, Json::object());
  std::string path(kAnnotations);
  AppendPointer(path, key);
  patch_.Add(path, value);
}

bool PodMutation::is_ours() const {
  if (!spec_) return false;
  const std::string_view named = FindText(*spec_, "schedulerName").value_or("");
  return IsOurs(named, rules_.scheduler_name) ||
         std::find(rules_.take_over.begin(), rules_.take_over.end(), named) !=
             rules_.take_over.end();
}

void PodMutation::SetScheduler() {
  const std::string_view named = FindText(*spec_, "schedulerName").value_or("");
  if (named == rules_.scheduler_name) return;
  patch_.Add("/spec/schedulerName", rules_.scheduler_name);
  if (IsOurs(named, rules_.scheduler_name)) return;
  warnings_.push_back(fmt::format("spec.schedulerName was {}: {} places the pod instead",
                                  Quoted(named), rules_.scheduler_name));
}

void PodMutation::WarnOfOtherScheduler() {
  if (!spec_) return;
  warnings_.push_back(fmt::format(
      "spec.schedulerName is {}: the pod waits for that scheduler, {} does not place it",
      Quoted(FindText(*spec_, "schedulerName").value_or("")), rules_.scheduler_name));
}

void PodMutation::AddGates(GateSet gates) {
  if (!spec_ || gates.empty()) return;
  bool listed = FindArray(*spec_, "schedulingGates").has_value();
  for (const auto& [gate, wanted] :
       {std::pair(Gate::kQuota, gates.quota), std::pair(Gate::kGang, gates.gang)}) {
    if (!wanted) continue;
    if (!std::exchange(listed, true)) patch_.Add("/spec/schedulingGates", Json::array());
    patch_.Add("/spec/schedulingGates/-", Json{{"name", GateName(gate)}});
  }
}

void PodMutation::ShowDevices(const PodRequest& request) {
  const bool style = request.style == RequestStyle::kTranche || request.style == RequestStyle::kKai;
  if (!style || request.asks.size() != 1 || request.asks[0].resource != Resource::kShare) return;
  const ContainerInfo& info =
      request.containers[static_cast<std::size_t>(request.asks[0].container)];
  if (info.plugin_count > 0) return;
  ForEachContainer([&](const PodContainer& one) {
    if (NameOf(one.container) != info.name) return;
    const std::string path = one.path + "/env";
    const std::optional<Array> env = FindArray(one.container, "env");
    if (env && NamesVisibleDevices(*env)) return;
    if (!env) patch_.Add(path, Json::array());
    patch_.Add(path + "/-", VisibleDevicesEnv());
  });
}

bool IsOurs(std::string_view named, std::string_view scheduler_name) {
  return named.empty() || named == kDefaultScheduler || named == scheduler_name;
}

absl::StatusOr<std::string> ApplyPatch(Element document, std::string_view patch) {
  const std::string text = simdjson::minify(document);
  try {
    const nlohmann::json changed =
        nlohmann::json::parse(text).patch(nlohmann::json::parse(patch.begin(), patch.end()));
    return changed.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

std::optional<Impossible> FindImpossible(const PodFacts& pod) {
  const PodRequest& request = pod.request;
  if (request.refusal) {
    const Reason reason = request.refusal->reason;
    return Impossible{reason,
                      fmt::format("{}: {}", Describe(reason).text, request.refusal->detail)};
  }
  for (std::size_t i = 0; i < request.containers.size(); ++i) {
    int64_t gpus = 0;
    for (const Ask& ask : request.asks) {
      const bool cards = ask.resource == Resource::kGpu || ask.resource == Resource::kShare;
      if (cards && static_cast<std::size_t>(ask.container) == i) gpus += ask.count;
    }
    if (gpus <= kMostGpusOfANode) continue;
    return Impossible{
        Reason::kTooManyPerNode,
        fmt::format("{}: expected at most {} GPUs, which is what a machine has, found \"{}\", in "
                    "container {}",
                    Describe(Reason::kTooManyPerNode).text, kMostGpusOfANode, gpus,
                    Quoted(request.containers[i].name))};
  }
  return std::nullopt;
}

std::string_view FindResultKey(Object pod) {
  const auto results = ResultsOf(pod);
  return results.empty() ? std::string_view() : results.begin()->first;
}

std::string_view FindChangedResult(Object before, Object after) {
  const auto was = ResultsOf(before);
  const auto is = ResultsOf(after);
  for (const auto& [key, value] : is) {
    const auto known = was.find(key);
    if (known == was.end() || known->second != value) return key;
  }
  for (const auto& [key, value] : was) {
    if (!is.contains(key)) return key;
  }
  return {};
}

}  // namespace tranche::wire
