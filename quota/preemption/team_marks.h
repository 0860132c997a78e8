// What teams hold in quota while victims go: marks made anew, of some leaves of one problem; as if
// what other plans are still to evict had gone, and as if it stayed.
//
// The marks are those of MarkLines (quota/tree/marking.h) over ReclaimProblem::held. Not
// thread-safe. Cost: Now O(units of the leaf) after a change, else constant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quota/preemption/reclaim.h"

namespace tranche {

// Other plans are carried out, or nothing comes of them.
enum class Promises : uint8_t { kKept, kBroken };
inline constexpr std::array kAllPromises = {Promises::kKept, Promises::kBroken};

class TeamMarks {
 public:
  // `problem` must outlive this.
  explicit TeamMarks(const ReclaimProblem& problem);

  // What a leaf holds in quota, on lines that are limited.
  struct InQuota {
    std::vector<Charge> by_line;  // `any` first
    // Quanta of both dimensions: on lines of models by falling rank, then on `any` likewise.
    std::vector<int64_t> by_rank;
  };
  // Before anybody went, and with those gone that went.
  const InQuota& Before(QuotaId leaf, Promises promises) const {
    return teams_[leaf].views[ViewOf(leaf, promises)].before;
  }
  const InQuota& Now(QuotaId leaf, Promises promises);
  // What there is to ask for: where no other plan takes anything, both are one.
  std::span<const Promises> all_promises() const {
    return std::span(kAllPromises).first(any_promised_ ? kAllPromises.size() : 1);
  }
  std::size_t ranks() const { return ranks_.size(); }
  // Of InQuota::by_rank: where the preemptor's rank counts.
  std::size_t PlaceOnModels() const { return own_rank_; }
  std::size_t PlaceOnAny() const { return ranks_.size() + own_rank_; }

  // -1: the unit goes, +1: it comes back. Requires: unit.held.
  void Take(const VictimUnit& unit, int sign);
  // Pieces of work that are looked at when one of the leaf goes.
  std::size_t SizeOf(QuotaId leaf) const { return teams_[leaf].pieces.size(); }

 private:
  struct Piece {
    const HeldUnit* held = nullptr;
    std::size_t rank = 0;              // place in ranks_
    std::vector<MarkUnit::Part> left;  // with what is promised
  };
  struct View {
    InQuota before;
    InQuota now;
    bool stale = true;  // `now`
  };
  struct Team {
    std::vector<std::size_t> pieces;   // as they fill nominal
    std::vector<ChargeLimit> nominal;  // by line
    bool is_promised = false;          // other plans are still to evict something of it
    std::array<View, kAllPromises.size()> views;
  };
  std::size_t ViewOf(QuotaId leaf, Promises promises) const {
    return teams_[leaf].is_promised ? static_cast<std::size_t>(promises) : 0;
  }
  void Count(QuotaId leaf, Team& team, Promises promises, InQuota& in_quota);

  const ReclaimProblem& problem_;
  std::vector<int> ranks_;  // falling
  std::size_t own_rank_ = 0;
  bool any_promised_ = false;
  std::vector<Piece> pieces_;         // parallel to ReclaimProblem::held
  std::vector<Team> teams_;           // by quota
  std::vector<ChargeLimit> rest_;     // scratch
  std::vector<MarkUnit::Part> less_;  // scratch
};

}  // namespace tranche
