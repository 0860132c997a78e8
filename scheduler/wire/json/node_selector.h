// Which nodes a spec allows, as Kubernetes writes it: node selectors, required node affinity and
// tolerations. Pods and device claims have it in the same words.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "scheduler/facts/node_constraints.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// "In", "NotIn", ... of a node selector's requirement; nullopt: none we know.
std::optional<NodeTerm::Operator> ParseNodeOperator(std::string_view name);

// spec.nodeSelector, required node affinity and tolerations; null: none of them is there. A
// selector term or a toleration with an operator we do not know matches nothing.
std::shared_ptr<const NodeConstraints> ReadConstraints(Object spec, FieldReader& reader);

// Whether the spec has what the constraints do not cover and kube-scheduler weighs: spread over
// domains, affinity between pods, preferred nodes, ports of the host, claims, and volumes that are
// not on every node. A kind of volume we do not know is one of those.
bool IsJudgedElsewhere(Object spec, FieldReader& reader);

}  // namespace tranche::wire
