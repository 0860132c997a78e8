#include "scheduler/agent/cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "scheduler/probe/nvml.h"
#include "topology/base/status.h"

namespace tranche::agent {
namespace {

// What an MPS server itself takes of a card: 66 MiB were seen on an H100 with driver 580.
constexpr int64_t kMibOfMps = 128;

absl::StatusOr<std::vector<MigOffer>> OffersOf(probe::Nvml& nvml, probe::Nvml::Device device) {
  std::vector<MigOffer> offers;
  TRANCHE_ASSIGN_OR_RETURN(const auto profiles, nvml.MigProfiles(device));
  for (const probe::MigProfile& profile : profiles) {
    TRANCHE_ASSIGN_OR_RETURN(const auto places, nvml.PlacesOf(device, profile));
    const bool listed = std::ranges::find(offers, profile.name, &MigOffer::profile) != offers.end();
    if (places.starts.empty() || listed) continue;
    offers.push_back({profile.name, profile.mib, places.size, places.starts});
  }
  return offers;
}

void Share(probe::Nvml& nvml, probe::Nvml::Device device, const CardOptions& options, Card& card) {
  card.slots = options.slots;
  const auto usable = nvml.UsableMib(device);
  card.mib = std::max<int64_t>(usable.value_or(card.mib) - kMibOfMps, 0);
  if (!card.problem.empty() || !options.mps_only) return;
  if (const absl::Status alone = nvml.MakeExclusive(device); !alone.ok()) {
    card.problem = fmt::format("programs may use it beside MPS: {}", std::string(alone.message()));
  }
}

// What the card has, and why it cannot be given.
void Examine(probe::Nvml& nvml, probe::Nvml::Device device, const CardOptions& options,
             Card& card) {
  // A name is for people, and for the server to know the board by.
  card.type = nvml.ProductName(device).value_or("");
  // A card that fell off the bus still has a UUID for a while, but nothing can be read from it.
  const auto memory = nvml.MemoryMib(device);
  if (memory.ok()) {
    card.mib = *memory;
  } else {
    card.problem = std::string(memory.status().message());
  }
  const auto worn = nvml.MemoryProblem(device);
  if (card.problem.empty()) card.problem = worn.ok() ? *worn : std::string(worn.status().message());
  const auto mig = nvml.MigIsOn(device);
  if (!mig.ok()) card.problem = std::string(mig.status().message());
  if (!mig.ok()) return;
  if (!*mig) {
    if (options.slots > 0) Share(nvml, device, options, card);
    return;
  }
  if (!options.make_mig) {
    card.problem = "its MIG mode is on";
    return;
  }
  card.mig = true;
  auto offers = OffersOf(nvml, device);
  if (offers.ok()) {
    card.offers = *std::move(offers);
  } else {
    card.problem = std::string(offers.status().message());
  }
}

}  // namespace

absl::StatusOr<std::vector<Card>> LookAtCards(const std::string& nvml_library,
                                              const CardOptions& options) {
  TRANCHE_ASSIGN_OR_RETURN(const auto nvml, probe::Nvml::Open(nvml_library));
  TRANCHE_ASSIGN_OR_RETURN(const int count, nvml->DeviceCount());
  std::vector<Card> cards;
  for (int index = 0; index < count; ++index) {
    const auto device = nvml->DeviceAt(index);
    if (!device.ok()) continue;
    const auto uuid = nvml->Uuid(*device);
    // Its name is not known; where it was seen before it is missing now, and closed.
    if (!uuid.ok()) continue;
    Card card{GpuUuid(*uuid), "", index, 0};
    Examine(*nvml, *device, options, card);
    cards.push_back(std::move(card));
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
    auto known = std::ranges::find(cards_, seen.uuid, &Card::uuid);
    if (known == cards_.end()) {
      cards_.push_back(seen);
      known = std::prev(cards_.end());
    } else {
      const std::vector<ClosedPlace> closed = std::move(known->closed);
      *known = seen;
      known->closed = closed;
    }
    known->index = static_cast<int>(known - cards_.begin());
  }
}

void CardList::Close(const std::map<GpuUuid, std::string>& problems) {
  for (Card& card : cards_) {
    const auto problem = problems.find(card.uuid);
    if (problem != problems.end() && card.problem.empty()) card.problem = problem->second;
  }
}

void CardList::SetClosed(const std::map<GpuUuid, std::vector<ClosedPlace>>& closed) {
  for (Card& card : cards_) {
    const auto places = closed.find(card.uuid);
    card.closed = places == closed.end() ? std::vector<ClosedPlace>() : places->second;
  }
}

}  // namespace tranche::agent
