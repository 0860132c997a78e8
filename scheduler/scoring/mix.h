// The workload a cluster sees, learned from arrivals: decayed counts of what pods ask of cards.
//
// Fragmentation is measured against this mix (FGD, USENIX ATC'23; benchmarks A2). Integers only.
// A change of the mix makes cached scores stale, so a new snapshot is taken only after enough
// arrivals and only when the shares moved by more than a twentieth in total.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "topology/base/units.h"

namespace tranche {

// One kind of request: `cards` cards with this much free on each.
struct MixClass {
  int64_t milli = 0;  // compute of each card
  MemoryNeed memory;  // of each card
  int64_t cards = 1;
  std::vector<std::string> models_any;  // lower case; empty: any
  int64_t count = 0;                    // decayed; shares are count / Mix::total
};

struct Mix {
  std::vector<MixClass> classes;  // descending count, then key
  int64_t total = 0;
  uint32_t version = 0;  // grows with every snapshot
};

class MixLearner {
 public:
  MixLearner();
  // Counts an arrival; once per pod. Pods that ask for MIG only do not shape the mix of cards.
  void Arrived(const PodRequest& request);
  const Mix& mix() const { return mix_; }

 private:
  void Snapshot();

  std::map<std::string, MixClass> counts_;
  int64_t arrivals_ = 0;
  int64_t next_snapshot_ = 16;
  Mix mix_;
};

}  // namespace tranche
