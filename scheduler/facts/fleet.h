// What the fleet offers, what of it is stranded and what it costs, as the ledger is told of it:
// facts about single keys, each in force from a moment on until the next one about the same key.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/base/units.h"

namespace tranche {

enum class FleetKind : uint8_t {
  kNode,      // what a node offers
  kPrice,     // a GPUPrice in force
  kStranded,  // how many free GPUs of one kind nobody is expected to use
};

struct FleetFact {
  FleetKind kind = FleetKind::kNode;
  std::string key;   // name of the node or price; of stranded GPUs what says that none are
  std::string text;  // JSON, the same for equal values; empty: it is gone
  friend auto operator<=>(const FleetFact&, const FleetFact&) = default;
};

// Of one moment.
struct FleetNews {
  Instant at;
  std::vector<FleetFact> facts;
  // There is nothing beside what is here.
  bool whole = false;
};

}  // namespace tranche
