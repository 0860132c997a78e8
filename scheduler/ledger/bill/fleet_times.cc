#include "scheduler/ledger/bill/fleet_times.h"

#include <set>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace tranche::ledger {
namespace {

void NoteFirst(std::optional<Instant>& first, int64_t at) {
  const Instant moment{Millis(at)};
  if (!first || moment < *first) first = moment;
}

// All prices together, whenever one of them changes.
void LayOut(const std::map<std::string, Timeline<PriceOffer>>& prices, FleetTimes& fleet) {
  std::set<int64_t> changes;
  for (const auto& [name, line] : prices) {
    for (const auto& [at, offer] : line.stands()) changes.insert(at);
  }
  for (const int64_t at : changes) {
    std::vector<GpuPrice> in_force;
    for (const auto& [name, line] : prices) {
      const PriceOffer* const offer = line.Of(at);
      if (offer != nullptr && !offer->gone) in_force.push_back(offer->price);
    }
    fleet.prices.Add(at, std::make_shared<const std::vector<GpuPrice>>(std::move(in_force)));
  }
}

using Prices = std::map<std::string, Timeline<PriceOffer>>;

absl::Status Read(const FleetEntry& entry, FleetTimes& fleet, Prices& prices) {
  switch (entry.kind) {
    case FleetKind::kNode: {
      absl::StatusOr<NodeOffer> offer = ReadNodeText(entry.text);
      if (!offer.ok()) return offer.status();
      NoteFirst(fleet.fleet_from, entry.at);
      fleet.nodes[offer->node].Add(entry.at, std::move(*offer));
      break;
    }
    case FleetKind::kStranded: {
      absl::StatusOr<StrandedGpus> stranded = ReadStrandedText(entry.text);
      if (!stranded.ok()) return stranded.status();
      NoteFirst(fleet.stranded_from, entry.at);
      fleet.stranded[KindText(stranded->model, stranded->traits)].Add(entry.at,
                                                                      std::move(*stranded));
      break;
    }
    case FleetKind::kPrice: {
      absl::StatusOr<PriceOffer> offer = ReadPriceText(entry.text);
      if (!offer.ok()) return offer.status();
      NoteFirst(fleet.prices_from, entry.at);
      prices[offer->name].Add(entry.at, std::move(*offer));
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FleetTimes> ReadFleetTimes(const std::vector<FleetEntry>& entries) {
  FleetTimes fleet;
  Prices prices;
  for (const FleetEntry& entry : entries) {
    const absl::Status read = Read(entry, fleet, prices);
    if (read.ok()) continue;
    return absl::DataLossError(
        fmt::format("entry {}: {}", entry.entry, std::string(read.message())));
  }
  LayOut(prices, fleet);
  return fleet;
}

}  // namespace tranche::ledger
