// Native resources: nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-P[.shared].
// Source: request-dialects section 14, node-inventory section 1.
#include <fmt/format.h>

#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

// The profile of a MIG key; nullopt when no board could have it.
std::optional<MigResourceName> ReadMigKey(std::string_view key) {
  std::optional<MigResourceName> name = ParseMigResourceTail(key.substr(kMigKeyPrefix.size()));
  if (!name || !IsMigProfileName(name->profile)) return std::nullopt;
  return name;
}

}  // namespace

std::optional<Refusal> ReadNative(const PodText& text, PodRequest& request) {
  for (const Amount& amount : text.amounts) {
    if (amount.container == kOverhead || !amount.is_present()) continue;
    Ask ask;
    ask.container = amount.container;
    ask.count = amount.value;
    if (amount.kind == AmountKind::kGpu) {
      ask.resource = Resource::kGpu;
    } else if (amount.kind == AmountKind::kGpuShared) {
      ask.resource = Resource::kGpuShared;
    } else if (amount.kind == AmountKind::kMig) {
      std::optional<MigResourceName> name = ReadMigKey(amount.key);
      if (!name) {
        const ContainerInfo& container =
            request.containers[static_cast<std::size_t>(amount.container)];
        return Refusal{Reason::kUnknownProfile,
                       fmt::format("expected nvidia.com/mig-<slices>g.<memory>gb, found {}, in "
                                   "container {}",
                                   Quoted(amount.key), Quoted(container.name))};
      }
      ask.resource = Resource::kMig;
      ask.mig = *std::move(name);
    } else {
      continue;
    }
    request.asks.push_back(std::move(ask));
  }
  return std::nullopt;
}

}  // namespace tranche::wire
