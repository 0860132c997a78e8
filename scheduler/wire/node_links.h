// What annotations of a node say about its GPUs' links and who holds them.
// Source: request-dialects section 4.2, gpu-topology section 5; the probe's form: docs/gangs.md and
// scheduler/probe.
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

// tranche.dev/probe, version 1.
// Errors: InvalidArgument likewise; another version.
absl::StatusOr<NodeProbe> ParseNodeProbe(std::string_view text);

}  // namespace tranche::wire
