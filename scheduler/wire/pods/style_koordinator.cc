// Koordinator's resources: koordinator.sh/gpu, or gpu-core with gpu-memory or gpu-memory-ratio, of
// one card or divided evenly over gpu.shared cards; nvidia.com/gpu is whole cards.
// Source: request-dialects sections 12 and 16 (koordinator-sh/koordinator:
// pkg/scheduler/plugins/deviceshare/utils.go).
#include <fmt/format.h>

#include <algorithm>

#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

// The sets of keys one container may have.
std::optional<Refusal> CheckKeys(const ContainerAmounts& container) {
  const bool gpu = container.Value(AmountKind::kKoordGpu) > 0;
  const bool core = container.Value(AmountKind::kKoordCore) > 0;
  const bool memory = container.Value(AmountKind::kKoordMemory) > 0;
  const bool ratio = container.Value(AmountKind::kKoordRatio) > 0;
  const bool shared = container.Value(AmountKind::kKoordShared) > 0;
  if (gpu ? !core && !memory && !ratio && !shared : memory != ratio) return std::nullopt;
  return Refusal{
      Reason::kBadAmount,
      fmt::format("expected koordinator.sh/gpu alone, or one of gpu-memory and gpu-memory-ratio "
                  "with gpu-core, gpu.shared, both or none, found{}{}{}{}{}, in container {}",
                  gpu ? " gpu" : "", shared ? " gpu.shared" : "", core ? " gpu-core" : "",
                  memory ? " gpu-memory" : "", ratio ? " gpu-memory-ratio" : "",
                  Quoted(container.info().name))};
}

// How many cards the amounts are divided over. Above 100 percent they are whole cards, of which
// core and ratio must say the same number.
std::optional<Refusal> CountCards(const ContainerAmounts& container, int64_t& cards) {
  cards = std::max<int64_t>(container.Value(AmountKind::kKoordShared), 1);
  const bool shared = container.Value(AmountKind::kKoordShared) > 0;
  for (const AmountKind kind :
       {AmountKind::kKoordGpu, AmountKind::kKoordCore, AmountKind::kKoordRatio}) {
    const Amount* const amount = container.Find(kind);
    if (amount == nullptr || amount->value == 0) continue;
    if (shared) {
      if (amount->value % cards == 0 && amount->value / cards <= kMaxPercent) continue;
      return BadAmount(
          container, *amount,
          fmt::format("multiple of {} up to {}, over {} cards", cards, cards * kMaxPercent, cards));
    }
    if (amount->value > kMaxPercent && amount->value % kMaxPercent != 0) {
      return BadAmount(container, *amount, "percentage up to 100, or a multiple of 100");
    }
    cards = std::max(cards, amount->value / kMaxPercent);
  }
  for (const AmountKind kind : {AmountKind::kKoordCore, AmountKind::kKoordRatio}) {
    const Amount* const amount = container.Find(kind);
    if (shared || cards == 1 || amount == nullptr || amount->value == 0) continue;
    if (amount->value == cards * kMaxPercent) continue;
    return BadAmount(container, *amount,
                     fmt::format("{} for {} whole cards", cards * kMaxPercent, cards));
  }
  return std::nullopt;
}

Ask AskForCards(const ContainerAmounts& container, int64_t cards) {
  const int64_t gpu = container.Value(AmountKind::kKoordGpu);
  const int64_t core = gpu + container.Value(AmountKind::kKoordCore);
  const int64_t ratio = gpu + container.Value(AmountKind::kKoordRatio);
  const int64_t mib = container.Value(AmountKind::kKoordMemory);
  if (core / cards == kMaxPercent && ratio / cards == kMaxPercent) {
    return CardsOf(container.container(), cards);
  }
  const MemoryNeed memory = mib > 0 ? MemoryNeed{MemoryNeed::Kind::kMib, (mib + cards - 1) / cards}
                                    : PercentOfMemory(ratio / cards);
  return ShareOf(container.container(), cards, memory, core / cards * kMilliPerPercent);
}

// Both keys of one container must say the same, for they are one request to Koordinator.
std::optional<Refusal> CheckGpuKey(const ContainerAmounts& container, const Ask& ask,
                                   int64_t gpus) {
  if (ask.resource == Resource::kGpu && ask.count == gpus) return std::nullopt;
  return Refusal{
      Reason::kBadAmount,
      fmt::format("expected {} equal to the whole cards of {}, found \"{}\", in "
                  "container {}",
                  kGpuKey, Quoted(container.front().key), gpus, Quoted(container.info().name))};
}

}  // namespace

std::optional<Refusal> ReadKoordinator(const PodText& text, PodRequest& request) {
  const std::vector<ContainerAmounts> shares =
      ByContainer(text, request, RequestStyle::kKoordinator);
  for (const ContainerAmounts& container : shares) {
    if (std::optional<Refusal> refusal = CheckKeys(container)) return refusal;
    int64_t cards = 1;
    if (std::optional<Refusal> refusal = CountCards(container, cards)) return refusal;
    request.asks.push_back(AskForCards(container, cards));
  }
  const std::size_t own = request.asks.size();
  for (const Amount& amount : text.amounts) {
    if (amount.container == kOverhead || amount.kind != AmountKind::kGpu || amount.value == 0) {
      continue;
    }
    std::size_t i = 0;
    while (i < own && request.asks[i].container != amount.container) ++i;
    if (i == own) {
      request.asks.push_back(CardsOf(amount.container, amount.value));
    } else if (auto refusal = CheckGpuKey(shares[i], request.asks[i], amount.value)) {
      return refusal;
    }
  }
  std::stable_sort(request.asks.begin(), request.asks.end(), [](const Ask& left, const Ask& right) {
    return left.container < right.container;
  });
  return std::nullopt;
}

}  // namespace tranche::wire
