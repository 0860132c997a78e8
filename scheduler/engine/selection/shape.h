// The shape of a request: everything that decides where it fits, and nothing that does not.
#pragma once

#include <string>

#include "scheduler/facts/pod_request.h"

namespace tranche {

// Appends a key that is equal exactly for requests of equal shape. Process-local, not for storage.
void AppendShape(const PodRequest& request, std::string& out);

// Appends what the pod's spec demands of nodes, likewise.
void AppendConstraints(const NodeConstraints& constraints, std::string& out);

// Equal in all that a pod may still change while it waits: its annotations, and while it is gated
// what its spec demands of nodes.
bool SameRequest(const PodRequest& left, const PodRequest& right);

// Selects cards by UUID, so that equal node states do not give equal answers.
inline bool SelectsDevices(const PodRequest& request) {
  return !request.uuids_any.empty() || !request.uuids_none.empty();
}

}  // namespace tranche
