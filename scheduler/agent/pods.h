// The pods of a node as the API server lists them -> what the agent needs of them.
//
// Pure functions but ReadPods, which blocks its thread for at most the timeout.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/kube/transport/credentials.h"
#include "scheduler/turns/look.h"
#include "topology/base/ids.h"

namespace tranche::agent {

// Those of a v1 PodList that are on `node` and have not ended. A pod that asks for `resource` in a
// way that cannot be read is there, with a record_problem. Errors: InvalidArgument for what is no
// PodList.
absl::StatusOr<std::vector<BoundPod>> DecodePods(std::string_view text, const NodeName& node,
                                                 std::string_view resource);

// Asks for the newest state. Errors: Unavailable with what the server said or why it did not.
absl::StatusOr<std::vector<BoundPod>> ReadPods(const kube::Credentials& credentials,
                                               const NodeName& node, std::string_view resource,
                                               std::chrono::milliseconds timeout);

}  // namespace tranche::agent
