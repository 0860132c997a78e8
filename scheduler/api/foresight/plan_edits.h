// The edits of POST /api/v1/plan and of tranche replay: objects that come or change, objects that
// go.
//
// Thread rule: pure. Cost: O(body) and a judgement of all policy objects.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/policy_store.h"
#include "scheduler/foresight/plan.h"

namespace tranche {

// One edit: an object as it would be, or that goes.
struct ObjectEdit {
  std::string kind;
  std::string name;
  std::string json;   // empty: it goes
  std::string where;  // in the body, for errors
};

// Edits as PolicyStore and NodeFacts take them, in their order. `body` and errors as below.
absl::StatusOr<std::vector<ObjectEdit>> ReadObjectEdits(std::string_view body, std::size_t most);

// What is there before the edits.
struct PlanGround {
  PolicyStore store;   // what is declared; the edits are made to it
  GpuPolicy defaults;  // governs where no GPUPolicy does
  std::set<std::pair<std::string, std::string>> objects;  // kind, name
};

// `body`: {"objects":[...],"delete":[{"kind","name"}]}, a List, or one object. Errors:
// InvalidArgument naming the object, what was expected and what was found; also for more than
// `most` of them, and for an edit that would not be in force as written.
absl::StatusOr<PlanEdits> ReadPlanEdits(std::string_view body, std::size_t most, PlanGround ground);

}  // namespace tranche
