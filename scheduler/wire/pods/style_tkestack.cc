// tkestack's resources: tencent.com/vcuda-core in hundredths of a GPU and tencent.com/vcuda-memory
// in blocks of 256 MiB.
// Source: request-dialects section 8 (tkestack/gpu-manager, gpu-admission).
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

std::optional<Refusal> ReadVcuda(const ContainerAmounts& container, PodRequest& request) {
  const Amount* const core = container.Find(AmountKind::kVcudaCore);
  if (core == nullptr || core->value == 0) {
    return BadAmount(container, container.front(), "tencent.com/vcuda-core beside it");
  }
  if (core->value >= kMaxPercent) {
    if (core->value % kMaxPercent != 0) {
      return BadAmount(container, *core, "part of a GPU below 100, or a multiple of 100");
    }
    // All the memory of whole cards comes with them.
    request.asks.push_back(CardsOf(container.container(), core->value / kMaxPercent));
    return std::nullopt;
  }
  const int64_t blocks = container.Value(AmountKind::kVcudaMemory);
  if (blocks == 0) {
    return BadAmount(container, *core,
                     "tencent.com/vcuda-memory beside a vcuda-core below 100, or whole GPUs");
  }
  request.asks.push_back(ShareOf(container.container(), 1, {MemoryNeed::Kind::kAgentUnits, blocks},
                                 core->value * kMilliPerPercent));
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ReadTkestack(const PodText& text, PodRequest& request) {
  const std::vector<ContainerAmounts> containers =
      ByContainer(text, request, RequestStyle::kTkestack);
  if (auto refusal = RefuseInitContainers(containers)) return refusal;
  for (const ContainerAmounts& container : containers) {
    if (std::optional<Refusal> refusal = ReadVcuda(container, request)) return refusal;
  }
  return std::nullopt;
}

}  // namespace tranche::wire
