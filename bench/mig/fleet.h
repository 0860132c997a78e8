// The GPUs of a run and the instances that live on them.
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/scoring/mig_room.h"
#include "topology/mig_space.h"

namespace tranche::bench {

class MigFleet {
 public:
  using Id = std::size_t;  // of an instance, in order of arrival
  struct Live {
    int profile = 0;  // of the board
    std::size_t gpu = 0;
    int start = 0;
    bool gone = false;
  };

  MigFleet(const MigSpace& space, int gpus);

  const MigSpace& space() const { return *space_; }
  const std::vector<LayoutId>& layouts() const { return layouts_; }
  const std::vector<Live>& lives() const { return lives_; }
  int used_units() const { return used_units_; }
  int gpus_in_use() const { return gpus_in_use_; }

  // Carries the moves out, all leaving before the first arrives, then adds the instance.
  Id Place(int profile, const MigRoom& room);
  void Remove(Id id);

 private:
  void Put(Id id, std::size_t gpu, int start);
  void Take(Id id);

  const MigSpace* space_;
  std::vector<LayoutId> layouts_;
  std::vector<Live> lives_;
  std::vector<Id> at_;  // by GPU and start
  int used_units_ = 0;
  int gpus_in_use_ = 0;
};

}  // namespace tranche::bench
