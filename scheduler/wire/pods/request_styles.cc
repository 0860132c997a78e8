#include "scheduler/wire/pods/request_styles.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/text_fields.h"

namespace tranche::wire {
namespace {

constexpr bool IsBefore(std::string_view left, std::string_view right) {
  return std::tuple(left.size(), left) < std::tuple(right.size(), right);
}

constexpr auto kKeyOrder = [] {
  std::array<uint8_t, kPodKeys.size()> order{};
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint8_t>(i);
  std::sort(order.begin(), order.end(),
            [](uint8_t left, uint8_t right) { return IsBefore(kPodKeys[left], kPodKeys[right]); });
  return order;
}();

}  // namespace

void PodAnnotations::Set(std::string_view key, std::optional<std::string_view> value) {
  const auto* const at = std::lower_bound(
      kKeyOrder.begin(), kKeyOrder.end(), key,
      [](uint8_t i, std::string_view text) { return IsBefore(kPodKeys[i], text); });
  if (at != kKeyOrder.end() && kPodKeys[*at] == key) values_[*at] = value;
}

const Amount* ContainerAmounts::Find(AmountKind kind) const {
  for (const Amount* const amount : amounts_) {
    if (amount->kind == kind) return amount;
  }
  return nullptr;
}

int64_t ContainerAmounts::Value(AmountKind kind) const {
  const Amount* const amount = Find(kind);
  return amount == nullptr ? 0 : amount->value;
}

std::vector<ContainerAmounts> ByContainer(const PodText& text, const PodRequest& request,
                                          RequestStyle style) {
  std::vector<ContainerAmounts> containers;
  auto amount = text.amounts.begin();
  while (amount != text.amounts.end() && amount->container != kOverhead) {
    const int index = amount->container;
    ContainerAmounts container(request.containers[static_cast<std::size_t>(index)], index);
    bool asks = false;
    for (; amount != text.amounts.end() && amount->container == index; ++amount) {
      if (StyleOf(amount->kind) != style) continue;
      container.Add(*amount);
      asks |= amount->is_present();
    }
    if (asks) containers.push_back(std::move(container));
  }
  return containers;
}

Refusal MixedStyles(std::string_view one, std::string_view other) {
  return {Reason::kMixedStyles,
          fmt::format("expected keys of one request style, found {} and {}, in the pod",
                      Quoted(one), Quoted(other))};
}

Refusal BadAnnotation(PodKey key, std::string_view expected, std::string_view found) {
  return {Reason::kBadAmount, fmt::format("expected {}, found {}, in annotation {}", expected,
                                          Quoted(found), PodAnnotations::KeyName(key))};
}

Refusal BadAmount(const ContainerAmounts& container, const Amount& amount,
                  std::string_view expected) {
  return {Reason::kBadAmount,
          fmt::format("expected {}, found \"{}\", in {} of container {}", expected, amount.value,
                      Quoted(amount.key), Quoted(container.info().name))};
}

std::optional<Refusal> RefuseSecondContainer(const std::vector<ContainerAmounts>& containers,
                                             std::string_view why) {
  if (containers.size() < 2) return std::nullopt;
  return Refusal{Reason::kAgentCannotServe,
                 fmt::format("expected one container with {}, found {} and {}, in the pod: {}",
                             containers[0].front().key, Quoted(containers[0].info().name),
                             Quoted(containers[1].info().name), why)};
}

std::optional<Refusal> RefuseInitContainers(const std::vector<ContainerAmounts>& containers) {
  for (const ContainerAmounts& container : containers) {
    if (container.info().role == ContainerRole::kApp) continue;
    Refusal refusal = BadAmount(container, container.front(),
                                "no GPUs in init containers, which the agent does not serve");
    refusal.reason = Reason::kAgentCannotServe;
    return refusal;
  }
  return std::nullopt;
}

std::optional<int64_t> ParsePositive(std::string_view text) {
  const std::optional<int64_t> value = ParsePlainInteger(text);
  if (!value || *value < 1 || *value > kMaxAmount) return std::nullopt;
  return value;
}

std::optional<int> FindContainer(const PodRequest& request, std::optional<std::string_view> name) {
  for (std::size_t i = 0; i < request.containers.size(); ++i) {
    const ContainerInfo& container = request.containers[i];
    if (name ? container.name == *name : container.role == ContainerRole::kApp) {
      return static_cast<int>(i);
    }
  }
  return std::nullopt;
}

Ask ShareOf(int container, int64_t count, MemoryNeed memory, int64_t milli) {
  Ask ask;
  ask.container = container;
  ask.resource = Resource::kShare;
  ask.count = count;
  ask.memory = memory;
  ask.compute = MilliGpu::Of(milli);
  return ask;
}

Ask CardsOf(int container, int64_t count) {
  Ask ask;
  ask.container = container;
  ask.resource = Resource::kGpu;
  ask.count = count;
  return ask;
}

MemoryNeed PercentOfMemory(int64_t percent) {
  if (percent >= kMaxPercent) return {MemoryNeed::Kind::kWholeCard, 0};
  return {MemoryNeed::Kind::kPercentOfCard, percent};
}

}  // namespace tranche::wire
