// What running pods did with their devices since they are measured: the busiest hour of each, and
// the most memory it ever held.
//
// An hour counts once it is over, and only where nothing was missing in it for longer than
// kUseGoodFor: what happened in a gap is not known. Memory counts at once, since more of it is
// never too much to say. A pod whose devices become others, or that is gone, is forgotten.
// Integers; time comes as a value. Externally synchronised. Cost of Note: O(pods log pods +
// devices).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/facts/gpu_use.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// One measurement of one device of a pod.
struct DeviceSample {
  std::string device;               // its UUID, and "/" and the instance of one of MIG
  int permille = 0;                 // of the time that it worked, 0..1000
  std::optional<Mebibytes> memory;  // nullopt: not told
};
struct PodSample {
  PodUid uid;
  // Ascending, no two alike; empty: not all of them are measured.
  std::vector<DeviceSample> devices;
};

class UseHistory {
 public:
  // What was known before, of pods that may be there still. Before the first Note.
  void Restore(std::vector<PodWork> pods);
  // All pods that hold devices now: others are forgotten. A time before the last one begins every
  // hour anew. Those of which another hour counts now, in their order.
  std::vector<PodUid> Note(std::span<const PodSample> pods, Instant now);
  // nullptr: never measured.
  const WorkHistory* Find(const PodUid& uid) const;

 private:
  struct Record {
    WorkHistory work;
    Instant began;  // the hour under way
    Instant last;   // its last sample
    int64_t samples = 0;
    std::vector<int64_t> sums;  // of permille, parallel to work.devices
  };
  static void Begin(const PodSample& sample, Instant now, Record& record);
  // True: an hour is over.
  static bool Add(const PodSample& sample, Instant now, Record& record);

  std::map<PodUid, Record> records_;
};

}  // namespace tranche
