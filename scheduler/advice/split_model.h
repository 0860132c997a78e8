// One GPU model of the fleet and the work that was put on it: how its GPUs must be divided for
// that.
//
// Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/advice/demand.h"
#include "scheduler/advice/fleet_split.h"
#include "scheduler/advice/split_cover.h"
#include "topology/mig.h"

namespace tranche {

// Pods of one kind, and how their class likes to share.
struct SplitNeed {
  DemandKind kind;
  int64_t pods = 0;
  int rank = 0;  // of the class
  std::vector<SharingMode> sharing;
};

// What one device of a need is on a model.
struct SplitUse {
  SplitPart::Use use = SplitPart::Use::kWhole;
  int profile = -1;      // kMig: index into the board's profiles
  int64_t replicas = 1;  // kTimeSliced
  int preference = 0;    // where that stands in the class's list; 0 the most wanted
};

class SplitOfModel {
 public:
  SplitOfModel(const std::string& model, const std::string& product, Mebibytes memory);

  // One GPU more there is.
  void AddCard(CardMode mode, Mebibytes memory);
  const std::string& model() const { return model_.model; }
  const std::string& product() const { return product_; }
  Mebibytes memory() const { return memory_; }

  // nullopt: this model cannot serve it, however many GPUs there were.
  std::optional<SplitUse> UseFor(const SplitNeed& need) const;
  // As many of `pods` as its GPUs hold beside what is there; returns how many. Requires: UseFor.
  // `need` outlives it.
  int64_t Assign(const SplitNeed& need, int64_t pods);
  void FallShort(const SplitNeed& need, int64_t pods);
  SplitModel Result();
  // The cover of its instances is not known to be the best one: by this many GPUs at most.
  int64_t doubt() const { return doubt_; }

 private:
  struct Assigned {
    const SplitNeed* need = nullptr;
    SplitUse use;
    int64_t devices = 0;
  };
  struct Division {
    int64_t whole = 0;
    InstanceCover mig;
    // Replicas and GPUs (0: larger ones have room), ascending.
    std::vector<std::pair<int64_t, int64_t>> shared;
    int64_t gpus() const;
  };

  std::optional<SplitUse> ShareOf(const SplitNeed& need) const;
  std::optional<int> SmallestProfile(int64_t milli, int64_t mib) const;
  int64_t ReplicasFor(const DemandKind& kind) const;
  Division Divide();
  std::string TextOf(const SplitNeed& need, const SplitUse& use, int64_t devices) const;
  std::string ServedBy(const std::vector<int>& cut, int64_t gpus, std::vector<int64_t>& left) const;
  std::string ServedWith(SplitPart::Use use, int64_t replicas) const;

  SplitModel model_;
  std::string product_;
  Mebibytes memory_;  // of the smallest card; zero: unknown
  std::optional<CoverFinder> cover_;
  std::vector<Assigned> assigned_;
  int64_t doubt_ = 0;
};

}  // namespace tranche
