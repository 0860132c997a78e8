// tranche-bench tenants: what quotas, lending and taking back do to waiting and to lost work.
//
// Protocol (benchmarks C1): tenants with quotas share one cluster; gang jobs of a trace arrive, run
// for their duration and are never resized. Modes: static, shared, borrow, reclaim-at-once,
// reclaim; the README beside this file says what each does. Checkpoints every 1,800 s of run time;
// an evicted job loses the time since its last one, pays 60 s on restart and returns with its first
// submission.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tranche::bench {

struct TenantsOptions {
  std::string jobs;
  std::string tenants;
  std::vector<std::string> modes = {"static", "shared", "borrow", "reclaim-at-once", "reclaim"};
  int window_hours = 336;             // utilisation is told of it
  std::vector<uint64_t> splits = {};  // seeds: instead of its tenants those drawn by each
  std::string out;                    // JSON file; empty: none
};

absl::Status RunTenants(const TenantsOptions& options);

}  // namespace tranche::bench
