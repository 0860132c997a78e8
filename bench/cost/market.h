// What clouds rent out, from a CSV file:
//
//   cloud,instance_type,model,gpus,cpu_milli,capacity,per_hour
//
// `capacity` is "on-demand" or "spot", `per_hour` a decimal with at most six places. Sources of the
// table that is shipped: README.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/spec.h"

namespace tranche::bench::cost {

struct Offer {
  std::string cloud;
  std::string instance_type;
  std::string model;
  int gpus = 0;
  int64_t cpu = 0;  // milli
  CapacityType capacity = CapacityType::kOnDemand;
  int64_t micros = 0;  // of the whole machine for an hour

  int64_t micros_per_gpu() const { return micros / gpus; }
};

// Errors: NotFound; InvalidArgument naming file and line, what was expected, what was found.
absl::StatusOr<std::vector<Offer>> ReadOffers(const std::string& path);

}  // namespace tranche::bench::cost
