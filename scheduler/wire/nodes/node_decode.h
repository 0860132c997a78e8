// A Node object -> NodeFacts: allocatable, labels, conditions, what its node agent registers.
#pragma once

#include "absl/status/statusor.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// Errors: InvalidArgument when this is no Node object (metadata or its name missing, or a field of
// another JSON type than the API defines). Labels, quantities and annotations that cannot be read
// leave their fact unset and add a line to NodeFacts::problems.
absl::StatusOr<NodeFacts> DecodeNode(Element node);

}  // namespace tranche::wire
