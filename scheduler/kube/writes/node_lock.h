// Taking and giving back the lock on a node: read, decide, write on condition that nothing was
// written between.
//
// Thread rule: coroutines of the writing thread. Two calls each, four where somebody else wrote to
// the node at the same moment. Source: request-dialects sections 4.4 and 15, kube-client-protocol
// section 10, hazard 16.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "scheduler/kube/writes/api_calls.h"
#include "scheduler/ports/node_writes.h"

namespace tranche::kube {

boost::asio::awaitable<NodeLockResult> TakeNodeLock(ApiCalls& calls, NodeLockWrite write,
                                                    TimePoint deadline);
boost::asio::awaitable<NodeLockResult> DropNodeLock(ApiCalls& calls, NodeLockWrite write,
                                                    TimePoint deadline);

}  // namespace tranche::kube
