// A pod read before a write that hangs on what it says at that moment.
//
// Pure functions; what they return points into the parser.
#pragma once

#include <optional>
#include <string_view>

#include "scheduler/kube/transport/api_client.h"
#include "scheduler/kube/transport/api_status.h"
#include "scheduler/ports/cluster_api.h"
#include "scheduler/wire/json/json.h"

namespace tranche::kube {

// What becomes of a write of which only a read was tried, and that in vain: never unknown.
WriteResult NotRead(wire::LenientParser& parser, const ApiAnswer& answer);

struct PodReading {
  std::optional<WriteResult> failed;  // the answer to the write: there is no such pod, or no answer
  // Without a failure:
  wire::Element document;
  wire::Object pod;
  wire::Object metadata;  // with the uid that was asked for
};

// The pod of an answer to GET. A pod that took the place of the one with `uid` is a failure: 409.
PodReading ReadPod(wire::LenientParser& parser, const ApiAnswer& answer, const PodName& pod,
                   const PodUid& uid);

}  // namespace tranche::kube
