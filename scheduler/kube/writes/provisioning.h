// ProvisioningRequests of ours at the API server: listed, made with their PodTemplates, deleted.
//
// The templates come first: an autoscaler that finds a request without one of them calls it failed
// for good (cluster-autoscaler/processors/provreq/injector.go, MarkAsFailed).
//
// Thread rule: coroutines of the writing thread. Making one reads a pod of each set, of which the
// caller bounds the number.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "scheduler/kube/writes/api_calls.h"
#include "scheduler/ports/provisioning.h"

namespace tranche::kube {

boost::asio::awaitable<ProvisioningList> ListProvisioning(ApiCalls& calls, TimePoint deadline);
boost::asio::awaitable<WriteResult> MakeProvisioning(ApiCalls& calls, ProvisioningWrite write,
                                                     TimePoint deadline);
boost::asio::awaitable<WriteResult> DeleteProvisioning(ApiCalls& calls, ProvisioningFound request,
                                                       TimePoint deadline);

}  // namespace tranche::kube
