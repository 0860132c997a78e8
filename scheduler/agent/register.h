// What the agent tells of its node: the annotation tranche.dev/agent-register, by which the server
// knows which GPUs there are and that records are obeyed (wire/nodes/agent_registers.h reads it).
//
// Pure but WriteRegister, which blocks its thread for at most the timeout.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/kube/transport/credentials.h"
#include "scheduler/turns/look.h"
#include "topology/base/ids.h"

namespace tranche::agent {

// {"v":1,"devices":[{"uuid","index","mib","healthy","type","problem","mig"}]}; one that the driver
// no longer sees is there, and is not healthy. "mig" as wire::ParseTrancheRegister has it.
std::string RenderRegister(const std::vector<Card>& cards);

// Errors: Unavailable with what the server said or why it did not.
absl::Status WriteRegister(const kube::Credentials& credentials, const NodeName& node,
                           const std::string& text, std::chrono::milliseconds timeout);

}  // namespace tranche::agent
