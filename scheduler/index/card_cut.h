// Cards that their agent cuts into MIG instances container by container, where the Binding says
// (HAMi from 2.10 on, mode "mig").
//
// A share becomes the smallest instance that holds it. What the agent offers is in the node's
// register; which sets of instances are legal follows from the board's placements. Immutable once
// built; any thread may read. Source: request-dialects sections 4.2, 4.3, 4.5; mig-geometry.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/facts/agent.h"
#include "topology/base/units.h"
#include "topology/mig_space.h"

namespace tranche {

// Where an instance sits on its card.
struct MigPlace {
  const MigSpace* space = nullptr;  // of the card's board; null: no instance
  int profile = 0;                  // index into space->board().profiles
  int start = 0;
  friend bool operator==(const MigPlace&, const MigPlace&) = default;
};

struct CutProfile {
  std::string name;  // as the agent spells it
  int profile = 0;   // index into the board's profiles
  MilliGpu milli;
  Mebibytes memory;
  std::vector<int> starts;  // legal by the board and offered by the agent; ascending
  friend bool operator==(const CutProfile&, const CutProfile&) = default;
};

struct CardCut {
  const MigSpace* space = nullptr;
  std::vector<CutProfile> profiles;  // ascending memory, milli
  friend bool operator==(const CardCut&, const CardCut&) = default;
};

// `product`: label of the node or type of the card, `memory`: of the card (see FindMigBoard).
// Profiles that the board lacks are left out; where the agent's register names none, the board's
// own are taken. Null and `problem` (expected, found): no board of the catalogue is the card's, or
// has them at these places.
std::shared_ptr<const CardCut> CutOf(const AgentDevice& device, std::string_view product,
                                     Mebibytes memory, std::string& problem);

// What a share must be able to use at least. `part` of the card's memory, in thousandths, where it
// asks for one. An instance of half of the board's memory units is a half, though its usable memory
// is a little less than half of the card's and its compute slices are three of seven.
struct CutNeed {
  MilliGpu milli;
  Mebibytes memory;
  std::optional<int64_t> part;
};
// The smallest profile that holds it; null: none does.
const CutProfile* SmallestFor(const CardCut& cut, const CutNeed& need);

// The profile's place on a card of this layout that leaves the most places for later instances, of
// equal ones the one the agent's own scheduler prefers. nullopt: there is none.
std::optional<MigPlace> BestPlaceOn(const CardCut& cut, LayoutId layout, const CutProfile& profile);

// The layout with the instance added; nullopt: the two do not go together.
inline std::optional<LayoutId> With(LayoutId layout, const MigPlace& place) {
  return place.space->With(layout, place.profile, place.start);
}

}  // namespace tranche
