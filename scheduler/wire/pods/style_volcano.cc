// Volcano's resources: vGPUs (volcano.sh/vgpu-...) and, older, volcano.sh/gpu-memory, gpu-number.
// Source: request-dialects section 6 (volcano-sh/volcano: pkg/scheduler/api/devices/nvidia).
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kOneContainer =
    "the agent is called for each container and finds the pod by its total";

// Memory of each card; percentages win, as in Volcano.
std::optional<Refusal> ReadMemory(const ContainerAmounts& container, MemoryNeed& memory) {
  const int64_t units = container.Value(AmountKind::kVolcanoMemory);
  const Amount* const percent = container.Find(AmountKind::kVolcanoPercent);
  memory = {MemoryNeed::Kind::kWholeCard, 0};
  if (percent != nullptr && (percent->value > 0 || units == 0)) {
    if (percent->value < 1 || percent->value > kMaxPercent) {
      return BadAmount(container, *percent, "percentage from 1 to 100");
    }
    memory = PercentOfMemory(percent->value);
  } else if (units > 0) {
    memory = {MemoryNeed::Kind::kAgentUnits, units};
  }
  return std::nullopt;
}

std::optional<Refusal> ReadVolcanoVgpus(const ContainerAmounts& container, PodRequest& request) {
  const Amount* const number = container.Find(AmountKind::kVolcanoNumber);
  if (number != nullptr && number->value == 0) return std::nullopt;  // asks for nothing
  if (number == nullptr && container.Value(AmountKind::kVolcanoMemory) == 0) {
    return BadAmount(container, container.front(),
                     "volcano.sh/vgpu-number or vgpu-memory beside it");
  }
  MemoryNeed memory;
  if (std::optional<Refusal> refusal = ReadMemory(container, memory)) return refusal;
  const Amount* const cores = container.Find(AmountKind::kVolcanoCores);
  if (cores != nullptr && cores->value > kMaxPercent) {
    return BadAmount(container, *cores, "percentage from 0 to 100");
  }
  const int64_t percent = cores == nullptr ? 0 : cores->value;
  Ask ask = ShareOf(container.container(), number == nullptr ? 1 : number->value, memory,
                    percent * kMilliPerPercent);
  ask.exclusive = percent == kMaxPercent;
  request.asks.push_back(ask);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ReadVolcano(const PodText& text, PodRequest& request) {
  const std::vector<ContainerAmounts> containers =
      ByContainer(text, request, RequestStyle::kVolcano);
  if (auto refusal = RefuseInitContainers(containers)) return refusal;
  if (auto refusal = RefuseSecondContainer(containers, kOneContainer)) return refusal;
  for (const ContainerAmounts& container : containers) {
    if (std::optional<Refusal> refusal = ReadVolcanoVgpus(container, request)) return refusal;
  }
  return std::nullopt;
}

// gpu-memory is a part of one card, in units of the plugin; gpu-number is whole cards.
std::optional<Refusal> ReadVolcanoOld(const PodText& text, PodRequest& request) {
  const std::vector<ContainerAmounts> containers =
      ByContainer(text, request, RequestStyle::kVolcanoOld);
  if (auto refusal = RefuseInitContainers(containers)) return refusal;
  if (auto refusal = RefuseSecondContainer(containers, kOneContainer)) return refusal;
  for (const ContainerAmounts& container : containers) {
    const int64_t units = container.Value(AmountKind::kVolcanoOldMemory);
    const int64_t number = container.Value(AmountKind::kVolcanoOldNumber);
    if (units > 0 && number > 0) {
      return BadAmount(container, *container.Find(AmountKind::kVolcanoOldNumber),
                       "only one of gpu-memory and gpu-number");
    }
    request.asks.push_back(
        number > 0 ? CardsOf(container.container(), number)
                   : ShareOf(container.container(), 1, {MemoryNeed::Kind::kAgentUnits, units}, 0));
  }
  return std::nullopt;
}

}  // namespace tranche::wire
