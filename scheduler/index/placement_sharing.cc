// In which way an ask would share a card, and what the pod's class thinks of it.
#include <algorithm>

#include "scheduler/index/placement.h"

namespace tranche {

SharingMode ModeOf(const Inventory& inventory, const Ask& ask, const Card& card) {
  if (const int pool = PoolFor(inventory, ask); pool >= 0) {
    // Of the sharing methods the device plugin offers instances time-slicing only.
    const bool shared = inventory.pools[static_cast<std::size_t>(pool)].replicas > 1;
    return shared ? SharingMode::kTimeSliced : SharingMode::kMig;
  }
  if (card.cut != nullptr) return SharingMode::kMig;
  const CardNeed need = NeedOn(inventory, ask, card);
  if (need.milli == kWholeGpu && need.memory == card.memory) return SharingMode::kExclusive;
  const bool mps =
      inventory.sharing == SharingMethod::kMps || card.vgpu_mode.find("mps") != std::string::npos;
  return mps ? SharingMode::kMps : SharingMode::kTimeSliced;
}

std::string_view SharingModeName(SharingMode mode) {
  switch (mode) {
    case SharingMode::kExclusive:
      return "Exclusive";
    case SharingMode::kMig:
      return "MIG";
    case SharingMode::kMps:
      return "MPS";
    case SharingMode::kTimeSliced:
      return "TimeSliced";
  }
  return "";
}

std::optional<int> PreferenceOf(const Inventory& inventory, const Ask& ask, const Card& card,
                                const std::vector<SharingMode>* sharing) {
  if (sharing == nullptr || sharing->empty()) return 0;
  const auto at = std::ranges::find(*sharing, ModeOf(inventory, ask, card));
  if (at == sharing->end()) return std::nullopt;
  return static_cast<int>(at - sharing->begin());
}

}  // namespace tranche
