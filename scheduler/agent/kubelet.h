// What the agent asks of the kubelet of its node, over its two sockets.
//
// Thread rule: any thread; each call blocks for at most its timeout. Errors: Unavailable with what
// the kubelet or the transport said.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/turns/look.h"

namespace tranche::agent {

// The pods the kubelet knows, with the ids of `resource` that their containers hold, and of the
// agent's others: `whole`, by which GPUs are given whole, and MIG instances.
absl::StatusOr<std::vector<KubeletPod>> ListKubeletPods(const std::string& socket,
                                                        const std::string& resource,
                                                        const std::string& whole,
                                                        std::chrono::milliseconds timeout);

// Says that a device plugin for `resource` listens on `endpoint`, a socket beside the kubelet's.
absl::Status RegisterPlugin(const std::string& socket, const std::string& endpoint,
                            const std::string& resource, std::chrono::milliseconds timeout);

}  // namespace tranche::agent
