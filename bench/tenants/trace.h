// A trace of jobs and the tenants that own the cluster: two CSV files.
//
//   jobs     vc,job,submit_s,gpus,duration_s   whole GPUs; ascending submit_s
//   tenants  vc,nodes[,...]                    nodes of 8 GPUs in the tenant's quota
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::bench {

inline constexpr int kGpusPerNode = 8;

struct Job {
  std::string name;
  int tenant = 0;        // position in Trace::tenants
  int64_t submit = 0;    // s
  int gpus = 0;          // of a gang; above a node's it spans several
  int64_t duration = 0;  // s, when it runs
};

struct Tenant {
  std::string name;
  int nodes = 0;
};

struct Trace {
  std::vector<Tenant> tenants;
  std::vector<Job> jobs;

  int nodes() const;
};

// The same jobs, of 4 to 8 other tenants of unequal sizes, drawn by the seed; each job is one of
// theirs by chance. Nodes go by what their jobs take, and each tenant has at least as many as its
// largest gang.
Trace SplitAtRandom(const Trace& trace, uint64_t seed);

// Errors: InvalidArgument naming file and line: what was expected, what was found.
absl::StatusOr<Trace> ReadTrace(const std::string& jobs, const std::string& tenants);

}  // namespace tranche::bench
