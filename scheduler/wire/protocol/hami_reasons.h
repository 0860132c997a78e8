// The words HAMi's users know for why a node is refused.
//
// Fixed for a request and a reason: texts that change have kube-scheduler queue the pod again.
// Pure. Source: request-dialects section 4.5.
#pragma once

#include <string_view>

#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"

namespace tranche::wire {

// The nearest of HAMi's words; empty where it has none for such a thing. Why a node lacks room it
// says by what the request asks for.
std::string_view HamiWord(Reason reason, const PodRequest& request);

}  // namespace tranche::wire
