// What annotations of a node say about its GPUs' links and who holds them.
// Source: request-dialects sections 4.2 and 10, gpu-topology section 5; the probe's form:
// docs/gangs.md and scheduler/probe.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/node_facts.h"
#include "topology/machine/machine_sources.h"

namespace tranche::wire {

// hami.io/node-nvidia-score: [{"uuid":"GPU-a","score":{"GPU-b":300}}].
// Errors: InvalidArgument naming what was expected, found and where; more than 64 GPUs.
absl::StatusOr<std::vector<PairScore>> ParseHamiScores(std::string_view text);

// nvidia.com/node-device-topology of vgpu-manager, as the same points:
// [{"index":0,"links":{"1":[2,7]}}] by index of the register, whose `devices` tell the UUIDs. A
// link is a way over PCIe (1, between sockets, to 6, one board), or 7 and more for 1 NVLink and
// more. Errors: InvalidArgument likewise; a GPU that is not in the register.
absl::StatusOr<std::vector<PairScore>> ParseVgpuManagerLinks(
    std::string_view text, const std::vector<AgentDevice>& devices);

// tranche.dev/probe, version 1.
// Errors: InvalidArgument likewise; another version.
absl::StatusOr<NodeProbe> ParseNodeProbe(std::string_view text);

}  // namespace tranche::wire
