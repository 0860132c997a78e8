// What the simulated cluster knows at a moment: jobs, where they run, and who uses how much quota.
//
// Times are whole seconds from the start of the trace. Quotas are a flat tree: the cluster, and
// below it a leaf a tenant with the GPUs it owns as nominal, on one model's line.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "bench/tenants/cluster.h"
#include "bench/tenants/trace.h"
#include "quota/tree/charge.h"
#include "quota/tree/quota_tree.h"

namespace tranche::bench {

inline constexpr int64_t kCheckpointEvery = 1'800;  // of run time
inline constexpr int64_t kRestart = 60;             // before an evicted job does work again

struct JobState {
  int64_t kept = 0;  // work that is done and behind a checkpoint
  int evictions = 0;
  int run = 0;          // how often it started: an end announced in an earlier run is void
  int64_t working = 0;  // running: when this run began (begins) to do work
  Placement placement;  // empty: not running
  std::optional<int64_t> end;
  std::optional<int64_t> waits_for_moment;  // entitled, and since then waiting for a better one

  bool running() const { return !placement.empty(); }
  int64_t LastCheckpoint(int64_t now) const {
    return now <= working ? working : now - (now - working) % kCheckpointEvery;
  }
};

class World {
 public:
  explicit World(const Trace& trace);

  const Trace& trace() const { return trace_; }
  const Cluster& cluster() const { return cluster_; }
  const QuotaTree& tree() const { return tree_; }
  const Job& job(int id) const { return trace_.jobs[static_cast<std::size_t>(id)]; }
  const JobState& state(int id) const { return states_[static_cast<std::size_t>(id)]; }
  JobState& state(int id) { return states_[static_cast<std::size_t>(id)]; }
  QuotaId leaf(int tenant) const { return leaves_[static_cast<std::size_t>(tenant)]; }
  LineId line() const { return line_; }
  const std::set<int>& running() const { return running_; }
  int busy() const { return busy_; }

  // With the job its tenant still uses no more than its nominal.
  bool Entitled(int id) const;
  // There is room in the quotas for the job, be it borrowed.
  bool Admitted(int id) const;
  // GPUs the tenant uses beyond its nominal.
  int64_t Borrowed(int tenant) const;

  void Start(int id, const Placement& placement, int64_t now);
  void Stop(int id);
  // Stops it, keeping what is behind a checkpoint; returns the GPU-seconds of work lost.
  int64_t Evict(int id, int64_t now);

 private:
  const Trace& trace_;
  Cluster cluster_;
  QuotaTree tree_;
  LineId line_ = kNoLine;
  std::vector<QuotaId> leaves_;
  std::vector<JobState> states_;
  std::set<int> running_;
  int busy_ = 0;
};

inline Charge ChargeOfGpus(int64_t gpus) { return {gpus * kQuantaPerGpu, gpus * kQuantaPerGpu}; }

}  // namespace tranche::bench
