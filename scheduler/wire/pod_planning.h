// What only the preemption planner asks of a pod: which nodes its spec allows, and how it may be
// taken away. Read of pods that ask for GPUs alone.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/field_reader.h"
#include "scheduler/wire/json.h"
#include "scheduler/wire/pod_dialects.h"

namespace tranche::wire {

// "In", "NotIn", ... of a node selector's requirement; nullopt: none we know.
std::optional<NodeTerm::Operator> ParseNodeOperator(std::string_view name);

// spec.nodeSelector, required node affinity and tolerations; null: none of them is there. A
// selector term or a toleration with an operator we do not know matches nothing.
std::shared_ptr<const NodeConstraints> ReadConstraints(Object spec, FieldReader& reader);

// Fills owner, evictable, labels and checkpointed_at. A time that cannot be read is none.
void ReadEvictionFacts(Object metadata, const PodAnnotations& annotations, FieldReader& reader,
                       PodFacts& pod);

}  // namespace tranche::wire
