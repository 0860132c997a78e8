// elastic-gpu's resources: elasticgpu.io/gpu-core in hundredths of a GPU, or gpu-memory in MiB.
// Source: request-dialects section 9 (elastic-ai/elastic-gpu-scheduler, elastic-gpu-agent).
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {

std::optional<Refusal> ReadElastic(const PodText& text, PodRequest& request) {
  for (const ContainerAmounts& container : ByContainer(text, request, RequestStyle::kElastic)) {
    const int64_t core = container.Value(AmountKind::kElasticCore);
    const int64_t mib = container.Value(AmountKind::kElasticMemory);
    if (core > 0 && mib > 0) {
      return BadAmount(container, *container.Find(AmountKind::kElasticMemory),
                       "only one of gpu-core and gpu-memory, since the agent honours only one");
    }
    const int index = container.container();
    if (mib > 0) {
      request.asks.push_back(ShareOf(index, 1, {MemoryNeed::Kind::kMib, mib}, 0));
    } else if (core >= kMaxPercent) {
      // What is over whole cards is lost, as in the scheduler this style is from.
      request.asks.push_back(CardsOf(index, core / kMaxPercent));
    } else {
      request.asks.push_back(ShareOf(index, 1, MemoryNeed{}, core * kMilliPerPercent));
    }
  }
  return std::nullopt;
}

}  // namespace tranche::wire
