// How a pod may be taken away: its owner, its labels and its last checkpoint. Only the preemption
// planner asks; it is read of pods that ask for GPUs alone.
#pragma once

#include <optional>

#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {

// Fills owner, controller, evictable, grace, labels, checkpointed_at, and what annotations say of
// scaling. A time that cannot be read is none.
void ReadEvictionFacts(Object metadata, std::optional<Object> spec,
                       const PodAnnotations& annotations, FieldReader& reader, PodFacts& pod);

}  // namespace tranche::wire
