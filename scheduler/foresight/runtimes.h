// How long work runs, learned from work of its like that ended: how long is it likely to run on?
//
// Likeness has five levels: namespace, name without what is made up, class and size; then without
// the name; class and size; class; all. The narrowest level with kEnough ends answers. Work that
// was evicted or still runs is censored: it ran at least so long (Kaplan-Meier).
//
// Integers: chances are millionths. Plain values, externally synchronised. Cost: Add O(levels);
// a curve O(n log n) of the runs of its level; a draw O(log n). Bounded: kMostRuns of the newest
// runs of a level, kMostKinds kinds.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "scheduler/facts/metering.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reclaim.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

inline constexpr int64_t kCertain = 1'000'000;  // millionths

// What work is like.
struct RunKind {
  std::string ns;
  std::string stem;  // its name without what controllers make up; empty: not known
  std::string workload_class;
  int64_t size = 0;  // whole GPUs, rounded up to a power of two; 0: less than one
};
RunKind RunKindOf(const PodName& pod, const std::string& workload_class, MilliGpu gpus);
// "train-7f9c4d-x2x9z" is "train", "sweep-12" is "sweep".
std::string StemOf(std::string_view name);
MilliGpu GpusOf(const PodRequest& request);
MilliGpu GpusOf(const std::vector<MeterPart>& parts);

// What ends at a steady rate after that mean time has ended by then with that chance.
Millis SteadyEnd(Millis mean, int64_t millionths);

// The chance to run longer than so long.
class SurvivalCurve {
 public:
  struct Run {
    Millis ran;
    bool ended = true;  // false: it ran at least so long
  };
  explicit SurvivalCurve(std::vector<Run> runs);
  int64_t ends() const { return ends_; }
  // By when has work of that age ended with that chance, counted from its start? Beyond the longest
  // run that ended, ends are taken to come at the mean rate of all. Requires: ends() > 0.
  Millis QuantileFrom(Millis age, int64_t millionths) const;

 private:
  struct Step {
    Millis at;
    int64_t left = 0;  // millionths of millionths
  };
  std::vector<Step> steps_;  // ascending
  int64_t ends_ = 0;
  Millis mean_{0};  // time of all runs over ends
};

class Runtimes {
 public:
  static constexpr int64_t kEnough = 5;
  static constexpr std::size_t kMostRuns = 512;
  static constexpr std::size_t kMostKinds = 4'096;
  static constexpr Millis kArrivalSpan = std::chrono::hours(24);
  // Pods of a namespace, class and size that are there.
  struct Present {
    int64_t begun = 0;                             // during the span, and runs
    int64_t fresh = 0;                             // of these, those that came during it
    int64_t waits = 0;                             // and came during it
    std::optional<Instant> oldest = std::nullopt;  // of those that wait; nullopt: not known
  };

  void Add(const RunKind& kind, SurvivalCurve::Run run);
  // Work of the kind was let in; nullopt: when it came is not known.
  void NoteBegun(const RunKind& kind, Instant at, std::optional<Instant> came);
  // How far apart work of its namespace, class and size came on average during kArrivalSpan;
  // nullopt: too little of it came to say. What was let in need not have come then: a queue that
  // empties looks like one to which much comes. Where it is not known when work came, as much of it
  // did as of the part of it that runs still.
  std::optional<Millis> GapOf(const RunKind& kind, Instant now, const Present& present) const;
  // What the engine journals, as it comes.
  void Note(const MeterEvent& event);
  // Its use that ends next was cut short.
  void NoteEvicted(const PodUid& uid) { cut_short_.insert(uid); }
  // What the ledger remembers.
  void Learn(const MeterHistory& history);
  int64_t runs() const { return runs_; }

  // Runs by the keys of a kind's levels, narrowest first.
  static std::vector<std::string> LevelsOf(const RunKind& kind);
  // Null: nothing of that key ended.
  const std::deque<SurvivalCurve::Run>* RunsOf(const std::string& key) const;

 private:
  std::unordered_map<std::string, std::deque<SurvivalCurve::Run>> runs_of_;  // looked up only
  std::deque<std::string> kinds_;                                            // oldest first
  struct Begun {
    Instant at;
    std::optional<Instant> came;
  };
  std::map<std::string, std::deque<Begun>> begun_;  // by the second level's key; newest last
  std::unordered_map<PodUid, Instant> running_;     // looked up only
  std::unordered_set<PodUid> cut_short_;            // likewise
  int64_t runs_ = 0;
};

// The curves of one moment, with what runs now as censored; made when they are asked for.
class RunCurves {
 public:
  explicit RunCurves(const Runtimes& runtimes) : runtimes_(runtimes) {}
  // It runs, so long by now. Before the first question.
  void AddRunning(const RunKind& kind, Millis age);
  // Null: nothing like it has ended. Good as long as this is.
  const SurvivalCurve* CurveOf(const RunKind& kind);

 private:
  const Runtimes& runtimes_;
  std::map<std::string, std::vector<SurvivalCurve::Run>> running_;
  std::map<std::string, SurvivalCurve> curves_;
};

}  // namespace tranche
