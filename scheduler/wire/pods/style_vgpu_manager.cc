// vgpu-manager's resources: nvidia.com/vgpu-number with vgpu-cores and vgpu-memory of each card.
// Defaults are those of its admission webhook.
// Source: request-dialects section 10 (coldzerofear/vgpu-manager).
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

std::optional<Refusal> ReadVgpus(const ContainerAmounts& container, PodRequest& request) {
  const Amount* const number = container.Find(AmountKind::kVgpuNumber);
  if (number != nullptr && number->value == 0) return std::nullopt;  // asks for nothing
  const int64_t units = container.Value(AmountKind::kVgpuMemory);
  int64_t cores = container.Value(AmountKind::kVgpuCores);
  if (cores > kMaxPercent) {
    return BadAmount(container, *container.Find(AmountKind::kVgpuCores),
                     "percentage from 0 to 100");
  }
  // A container that takes all the memory leaves the cores to nobody else.
  if (cores == 0 && units == 0) cores = kMaxPercent;
  const MemoryNeed memory = units > 0 ? MemoryNeed{MemoryNeed::Kind::kAgentUnits, units}
                                      : MemoryNeed{MemoryNeed::Kind::kWholeCard, 0};
  Ask ask = ShareOf(container.container(), number == nullptr ? 1 : number->value, memory,
                    cores * kMilliPerPercent);
  ask.exclusive = cores == kMaxPercent && units == 0;
  request.asks.push_back(ask);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ReadVgpuManager(const PodText& text, PodRequest& request) {
  for (const ContainerAmounts& container : ByContainer(text, request, RequestStyle::kVgpuManager)) {
    if (std::optional<Refusal> refusal = ReadVgpus(container, request)) return refusal;
  }
  return std::nullopt;
}

}  // namespace tranche::wire
