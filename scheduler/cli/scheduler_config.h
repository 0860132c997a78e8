// The KubeSchedulerConfiguration that wires kube-scheduler to Tranche, as commented YAML.
//
// Source: kube-scheduler-extender sections 2, 3.1, 3.3 and 6.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tranche {

inline constexpr int kMostClusterNodes = 100'000;

// The percentageOfNodesToScore for a cluster of so many nodes: as many as let about 1,000 nodes
// pass kube-scheduler's own filters before it stops looking, at least 5. Requires: 1 <= nodes <=
// kMostClusterNodes. Source: bench/RESULTS.md, "Where kube-scheduler looks at a sample".
int PercentageOfNodes(int nodes);

struct SchedulerConfigOptions {
  std::string server = "http://127.0.0.1:8080";
  std::string scheduler_name = "gpu-scheduler";
  std::string kubeconfig = "/etc/kubernetes/scheduler.conf";
  // True: kube-scheduler asks Tranche about every pod of this process. False: only about pods that
  // name an NVIDIA resource; pods with nothing but Tranche annotations are then not seen.
  bool all_pods = true;
  // Of the cluster, 1 to kMostClusterNodes; nullopt: kube-scheduler looks at all nodes there are.
  std::optional<int> nodes;
  // TLS, for https:// servers. Without ca_file kube-scheduler would not verify anything.
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
};

// Errors: InvalidArgument when the server URL and the TLS files do not go together, or a text
// cannot stand in the file.
absl::StatusOr<std::string> MakeSchedulerConfig(const SchedulerConfigOptions& options);

}  // namespace tranche
