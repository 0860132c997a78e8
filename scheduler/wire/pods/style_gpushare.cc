// Alibaba's gpushare: aliyun.com/gpu-mem, a part of the memory of one card for the whole pod.
// Source: request-dialects section 7 (AliyunContainerService/gpushare-device-plugin).
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {

std::optional<Refusal> ReadGpushare(const PodText& text, PodRequest& request) {
  const std::vector<ContainerAmounts> containers =
      ByContainer(text, request, RequestStyle::kGpushare);
  if (auto refusal = RefuseInitContainers(containers)) return refusal;
  if (auto refusal = RefuseSecondContainer(
          containers,
          "the agent is called for each container and looks for a pod whose total is what the "
          "container asks for")) {
    return refusal;
  }
  for (const ContainerAmounts& container : containers) {
    const int64_t units = container.Value(AmountKind::kGpushareMemory);
    request.asks.push_back(
        ShareOf(container.container(), 1, {MemoryNeed::Kind::kAgentUnits, units}, 0));
  }
  return std::nullopt;
}

}  // namespace tranche::wire
