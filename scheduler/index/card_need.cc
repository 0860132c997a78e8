// What one unit of an ask takes of a card, and which pool serves it.
#include "scheduler/index/placement.h"

namespace tranche {

CardNeed NeedOn(const Inventory& inventory, const Ask& ask, const Card& card) {
  const bool replicated = card.mode == CardMode::kReplicated;
  const Mebibytes part = Mebibytes::Of(card.memory.count() / inventory.replicas);
  if (ask.resource != Resource::kShare) {
    if (!replicated) return {kWholeGpu, card.memory, 1};
    return {MilliGpu::Of(1000 / inventory.replicas), part, 0};
  }
  CardNeed need{ask.compute, Mebibytes::Zero(), ask.exclusive ? 1 : 0};
  switch (ask.memory.kind) {
    case MemoryNeed::Kind::kNone:
      if (replicated) need.memory = part;
      break;
    case MemoryNeed::Kind::kWholeCard:
      need.memory = card.memory;
      break;
    case MemoryNeed::Kind::kMib:
      need.memory = Mebibytes::Of(ask.memory.value);
      break;
    case MemoryNeed::Kind::kAgentUnits:
      need.memory = inventory.memory_unit * ask.memory.value;
      break;
    case MemoryNeed::Kind::kMilliOfCard:
      need.memory = Mebibytes::Of(card.memory.count() * ask.memory.value / 1000);
      break;
    case MemoryNeed::Kind::kPercentOfCard:
      need.memory = Mebibytes::Of(card.memory.count() * ask.memory.value / 100);
      break;
  }
  return need;
}

int PoolFor(const Inventory& inventory, const Ask& ask) {
  switch (ask.resource) {
    case Resource::kMig:
      return inventory.FindPool(FormatMigResource(ask.mig));
    case Resource::kGpu:
      return inventory.gpu_unit == GpuUnit::kMigDevice ? inventory.FindPool("nvidia.com/gpu") : -1;
    case Resource::kGpuShared:
      return inventory.gpu_unit == GpuUnit::kMigDevice ? inventory.FindPool("nvidia.com/gpu.shared")
                                                       : -1;
    case Resource::kShare:
      return -1;
  }
  return -1;
}

}  // namespace tranche
