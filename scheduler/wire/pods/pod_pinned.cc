#include "scheduler/wire/pods/pod_pinned.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/base/quantity.h"

namespace tranche::wire {
namespace {

bool IsSame(Element left, Element right) {
  if (AmountText(left) == AmountText(right)) return true;
  const auto one = ParseMilliQuantity(AmountText(left));
  const auto other = ParseMilliQuantity(AmountText(right));
  return one.ok() && other.ok() && *one == *other;
}

// A limit, and a request that is absent (the API then sets it to the limit) or equal.
bool IsHeld(const std::optional<Object>& limits, const std::optional<Object>& requests,
            std::string_view key) {
  if (!limits) return false;
  const std::optional<Element> limit = Find(*limits, key);
  if (!limit || AmountText(*limit) == "0") return false;
  const std::optional<Element> request = requests ? Find(*requests, key) : std::optional<Element>();
  return !request || IsSame(*limit, *request);
}

constexpr std::string_view kThreads = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
constexpr std::string_view kMemory = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
constexpr std::size_t kMostOwnText = 4096;
constexpr std::size_t kMostDigits = 9;

// Takes at most kMostDigits digits off the front; nullopt: none is there, or more are.
std::optional<int64_t> TakeWhole(std::string_view& text) {
  std::size_t digits = 0;
  int64_t number = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits == kMostDigits) return std::nullopt;
    number = number * 10 + (text[digits++] - '0');
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

// "25", "33.3"; thousandths, of longer fractions what is beyond is cut off.
std::optional<MilliGpu> ThreadsOf(std::string_view text) {
  const std::optional<int64_t> percent = TakeWhole(text);
  int64_t tenth = 0;
  if (percent && text.starts_with('.')) {
    text.remove_prefix(1);
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    tenth = text.front() - '0';
    if (!TakeWhole(text)) return std::nullopt;
  }
  if (!percent || !text.empty() || *percent > 100) return std::nullopt;
  const int64_t milli = *percent * 10 + tenth;
  if (milli < 1 || milli > kWholeGpu.count()) return std::nullopt;
  return MilliGpu::Of(milli);
}

// "10G", "2500M", "2500MB"; rounded up to MiB.
std::optional<Mebibytes> AmountOf(std::string_view text) {
  constexpr int64_t kStep = 1024;
  const std::optional<int64_t> number = TakeWhole(text);
  if (!number || *number < 1) return std::nullopt;
  if (text == "G" || text == "GB") return Mebibytes::Of(*number * kStep);
  if (text == "M" || text == "MB") return Mebibytes::Of(*number);
  if (text == "K" || text == "KB") return Mebibytes::Of((*number + kStep - 1) / kStep);
  return std::nullopt;
}

// The largest of "0=10G,1=2500M" or "GPU-...=4000M"; nullopt: it is no such list.
std::optional<Mebibytes> LargestOf(std::string_view text) {
  std::optional<Mebibytes> largest;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
    const std::optional<Mebibytes> amount = AmountOf(item.substr(equals + 1));
    if (!amount) return std::nullopt;
    largest = std::max(largest.value_or(Mebibytes::Zero()), *amount);
  }
  return largest;
}

// One of the two variables. Of several of one name the last counts, as it does to the kubelet.
void ReadOwnLimit(Object variable, std::string_view name, OwnLimits& own) {
  const bool threads = name == kThreads;
  const std::optional<std::string_view> value = FindText(variable, "value");
  const std::string_view text = value.value_or("").substr(0, kMostOwnText);
  if (threads) {
    own.threads = ThreadsOf(text);
    if (own.threads) return;
  } else {
    own.memory = LargestOf(text);
    if (own.memory) return;
  }
  own.problem = fmt::format("expected {}, found {}, in {}",
                            threads ? "a percentage of 0.1 to 100" : "DEVICE=AMOUNT with K, M or G",
                            value ? Quoted(text) : "no value in the pod", name);
}

}  // namespace

void ReadOwnLimits(Object spec, PodRequest& request) {
  int index = -1;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const std::optional<Array> containers = FindArray(spec, list);
    if (!containers) continue;
    for (const Element element : *containers) {
      ++index;
      Object container;
      if (element.get(container) != simdjson::SUCCESS) continue;
      const std::optional<Array> env = FindArray(container, "env");
      if (!env) continue;
      OwnLimits own;
      bool any = false;
      for (const Element item : *env) {
        Object variable;
        if (item.get(variable) != simdjson::SUCCESS) continue;
        const std::string_view name = FindText(variable, "name").value_or("");
        if (name != kThreads && name != kMemory) continue;
        any = true;
        ReadOwnLimit(variable, name, own);
      }
      own.container = index;
      // In a list that could not be read to its end there are more than were taken.
      const bool taken = static_cast<std::size_t>(index) < request.containers.size();
      if (any && taken) request.own_limits.push_back(std::move(own));
    }
  }
}

MilliCpu PinnedCpu(const std::optional<Object>& resources, FieldReader& reader, bool& guaranteed) {
  if (!guaranteed || !resources) {
    guaranteed = false;
    return MilliCpu::Zero();
  }
  const std::optional<Object> limits = reader.ReadObject(*resources, "limits", "resources");
  const std::optional<Object> requests = reader.ReadObject(*resources, "requests", "resources");
  guaranteed = IsHeld(limits, requests, "cpu") && IsHeld(limits, requests, "memory");
  if (!guaranteed) return MilliCpu::Zero();
  const MilliCpu cpu = CpuAmount(*Find(*limits, "cpu")).value_or(MilliCpu::Zero());
  return cpu.count() % 1000 == 0 ? cpu : MilliCpu::Zero();
}

}  // namespace tranche::wire
