// The workload a cluster sees, learned from arrivals: decayed counts of what pods ask of GPUs.
//
// Two memories of each type of request: a recent one (0.9995 of it is left after the next arrival)
// that says what is to come soon, and a lasting one (0.9999), because rare large requests must not
// be forgotten (benchmarks A7). Integers only. A snapshot is taken after enough arrivals; the
// recent memory is taken over only when its shares moved, since much that is computed goes stale
// with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/facts/pod_request.h"

namespace tranche {

// Requests alike in all that decides which rooms they fit. A pod with several asks counts as one
// type for each of them, with its part of the pod's CPU.
struct MixType {
  std::string key;  // tells types apart, nothing more
  // One ask; cpu, models, min_gpu_memory and style of the pods; all else default.
  PodRequest request;
  // Decayed counts, as shares in MixLearner::kAll parts.
  int64_t recent = 0;
  int64_t lasting = 0;

  const Ask& ask() const { return request.asks.front(); }
};

// Appends what tells the type of `ask` from others.
void AppendTypeKey(const PodRequest& request, const Ask& ask, MilliCpu cpu, std::string& key);

struct Mix {
  std::vector<MixType> types;  // ascending key: the order says nothing
  int64_t one = 0;             // share of the lasting memory that one arrival has now
  // Pods that ended per pod that came, recent memory, in MixLearner::kAll parts, at most kAll: none
  // while a cluster fills for the first time, nearly all when it is in balance.
  int64_t turnover = 0;
  uint32_t version = 0;  // grows when the recent memory or the turnover moved
};

enum class MixChange : uint8_t {
  kNone,
  kLasting,  // a new snapshot of the lasting memory and of what types there are
  kAll,      // of the recent memory and the turnover too
};

class MixLearner {
 public:
  static constexpr int64_t kAll = int64_t{1} << 24;
  static constexpr std::size_t kMaxTypes = 1024;

  // Until the first snapshot, after 16 arrivals, common requests stand for the mix: half a card and
  // one, two, four and eight cards, alike often.
  MixLearner();

  // Counts an arrival; once per pod. Pods that ask no GPU are ignored. What became of mix().
  MixChange Arrived(const PodRequest& request);
  // A pod that held devices has ended.
  void Departed(const PodRequest& request);
  // The last snapshot.
  const Mix& mix() const { return mix_; }
  // Of this very moment, version 0. Cost: a copy of every type.
  Mix Now() const;
  int64_t arrivals() const { return arrivals_; }

 private:
  static constexpr int64_t kFirstOne = int64_t{1} << 20;
  struct Blank {};
  explicit MixLearner(Blank) {}

  void Count(const PodRequest& request, const Ask& ask, int64_t units);
  void DropRarest();
  // One arrival is over. True: all counts of that memory are to be divided by kShrink.
  static bool Age(int64_t& one, int64_t arrivals);

  std::map<std::string, MixType, std::less<>> counts_;
  // What the next arrival counts in each memory: instead of every count shrinking at each arrival,
  // this grows.
  int64_t recent_one_ = kFirstOne;
  int64_t lasting_one_ = kFirstOne;
  int64_t came_ = 0;   // pods, recent memory
  int64_t ended_ = 0;  // likewise
  int64_t arrivals_ = 0;
  int64_t next_snapshot_ = 16;
  Mix mix_;
  Mix sequenced_;    // the last one whose recent memory was taken
  std::string key_;  // kept for its memory
};

}  // namespace tranche
