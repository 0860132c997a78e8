#include "bench/mig/tranche_policy.h"

#include <algorithm>
#include <array>
#include <memory>

#include "scheduler/scoring/mig_value.h"

namespace tranche::bench {
namespace {

constexpr int kArrivalsPerTable = 400;
// Counts are decayed by 1/1500 an arrival and start at 5 each; a hit counts kHit.
constexpr int64_t kDecay = 1500;
constexpr int64_t kHit = 1 << 20;
constexpr int64_t kFirstHits = 5;
// Moves are paid from a bucket in hundredths; a fairly full one lets a request have more of them.
constexpr int kMostSaved = 2000;
constexpr int kPlenty = 1600;
constexpr int kMove = 100;
constexpr int kEighthsPerMove = 4;
constexpr int kEighthsPerMoveOfPlenty = 2;

using Counts = std::array<int64_t, kMigProfiles>;

void Solve(MigPricer& pricer, const Counts& counts) {
  std::vector<int64_t> of_board(BenchBoard().profiles.size());
  for (std::size_t i = 0; i < kMigProfiles; ++i) {
    of_board[static_cast<std::size_t>(BenchProfiles()[i])] = counts[i];
  }
  pricer.SetMix(of_board);
  while (pricer.Work()) {
  }
}

class TranchePolicy : public MigPolicy {
 public:
  TranchePolicy(MigPricer pricer, bool learns, int moves)
      : pricer_(std::move(pricer)), learns_(learns), moves_(moves) {
    counts_.fill(kFirstHits * kHit);
  }

  std::optional<MigRoom> Choose(const MigFleet& fleet, std::size_t kind, double) override {
    if (learns_) Learn(kind);
    const int profile = BenchProfiles()[kind];
    std::optional<MigRoom> room =
        BestPlace(fleet.space(), pricer_.values(), fleet.layouts(), profile);
    if (!room && saved_ >= kMove) {
      room = MakeRoom(
          fleet.space(), pricer_.values(), fleet.layouts(), profile, saved_ / kMove,
          [](std::size_t, const MigInstance&) { return true; },
          saved_ >= kPlenty ? kEighthsPerMoveOfPlenty : kEighthsPerMove);
    }
    if (room) {
      saved_ = std::min(kMostSaved, saved_ - static_cast<int>(room->moves.size()) * kMove + moves_);
    }
    return room;
  }

 private:
  void Learn(std::size_t kind) {
    for (int64_t& count : counts_) count -= count / kDecay;
    counts_[kind] += kHit;
    if (++arrivals_ % kArrivalsPerTable == 0) Solve(pricer_, counts_);
  }

  MigPricer pricer_;
  const bool learns_;
  const int moves_;
  Counts counts_;
  int64_t arrivals_ = 0;
  int saved_ = 0;
};

}  // namespace

MigPolicyFactory MakeTranchePolicy(const MigMix& mix, bool known, int moves) {
  Counts counts;
  for (std::size_t i = 0; i < kMigProfiles; ++i) {
    counts[i] = known ? static_cast<int64_t>(mix.shares[i] * 1e9) : kFirstHits;
  }
  auto pricer = std::make_shared<MigPricer>(BenchSpace());
  Solve(*pricer, counts);
  return [pricer, known, moves](uint64_t) {
    return std::make_unique<TranchePolicy>(*pricer, !known, moves);
  };
}

}  // namespace tranche::bench
