#include "scheduler/wire/protocol/hami_reasons.h"

#include <algorithm>

namespace tranche::wire {
namespace {

std::string_view NoRoomWord(const PodRequest& request) {
  const auto any = [&request](auto holds) {
    return std::any_of(request.asks.begin(), request.asks.end(), holds);
  };
  if (any([](const Ask& ask) { return ask.resource == Resource::kMig; })) {
    return "CardMigTopologyInfeasible";
  }
  if (any([](const Ask& ask) { return ask.exclusive; })) return "ExclusiveDeviceAllocateConflict";
  const bool memory =
      any([](const Ask& ask) { return ask.memory.kind != MemoryNeed::Kind::kNone; });
  const bool compute = any([](const Ask& ask) { return ask.compute > MilliGpu::Zero(); });
  if (memory == compute) return "AllocatedCardsInsufficientRequest";
  return memory ? "CardInsufficientMemory" : "CardInsufficientCore";
}

}  // namespace

std::string_view HamiWord(Reason reason, const PodRequest& request) {
  switch (reason) {
    case Reason::kNoRoom:
      return NoRoomWord(request);
    case Reason::kTooLarge:
      return "CardInsufficientMemory";
    case Reason::kNoGpu:
    case Reason::kOneReplica:
    case Reason::kTooManyPerNode:
      return "NodeInsufficientDevice";
    case Reason::kWrongModel:
      return "CardTypeMismatch";
    case Reason::kWrongDevice:
      return "CardUuidMismatch";
    case Reason::kUnhealthy:
      return "CardNotHealth";
    case Reason::kNumaMismatch:
      return "NumaNotFit";
    case Reason::kNamespaceQuota:
      return "ResourceQuotaNotFit";
    default:
      return "";
  }
}

}  // namespace tranche::wire
