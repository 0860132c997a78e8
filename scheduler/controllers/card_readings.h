// What GPUs were measured to do lately, card by card, for people: nothing is decided by it.
//
// Values; any thread. Cost: linear in the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "scheduler/wire/agents/use_rows.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// Of several rows of a card the larger amount. nullopt: not told.
struct CardReading {
  std::optional<int64_t> permille;  // the whole time where that is told, else the busiest moment
  std::optional<int64_t> memory;    // MiB in use
  std::optional<int64_t> celsius;
  std::optional<int64_t> watts;
  friend bool operator==(const CardReading&, const CardReading&) = default;
};

struct CardReadings {
  Instant at;
  std::unordered_map<GpuUuid, CardReading> cards;
  // nullptr: nothing was told of it, or too long before `now`.
  const CardReading* Find(const GpuUuid& uuid, Instant now) const;
};
// Of whole cards; what is told of their MIG instances alone is left out.
CardReadings ReadingsOf(std::span<const wire::UseRow> rows, Instant now);

}  // namespace tranche
