// What a node is worth to pods that want the same of resource claims: remembered until the devices
// there change.
//
// Pods of one template ask for the same again and again, and of thousands of nodes a claim changes
// one. Externally synchronised. Cost: a look-up a node; an outdated node costs one more trial the
// next time it is asked about. Bounded by kMostWishes times the nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quota/tree/model_charge.h"
#include "scheduler/dra/model.h"
#include "scheduler/index/node_names.h"

namespace tranche {

class ClaimScores {
 public:
  static constexpr std::size_t kMostWishes = 32;  // the one not asked for the longest makes room

  struct Score {
    int64_t cost = 0;  // lower is better
    int parts = 0;     // index into Wish::parts(); 0: nothing would be charged there
  };

  // Claims that ask for the same, whoever they are of.
  class Wish {
   public:
    // nullptr: not known, or no longer.
    const Score* Find(NodeId id) const {
      return id < scores_.size() && scores_[id].known ? &scores_[id].score : nullptr;
    }
    // Requires: a node's id.
    const Score& Put(NodeId id, int64_t cost, const std::vector<ModelCharge>& parts);
    // It is to be asked for again.
    void Forget(NodeId id) { scores_[id].known = false; }
    // What a node would be charged; few nodes differ in it.
    const std::vector<std::vector<ModelCharge>>& parts() const { return parts_; }

   private:
    friend class ClaimScores;
    struct Entry {
      Score score;
      bool known = false;
    };
    std::vector<dra::Claim> claims_;
    std::vector<Entry> scores_;  // by node
    std::vector<std::vector<ModelCharge>> parts_{{}};
    uint64_t used_ = 0;
  };

  // Good until the next call. Requires: no claim is allocated.
  Wish& Of(std::span<const dra::Claim* const> claims);
  void Outdate(NodeId id);
  void Clear() { wishes_.clear(); }

 private:
  std::vector<Wish> wishes_;
  uint64_t asked_ = 0;
};

}  // namespace tranche
