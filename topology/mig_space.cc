#include "topology/mig_space.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topology/base/check.h"

namespace tranche {

MigSpace::MigSpace(const MigBoard& board, std::span<const int> profiles) : board_(&board) {
  std::vector<int> wanted(profiles.begin(), profiles.end());
  if (wanted.empty()) {
    wanted.resize(board.profiles.size());
    std::iota(wanted.begin(), wanted.end(), 0);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (const int profile : wanted) {
    for (const int start : board.profiles.at(static_cast<std::size_t>(profile)).starts) {
      placements_.push_back({static_cast<uint8_t>(profile), static_cast<uint8_t>(start)});
    }
  }
  TRANCHE_CHECK_LE(placements_.size(), std::numeric_limits<Placements>::digits);
  EnumerateFrom(0, 0);
  TRANCHE_CHECK_LE(layouts_.size(), std::numeric_limits<uint16_t>::max());
  std::sort(layouts_.begin(), layouts_.end());
  LinkSteps();
}

// Every subset of a legal set is legal, so that what cannot be extended need not be looked into.
void MigSpace::EnumerateFrom(std::size_t placement, Placements chosen) {
  layouts_.push_back(chosen);
  for (std::size_t i = placement; i < placements_.size(); ++i) {
    const Placements larger = chosen | Placements{1} << i;
    if (IsLegal(larger)) EnumerateFrom(i + 1, larger);
  }
}

bool MigSpace::IsLegal(Placements chosen) const {
  std::vector<MigInstance> instances;
  for (std::size_t i = 0; i < placements_.size(); ++i) {
    if ((chosen >> i & 1) == 0) continue;
    instances.push_back({&board_->profiles[placements_[i].profile], placements_[i].start});
  }
  return IsLegalMigSet(*board_, instances);
}

void MigSpace::LinkSteps() {
  first_instance_.push_back(0);
  for (const Placements layout : layouts_) {
    int used = 0;
    std::size_t next = 0;
    for (std::size_t profile = 0; profile < board_->profiles.size(); ++profile) {
      first_step_.push_back(static_cast<uint32_t>(steps_.size()));
      for (; next < placements_.size() && placements_[next].profile == profile; ++next) {
        const Placements bit = Placements{1} << next;
        const int start = placements_[next].start;
        if ((layout & bit) != 0) {
          instances_.push_back({&board_->profiles[profile], start});
          used += board_->profiles[profile].size;
        } else if (const auto after = IdOf(layout | bit)) {
          steps_.push_back({static_cast<uint8_t>(profile), static_cast<uint8_t>(start), *after});
        }
      }
    }
    std::sort(instances_.begin() + first_instance_.back(), instances_.end(),
              [](const auto& left, const auto& right) { return left.start < right.start; });
    first_instance_.push_back(static_cast<uint32_t>(instances_.size()));
    used_units_.push_back(static_cast<uint8_t>(used));
  }
  first_step_.push_back(static_cast<uint32_t>(steps_.size()));
}

std::size_t MigSpace::size() const { return layouts_.size(); }

std::span<const MigInstance> MigSpace::instances(LayoutId layout) const {
  return std::span(instances_)
      .subspan(first_instance_.at(layout),
               first_instance_[layout + std::size_t{1}] - first_instance_[layout]);
}

std::span<const MigSpace::Step> MigSpace::steps(LayoutId layout) const {
  const std::size_t row = layout * board_->profiles.size();
  const uint32_t first = first_step_.at(row);
  return std::span(steps_).subspan(first, first_step_[row + board_->profiles.size()] - first);
}

std::span<const MigSpace::Step> MigSpace::steps(LayoutId layout, int profile) const {
  const std::size_t row = layout * board_->profiles.size() + static_cast<std::size_t>(profile);
  const uint32_t first = first_step_.at(row);
  return std::span(steps_).subspan(first, first_step_[row + 1] - first);
}

int MigSpace::used_units(LayoutId layout) const { return used_units_.at(layout); }

std::optional<LayoutId> MigSpace::With(LayoutId layout, int profile, int start) const {
  for (const Step& step : steps(layout, profile)) {
    if (step.start == start) return step.after;
  }
  return std::nullopt;
}

LayoutId MigSpace::Without(LayoutId layout, int profile, int start) const {
  const auto placement = PlacementOf(profile, start);
  TRANCHE_CHECK(placement.has_value());
  const Placements bit = Placements{1} << *placement;
  TRANCHE_CHECK_NE((layouts_.at(layout) & bit), 0);
  return *IdOf(layouts_[layout] & ~bit);
}

std::optional<LayoutId> MigSpace::Find(std::span<const MigInstance> instances) const {
  Placements chosen = 0;
  for (const MigInstance& instance : instances) {
    const auto profile =
        std::find_if(board_->profiles.begin(), board_->profiles.end(),
                     [&](const MigProfile& known) { return &known == instance.profile; });
    if (profile == board_->profiles.end()) return std::nullopt;
    const auto placement =
        PlacementOf(static_cast<int>(profile - board_->profiles.begin()), instance.start);
    if (!placement || (chosen >> *placement & 1) != 0) return std::nullopt;
    chosen |= Placements{1} << *placement;
  }
  return IdOf(chosen);
}

std::optional<std::size_t> MigSpace::PlacementOf(int profile, int start) const {
  for (std::size_t i = 0; i < placements_.size(); ++i) {
    if (placements_[i].profile == profile && placements_[i].start == start) return i;
  }
  return std::nullopt;
}

std::optional<LayoutId> MigSpace::IdOf(Placements chosen) const {
  const auto found = std::lower_bound(layouts_.begin(), layouts_.end(), chosen);
  if (found == layouts_.end() || *found != chosen) return std::nullopt;
  return static_cast<LayoutId>(found - layouts_.begin());
}

const MigSpace& MigSpaceOf(const MigBoard& board) {
  // All at once: tens of milliseconds at the first use, and a function-local constant needs no
  // lock.
  static const std::vector<MigSpace>& spaces = *[] {
    auto* all = new std::vector<MigSpace>;
    for (const MigBoard& known : MigBoards()) all->emplace_back(known);
    return all;
  }();
  for (const MigSpace& space : spaces) {
    if (&space.board() == &board) return space;
  }
  TRANCHE_CHECK(false);
  return spaces.front();
}

}  // namespace tranche
