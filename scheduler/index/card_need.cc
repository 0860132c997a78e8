// What one unit of an ask takes of a card, and which pool serves it.
#include <algorithm>

#include "scheduler/index/placement.h"

namespace tranche {
namespace {

// The share becomes an instance, which nobody else sees.
CardNeed CutNeedOn(const Ask& ask, const Card& card, const CardNeed& share) {
  CardNeed need{share.milli, share.memory, 0};
  need.instance = SmallestFor(*card.cut, {share.milli, share.memory, PartOfCard(ask.memory)});
  need.fits = need.instance != nullptr;
  if (!need.fits) return need;
  need.milli = need.instance->milli;
  need.memory = need.instance->memory;
  return need;
}

}  // namespace

std::optional<int64_t> PartOfCard(const MemoryNeed& memory) {
  switch (memory.kind) {
    case MemoryNeed::Kind::kWholeCard:
      return 1000;
    case MemoryNeed::Kind::kMilliOfCard:
      return memory.value;
    case MemoryNeed::Kind::kPercentOfCard:
      return memory.value * 10;
    case MemoryNeed::Kind::kNone:
    case MemoryNeed::Kind::kMib:
    case MemoryNeed::Kind::kAgentUnits:
      return std::nullopt;
  }
  return std::nullopt;
}

CardNeed NeedOn(const Inventory& inventory, const Ask& ask, const Card& card) {
  const bool replicated = card.mode == CardMode::kReplicated;
  const Mebibytes part = Mebibytes::Of(card.memory.count() / inventory.replicas);
  if (ask.resource != Resource::kShare) {
    if (!replicated) return {kWholeGpu, card.memory, 1, nullptr, card.cut == nullptr};
    return {MilliGpu::Of(1000 / inventory.replicas), part, 0};
  }
  // HAMi's cards whose cores are scaled are nobody's alone: a hundred percent is a part of them.
  const bool scaled = inventory.agent == AgentKind::kHami && card.capacity > kWholeGpu;
  CardNeed need{ask.compute, Mebibytes::Zero(), ask.exclusive && !scaled ? 1 : 0};
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
  if (card.cut != nullptr) return CutNeedOn(ask, card, need);
  need.fits = need.memory <= card.memory;
  return need;
}

CardLimits LimitsOf(const GpuPolicy& policy, const Inventory& inventory) {
  CardLimits limits;
  if (policy.takes_all) return limits;
  const std::optional<std::vector<SharingLimit>>& own = inventory.rules.sharing_limits;
  for (const SharingLimit& limit : own ? *own : policy.sharing_limits) {
    if (limit.model != "any" && limit.model != inventory.model) continue;
    const int64_t users = limit.max_pods_per_gpu;
    if (users > 0 && (limits.users == 0 || users < limits.users)) limits.users = users;
    limits.beside = std::max(limits.beside, limit.context_memory);
  }
  return limits;
}

int PoolFor(const Inventory& inventory, const Ask& ask) {
  switch (ask.resource) {
    case Resource::kMig:
      return inventory.FindPool(FormatMigResource(ask.mig));
    case Resource::kGpu:
      return inventory.gpu_unit == GpuUnit::kMigDevice ? inventory.FindPool(kGpuKey) : -1;
    case Resource::kGpuShared:
      return inventory.gpu_unit == GpuUnit::kMigDevice ? inventory.FindPool(kGpuSharedKey) : -1;
    case Resource::kShare:
      return -1;
  }
  return -1;
}

}  // namespace tranche
