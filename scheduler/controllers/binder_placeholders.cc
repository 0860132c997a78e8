// Placeholder pods hold the cards that others share (facts/placeholder.h). The engine says which
// are to be made and deleted; the binder reports what fails, or the engine asks again.
#include <spdlog/spdlog.h>

#include "scheduler/controllers/binder_core.h"
#include "scheduler/wire/records/allocation_json.h"
#include "scheduler/wire/records/placeholder_pod.h"

namespace tranche {

void Binder::Core::MakePlaceholder(const PlaceholderOrder& order) {
  pods_.CreatePod(
      {order.pod, order.node, wire::EncodePlaceholder(order, options_.placeholder_image)},
      [weak = weak_from_this(), pod = order.pod, node = order.node](const WriteResult& result) {
        using Kind = WriteResult::Kind;
        if (result.kind == Kind::kDone) return;
        spdlog::warn("holding a GPU of {} by pod {}: code {}: {}", node.str(), pod.str(),
                     result.http_code, OneLine(result.message));
        // Sent and not answered: it may be there. Else the engine's patience ends.
        if (result.kind == Kind::kUnknown) return;
        if (const auto self = weak.lock()) {
          self->host_.engine.With(EngineCaller::kBind, [&](Engine& engine, Instant now) {
            engine.SettlePlaceholder(pod, node, now);
          });
        }
      });
}

void Binder::Core::EndPlaceholder(const PlaceholderEnd& end) {
  pods_.DeletePod(end.pod, end.uid, [pod = end.pod](const WriteResult& result) {
    if (result.kind == WriteResult::Kind::kDone) return;
    spdlog::warn("deleting pod {}, which nobody needs any more: code {}: {}", pod.str(),
                 result.http_code, OneLine(result.message));
  });
}

void BindAttempt::SetAllocation(Allocation devices) {
  annotations[std::string(wire::kAllocationKey)] = wire::EncodeAllocation(devices);
  if (follows_placeholder) {
    std::string visible;
    for (const ContainerDevices& container : devices.containers) {
      for (const Device& device : container.devices) {
        if (!visible.empty()) visible += ',';
        visible += device.uuid.str();
      }
    }
    annotations[std::string(wire::kVisibleDevicesKey)] = std::move(visible);
  }
  allocation = std::move(devices);
}

}  // namespace tranche
