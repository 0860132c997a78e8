// Which containers of a pod hold devices at the same moment. Long-running ones (app containers and
// sidecars) all run together; an init container runs beside itself and the sidecars started before
// it. Source: kube-client-protocol section 18.
#pragma once

#include "scheduler/facts/pod_request.h"

namespace tranche {

inline bool IsLong(const PodRequest& request, const Ask& ask) {
  return request.containers[static_cast<std::size_t>(ask.container)].role != ContainerRole::kInit;
}

// Does a device of `other` count against one of `ask`? Asked of long-running containers before init
// containers.
inline bool RunsBeside(const PodRequest& request, const Ask& ask, const Ask& other) {
  if (ask.container == other.container) return true;
  if (IsLong(request, ask)) return IsLong(request, other);
  return other.container < ask.container &&
         request.containers[static_cast<std::size_t>(other.container)].role ==
             ContainerRole::kSidecar;
}

}  // namespace tranche
