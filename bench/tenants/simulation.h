// Runs a trace to its end under one policy: a discrete event simulation.
//
// After every arrival, end and look-again the waiting jobs are gone through in order of submission;
// a later job may start where an earlier one does not fit, but a size that has failed in a pass is
// not tried again in it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/tenants/trace.h"

namespace tranche::bench {

// How GPUs go to tenants.
struct SharingPolicy {
  std::string name;
  bool partitioned = false;  // each tenant on its own nodes
  bool quotas = false;       // work inside a quota first, then what is idle is lent
  bool reclaims = false;     // work inside a quota takes back what was lent, by PlanReclaim
  // What is idle is lent to the tenant that borrows the smallest share of its nominal, as the
  // product does, then in order of submission. Else in order of submission alone.
  bool lends_fairly = false;
  // How long a job waits at most for its victims to reach a checkpoint, s; 0: it takes at once.
  int64_t patience = 0;
};

// By the names of --mode; nullopt: there is none.
std::optional<SharingPolicy> PolicyNamed(std::string_view name);
std::string PolicyNames();  // "static, shared, ..."

struct Outcome {
  std::vector<int64_t> ends;  // by job, s
  double utilisation = 0;     // share of all GPUs in use, within the window
  int64_t evictions = 0;
  int64_t lost_gpu_seconds = 0;     // work since the last checkpoint
  int64_t restart_gpu_seconds = 0;  // spent on coming back
};

// `window`: s; utilisation counts in [0, window). `progress` is told how many jobs have ended.
Outcome Simulate(const Trace& trace, const SharingPolicy& policy, int64_t window,
                 const std::function<void(std::size_t)>& progress);

}  // namespace tranche::bench
