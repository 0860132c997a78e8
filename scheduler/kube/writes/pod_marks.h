// Annotations of a pod, written on condition of what they were: read, compare, write the version
// that was read.
//
// They go through the status of the pod, which the API server lets change a pod's annotations and
// nothing of its spec (pkg/registry/core/pod/strategy.go, podStatusStrategy.PrepareForUpdate): no
// right on whole pods is needed.
//
// Thread rule: a coroutine of the writing thread. Two calls, four where somebody else wrote to the
// pod at the same moment. Source: kube-client-protocol section 10.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "scheduler/kube/writes/api_calls.h"
#include "scheduler/ports/pod_marks.h"

namespace tranche::kube {

boost::asio::awaitable<WriteResult> MarkPod(ApiCalls& calls, PodMarkWrite write,
                                            TimePoint deadline);

}  // namespace tranche::kube
