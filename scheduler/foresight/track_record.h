// What was foretold beside what then happened: how far from the truth are forecasts of this
// cluster?
//
// Both ends of a new forecast's span are moved by what would have put eight in ten starts of the
// last two weeks between them, as a part of their spans (ADR 0068): conformalised quantile
// regression, Romano, Patterson and Candes, NeurIPS 2019, in its form that divides by the width of
// the span. Pods of one team that waited in one quarter of a day waited for the same reasons, so
// that all of them together count once. A pod that waits still was foretold too early by so much at
// least (Kaplan-Meier).
//
// Pure and deterministic. Plain values, externally synchronised. Integers: chances and parts of
// spans are millionths. Bounded: kMostKept forecasts, the oldest quarters are forgotten first.
// Cost: Move O(pods that wait) and, once a minute, O(n log n) of what is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/foresight/forecast.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

struct Weighed {
  int64_t value = 0;
  int64_t weight = 1;
  bool known = true;  // false: it is at least that much
};
// The value by which so many millionths of the weight are reached; the largest where they never
// are, 0 of none.
int64_t WeighedQuantile(std::vector<Weighed> values, int64_t millionths);

class TrackRecord {
 public:
  static constexpr std::size_t kMostKept = 32'768;
  // Of one team in one quarter of a day, and of these at one look.
  static constexpr std::size_t kMostOfEpisode = 32;
  static constexpr std::size_t kMostOfLook = 8;
  // Episodes in which somebody started, before spans are widened, and before they are narrowed.
  static constexpr int64_t kEnough = 5;
  static constexpr int64_t kEnoughToNarrow = 20;

  // Before the forecasts of a copy in which it has started.
  void NoteStart(const PodUid& uid, Instant at);
  // Moves what rehearsals said, in place, and keeps some of it to be judged. Pods that did not
  // start and are no longer among them are gone. Requires: made no earlier than the last ones.
  void Move(Forecasts& forecasts);
  std::size_t kept() const { return kept_; }

 private:
  using Times = std::array<Instant, 3>;  // by 10, 50 and 90 %; ascending
  // Of its first and its last time, in millionths of a span.
  using Moves = std::array<int64_t, 2>;
  // A quarter of a day, counted from the epoch, and a team.
  using Episode = std::pair<int64_t, std::string>;
  struct Told {
    int64_t number = 0;  // ascending in an episode
    Instant at;
    Times said;   // by rehearsals
    Times shown;  // after they were moved
    bool exact = false;
    bool started = false;
    Instant until;  // it started, or was last seen to wait
  };
  struct Waiting {
    std::vector<std::pair<Episode, int64_t>> told;  // numbers
    Instant seen;
  };
  using Candidate = std::pair<const Forecast*, Times>;  // what was said; moved by now

  static Millis UnitOf(const Times& times);
  // Null: it was forgotten.
  Told* Find(const std::pair<Episode, int64_t>& of);
  static Times Moved(const Times& times, const Moves& moves, Instant now);
  Moves Learned(Instant at, bool exact) const;
  void LearnAgain(Instant at);
  void Judge(const Told& told);
  void CloseGone(const Forecasts& forecasts);
  void Keep(const Episode& episode, std::vector<Candidate> candidates, Instant at, bool exact);
  void Forget(Instant at);

  std::map<Episode, std::vector<Told>> episodes_;
  std::unordered_map<PodUid, Waiting> waiting_;  // order is never looked at
  std::size_t kept_ = 0;
  int64_t next_ = 0;
  JudgedSpans judged_;
  std::optional<Instant> learned_at_;
  std::array<Moves, 2> moves_{};  // of forecasts that are not exact, and of those that are
};

}  // namespace tranche
