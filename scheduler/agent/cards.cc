#include "scheduler/agent/cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "scheduler/probe/nvml.h"
#include "topology/base/status.h"

namespace tranche::agent {
namespace {

// Why the card cannot be given whole; empty: it can.
std::string ProblemOf(probe::Nvml& nvml, probe::Nvml::Device device) {
  const auto mig = nvml.MigIsOn(device);
  if (!mig.ok()) return std::string(mig.status().message());
  if (*mig) return "its MIG mode is on";
  // A card that fell off the bus still has a UUID for a while, but nothing can be read from it.
  const auto memory = nvml.MemoryMib(device);
  return memory.ok() ? "" : std::string(memory.status().message());
}

}  // namespace

absl::StatusOr<std::vector<Card>> LookAtCards(const std::string& nvml_library) {
  TRANCHE_ASSIGN_OR_RETURN(const auto nvml, probe::Nvml::Open(nvml_library));
  TRANCHE_ASSIGN_OR_RETURN(const int count, nvml->DeviceCount());
  std::vector<Card> cards;
  for (int index = 0; index < count; ++index) {
    const auto device = nvml->DeviceAt(index);
    if (!device.ok()) continue;
    const auto uuid = nvml->Uuid(*device);
    // Its name is not known; where it was seen before it is missing now, and closed.
    if (!uuid.ok()) continue;
    cards.push_back({GpuUuid(*uuid), ProblemOf(*nvml, *device)});
  }
  return cards;
}

void CardList::Update(const absl::StatusOr<std::vector<Card>>& look) {
  for (Card& card : cards_) {
    card.problem = look.ok() ? "the driver no longer answers for it"
                             : fmt::format("the driver does not answer: {}",
                                           std::string(look.status().message()));
  }
  if (!look.ok()) return;
  for (const Card& seen : *look) {
    const auto known = std::ranges::find(cards_, seen.uuid, &Card::uuid);
    if (known == cards_.end()) {
      cards_.push_back(seen);
    } else {
      known->problem = seen.problem;
    }
  }
}

}  // namespace tranche::agent
