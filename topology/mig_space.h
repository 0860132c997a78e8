// Every legal layout of one GPU of a board, numbered, with the steps between them.
//
// A layout is which profile sits at which start. The space is derived from placements alone, never
// from lists of layouts (mig-geometry section 3: an eight-unit board has 298 layouts of its five
// plain profiles, 2319 of all seven). Immutable once built; any thread may read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/base/ids.h"
#include "topology/mig.h"

namespace tranche {

using LayoutId = Index<struct LayoutIdTag, uint16_t>;
inline constexpr LayoutId kEmptyLayout{0};

class MigSpace {
 public:
  // One instance more: `profile` is an index into board().profiles.
  struct Step {
    uint8_t profile = 0;
    uint8_t start = 0;
    LayoutId after;
    friend bool operator==(const Step&, const Step&) = default;
  };

  // Of the profiles given as indices into board.profiles; empty: of all. `board` outlives it.
  // Cost: milliseconds for the largest board.
  explicit MigSpace(const MigBoard& board, std::span<const int> profiles = {});

  const MigBoard& board() const { return *board_; }
  std::size_t size() const;
  // Ascending start.
  std::span<const MigInstance> instances(LayoutId layout) const;
  // What may be added, ascending profile, start. Empty: the layout is maximal.
  std::span<const Step> steps(LayoutId layout) const;
  std::span<const Step> steps(LayoutId layout, int profile) const;
  int used_units(LayoutId layout) const;
  // nullopt: the result is not legal.
  std::optional<LayoutId> With(LayoutId layout, int profile, int start) const;
  // Requires: the instance is in the layout.
  LayoutId Without(LayoutId layout, int profile, int start) const;
  // nullopt: the set is not legal, or has a profile the space was made without.
  std::optional<LayoutId> Find(std::span<const MigInstance> instances) const;

 private:
  // A set of placements, one bit each, in the order of (profile, start).
  using Placements = uint64_t;
  struct Placement {
    uint8_t profile = 0;
    uint8_t start = 0;
  };

  void EnumerateFrom(std::size_t placement, Placements chosen);
  bool IsLegal(Placements chosen) const;
  void LinkSteps();
  // Of (profile, start) in placements_; nullopt: the space has none such.
  std::optional<std::size_t> PlacementOf(int profile, int start) const;
  std::optional<LayoutId> IdOf(Placements chosen) const;

  const MigBoard* board_;
  std::vector<Placement> placements_;
  // By LayoutId, ascending, so that an instance more is always a higher id.
  std::vector<Placements> layouts_;
  std::vector<uint8_t> used_units_;
  // Packed rows: those of layout i are [first[i], first[i + 1]).
  std::vector<MigInstance> instances_;
  std::vector<uint32_t> first_instance_;
  std::vector<Step> steps_;
  std::vector<uint32_t> first_step_;  // by layout and profile
};

// The space of all profiles of a board of MigBoards(), built once at its first use.
const MigSpace& MigSpaceOf(const MigBoard& board);

}  // namespace tranche
