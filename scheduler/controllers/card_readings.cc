#include "scheduler/controllers/card_readings.h"

#include <algorithm>

#include "scheduler/facts/gpu_use.h"

namespace tranche {

const CardReading* CardReadings::Find(const GpuUuid& uuid, Instant now) const {
  if (uuid.empty() || now - at > kUseGoodFor) return nullptr;
  const auto found = cards.find(uuid);
  return found == cards.end() ? nullptr : &found->second;
}

CardReadings ReadingsOf(std::span<const wire::UseRow> rows, Instant now) {
  CardReadings readings{now, {}};
  std::unordered_map<GpuUuid, int64_t> busiest;
  const auto take = [](std::optional<int64_t>& known, int64_t amount) {
    known = std::max(known.value_or(amount), amount);
  };
  for (const wire::UseRow& row : rows) {
    const bool of_card = row.instance.empty() && row.measure != wire::UseMeasure::kOwn;
    if (row.uuid.empty() || !of_card) continue;
    CardReading& card = readings.cards[row.uuid];
    switch (row.measure) {
      case wire::UseMeasure::kBusiest: {
        int64_t& most = busiest[row.uuid];
        most = std::max(most, row.amount);
        break;
      }
      case wire::UseMeasure::kOwn:
        break;
      case wire::UseMeasure::kMean:
        take(card.permille, row.amount);
        break;
      case wire::UseMeasure::kMemory:
        take(card.memory, row.amount);
        break;
      case wire::UseMeasure::kCelsius:
        take(card.celsius, row.amount);
        break;
      case wire::UseMeasure::kWatts:
        take(card.watts, row.amount);
        break;
    }
  }
  for (const auto& [uuid, permille] : busiest) {
    CardReading& card = readings.cards[uuid];
    if (!card.permille) card.permille = permille;
  }
  return readings;
}

}  // namespace tranche
