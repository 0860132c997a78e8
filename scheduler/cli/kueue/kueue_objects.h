// GPUQuotas and GPUPools as objects of Kueue: who lets Kueue admit, and Tranche place and meter,
// keeps quotas in one place.
//
// A leaf is a ClusterQueue with a LocalQueue in each of its namespaces, a quota above it a Cohort,
// a line a flavor: nodes of the model, of the pool, or of both. Nominal, limits and weights mean
// the same in both (quota-model section 2 is Kueue's own model). What Kueue cannot say is left out,
// and a note tells of it. Source: API kueue.x-k8s.io/v1beta2 of Kueue 0.17.
//
// Pure; any thread. Cost: O(quotas x namespaces).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/selector.h"
#include "policy/spec.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/manifest.h"

namespace tranche::kueue {

// What people and clusters declare, as far as it matters here.
struct Declared {
  // By name.
  std::map<std::string, GpuQuota> quotas;
  std::map<std::string, GpuPool> pools;
  // Model -> values of the label nvidia.com/gpu.product of its nodes.
  std::map<std::string, std::set<std::string>> products;
  // By name; empty: none were given.
  std::map<std::string, Labels> namespaces;
};
// Adds the objects of a text: GPUQuotas, GPUPools, Nodes, Namespaces, and Lists of them; others are
// passed by. Errors: InvalidArgument naming text, object and what is wrong with it.
absl::Status Read(const Manifest& manifest, Declared& declared);

struct Exported {
  std::vector<Json> objects;
  std::vector<std::string> notes;  // what to do beside, and what was left out
};
Exported Export(const Declared& declared);
// YAML, the notes as comments before it.
std::string YamlOf(const Exported& exported);

}  // namespace tranche::kueue
