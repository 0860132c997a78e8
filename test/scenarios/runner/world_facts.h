// What the facts of a scenario say, as values of the engine: nodes, pods, and what administrators
// declare. With world.h the only place where the runner knows types of the product.
//
// Wrong options are kept in the Options, whose Done() the caller asks.
#pragma once

#include <string>

#include "policy/disruption_budget.h"
#include "policy/spec.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "test/scenarios/runner/words.h"

namespace tranche::scenario {

// Pods whose name is written without a namespace are in this one.
inline constexpr const char* kPlainNamespace = "team";

NodeFacts NodeOf(const std::string& name, Options& options);
// A pod as it waits; `name` is "pod" or "namespace/pod".
PodFacts PodOf(const std::string& name, Options& options);
GpuQuota QuotaOf(const std::string& name, Options& options);
GpuBudget BudgetOf(const std::string& name, Options& options);
GpuClass ClassOf(const std::string& name, Options& options);
GpuPolicy PolicyOf(Options& options);
DisruptionBudget DisruptionBudgetOf(const std::string& name, Options& options);

}  // namespace tranche::scenario
