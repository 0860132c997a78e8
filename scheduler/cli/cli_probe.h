// tranche probe: tells the cluster what is known on a GPU node alone: how its GPUs are connected,
// their UUIDs and MIG layout, and which pods hold them. Runs on every GPU node.
#pragma once

#include <iosfwd>
#include <string>

#include "scheduler/probe/surveyor.h"

namespace tranche {

struct ProbeOptions {
  std::string node;              // whose annotations are written; not needed to print
  std::string interval = "30s";  // between looks, give or take a tenth
  bool once = false;             // one look; its error is the exit code
  bool print = false;            // to `out` instead of the cluster
  std::string kubeconfig;        // empty: from inside the cluster
  probe::Sources sources;
};

// Returns the exit code: 0 done, 1 with one line on `err` when there is no NVML library or, with
// `once`, something failed; 2 for bad options. Without `once` it looks until SIGTERM or SIGINT,
// which end the process at once. Call from the main thread.
int RunProbe(const ProbeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tranche
