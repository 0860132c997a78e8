// What the cluster was asked for over the last days: how many pods of each kind wanted devices at
// the same time, running or waiting. In memory; what a ledger recorded can be told at a start.
//
// Hourly rows in a ring of a week. Integers; time comes as a value. Externally synchronised.
// Cost: O(1) amortised a change (a kind not met before: O(kinds) once there are many), rows
// bounded.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "topology/base/units.h"

namespace tranche {

// What a pod of this kind wants, as far as dividing a fleet is concerned.
struct DemandKind {
  std::string workload_class;  // empty: none
  std::string models;          // comma separated models_any; empty: any
  std::string mig_profile;     // canonical; empty: cards
  int64_t devices = 1;         // cards or instances
  // Of each card: 1000 whole; 0: not said (a replica, memory alone), or the profile says.
  int64_t milli = 1000;
  int64_t mib = 0;  // of each card; 0: not said, or all of a whole card
  friend auto operator<=>(const DemandKind&, const DemandKind&) = default;
};

// The kinds of a request, ascending: asks of one size count together (init containers beside the
// sidecars before them, not beside the rest), asks of several sizes give a kind each.
std::vector<DemandKind> KindsOf(const PodRequest& request, const std::string& workload_class);

struct DemandRow {
  DemandKind kind;
  int64_t now = 0;         // pods that want it at this moment, running or waiting
  int64_t waiting = 0;     // of these, without devices
  int64_t peak = 0;        // most at a time in the recorded span
  int64_t mean_milli = 0;  // pods at a time on average over the recorded span, thousandths
  int64_t arrivals = 0;    // in the recorded span
};

class DemandLog {
 public:
  static constexpr int kHours = 168;
  static constexpr std::size_t kMostKinds = 256;

  // A pod began to want these kinds (it appeared), got devices, ended. A kind that was forgotten
  // for want of room is ignored until a pod of it begins.
  void Began(const DemandKind& kind, Instant now);
  // The same of one that will be told of again by who finds it there: it arrives then.
  void WasThere(const DemandKind& kind, Instant now);
  void Placed(const DemandKind& kind, Instant now);
  void Ended(const DemandKind& kind, bool was_placed, Instant now);
  // Ascending kind, without those nobody wanted in the recorded span: since since(), at most a
  // week. A time before the last one told counts as that.
  std::vector<DemandRow> Rows(Instant now) const;
  // Since when there are records; Instant(): never.
  Instant since() const { return since_; }

 private:
  struct Hour {
    int64_t peak = 0;    // most pods that were there for any while
    int64_t pod_ms = 0;  // pods x time
    int64_t arrivals = 0;
  };
  struct Record {
    int64_t pods = 0;
    int64_t waiting = 0;
    Instant last;  // the ring is true up to here
    std::array<Hour, kHours> ring{};
    // The hour of `last`, which is the newest of the ring.
    Hour& Newest();
    void AdvanceTo(Instant now);
  };

  // Advanced to `now`; nullptr: unknown.
  Record* Find(const DemandKind& kind, Instant now);
  // nullptr: no room.
  Record* Begin(const DemandKind& kind, Instant now);
  // nullptr: no room.
  Record* FindOrAdd(const DemandKind& kind, Instant now);

  Instant since_;
  std::map<DemandKind, Record> records_;
};

}  // namespace tranche
