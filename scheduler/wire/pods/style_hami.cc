// HAMi's resources: nvidia.com/gpu with gpumem, gpumem-percentage and gpucores.
// Defaults are those of its admission webhook, so that a pod means the same with and without it.
// Source: request-dialects section 4.1 (Project-HAMi/HAMi: pkg/device/nvidia/device.go).
#include <fmt/format.h>

#include <algorithm>

#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

// What one container asks for; zero is unset, except that a count of zero asks for nothing.
struct Wish {
  std::optional<int64_t> count;
  int64_t memory_mib = 0;
  int64_t memory_percent = 0;
  int64_t cores_percent = 0;

  void Add(const Amount& amount) {
    switch (amount.kind) {
      case AmountKind::kGpu:
        count = amount.value;
        break;
      case AmountKind::kHamiMemory:
        memory_mib = amount.value;
        break;
      case AmountKind::kHamiPercent:
        memory_percent = std::min(amount.value, kMaxPercent);
        break;
      case AmountKind::kHamiCores:
        cores_percent = std::min(amount.value, kMaxPercent);
        break;
      default:
        break;
    }
  }
  bool empty() const {
    return count ? *count == 0 : memory_mib == 0 && memory_percent == 0 && cores_percent == 0;
  }
};

MemoryNeed MemoryOf(const Wish& wish) {
  if (wish.memory_mib > 0) return {MemoryNeed::Kind::kMib, wish.memory_mib};
  if (wish.memory_percent > 0 && wish.memory_percent < kMaxPercent) {
    return {MemoryNeed::Kind::kPercentOfCard, wish.memory_percent};
  }
  return {MemoryNeed::Kind::kWholeCard, 0};
}

Ask AskFor(const Wish& wish, int container) {
  Ask ask;
  ask.container = container;
  ask.resource = Resource::kShare;
  ask.count = wish.count.value_or(1);
  ask.memory = MemoryOf(wish);
  int64_t cores = wish.cores_percent;
  // A container that takes all the memory leaves the cores to nobody else.
  if (cores == 0 && ask.memory.kind == MemoryNeed::Kind::kWholeCard) cores = kMaxPercent;
  ask.compute = MilliGpu::Of(cores * kMilliPerPercent);
  ask.exclusive = cores == kMaxPercent;
  return ask;
}

}  // namespace

std::optional<Refusal> ReadHami(const PodText& text, PodRequest& request) {
  auto amount = text.amounts.begin();
  while (amount != text.amounts.end() && amount->container != kOverhead) {
    const int container = amount->container;
    Wish wish;
    for (; amount != text.amounts.end() && amount->container == container; ++amount) {
      // HAMi keeps memory in 32 bits.
      if (amount->kind == AmountKind::kHamiMemory && amount->value > INT32_MAX) {
        const ContainerInfo& info = request.containers[static_cast<std::size_t>(container)];
        return Refusal{
            Reason::kBadAmount,
            fmt::format("expected at most {} MiB, found \"{}\", in {} of container {}", INT32_MAX,
                        amount->value, Quoted(amount->key), Quoted(info.name))};
      }
      wish.Add(*amount);
    }
    if (!wish.empty()) request.asks.push_back(AskFor(wish, container));
  }
  return std::nullopt;
}

}  // namespace tranche::wire
