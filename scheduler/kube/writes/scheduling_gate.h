// Taking a scheduling gate off a pod: read where it stands, remove it there.
//
// Thread rule: a coroutine of the writing thread. Two calls, four where somebody else took a gate
// off at the same moment. Source: kube-client-protocol section 10.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "scheduler/kube/writes/api_calls.h"
#include "scheduler/ports/pod_writes.h"

namespace tranche::kube {

boost::asio::awaitable<WriteResult> DropGate(ApiCalls& calls, GateWrite write, TimePoint deadline);

}  // namespace tranche::kube
