#include "bench/mig/fleet.h"

#include "topology/base/check.h"

namespace tranche::bench {

MigFleet::MigFleet(const MigSpace& space, int gpus)
    : space_(&space),
      layouts_(static_cast<std::size_t>(gpus), kEmptyLayout),
      at_(static_cast<std::size_t>(gpus * space.board().units)) {}

MigFleet::Id MigFleet::Place(int profile, const MigRoom& room) {
  const auto units = static_cast<std::size_t>(space_->board().units);
  std::vector<Id> moved;
  for (const MigMove& move : room.moves) {
    moved.push_back(at_[move.from_gpu * units + static_cast<std::size_t>(move.from.start)]);
  }
  for (const Id id : moved) Take(id);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    Put(moved[i], room.moves[i].to_gpu, room.moves[i].to_start);
  }
  lives_.push_back({.profile = profile});
  Put(lives_.size() - 1, room.gpu, room.start);
  return lives_.size() - 1;
}

void MigFleet::Remove(Id id) {
  Take(id);
  lives_[id].gone = true;
}

void MigFleet::Put(Id id, std::size_t gpu, int start) {
  Live& live = lives_[id];
  live.gpu = gpu;
  live.start = start;
  const std::optional<LayoutId> after = space_->With(layouts_[gpu], live.profile, start);
  TRANCHE_CHECK(after.has_value());
  gpus_in_use_ += layouts_[gpu] == kEmptyLayout;
  used_units_ += space_->used_units(*after) - space_->used_units(layouts_[gpu]);
  layouts_[gpu] = *after;
  const auto units = static_cast<std::size_t>(space_->board().units);
  at_[gpu * units + static_cast<std::size_t>(start)] = id;
}

void MigFleet::Take(Id id) {
  const Live& live = lives_[id];
  const LayoutId after = space_->Without(layouts_[live.gpu], live.profile, live.start);
  used_units_ += space_->used_units(after) - space_->used_units(layouts_[live.gpu]);
  gpus_in_use_ -= after == kEmptyLayout;
  layouts_[live.gpu] = after;
}

}  // namespace tranche::bench
