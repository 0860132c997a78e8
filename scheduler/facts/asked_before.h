// A pod that came before this process did, as far as one learns from it what pods ask for.
//
// Plain values; pods made alike share their request.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "topology/base/units.h"

namespace tranche {

struct AskedBefore {
  std::shared_ptr<const PodRequest> request;  // not null; it asks for GPUs
  std::string workload_class;                 // empty: none
  Instant created;
  std::optional<Instant> placed;  // nullopt: it never had devices
  std::optional<Instant> ended;   // nullopt: it is there still
};

}  // namespace tranche
