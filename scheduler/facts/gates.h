// Our scheduling gates: kube-scheduler does not try a pod that has one, and cluster autoscalers buy
// no nodes for it.
//
// A gate can be set at a pod's creation only (by the admission webhook) and only be taken away
// later. A plain value. Source: kube-scheduler-extender section 6, KEP-3521.
#pragma once

#include <cstdint>
#include <string_view>

namespace tranche {

enum class Gate : uint8_t {
  kQuota,  // its team cannot be given the GPUs now, by quota or by budget
  kGang,   // pods of its gang are missing
};

// The name in spec.schedulingGates.
constexpr std::string_view GateName(Gate gate) {
  return gate == Gate::kQuota ? "tranche.dev/quota" : "tranche.dev/gang";
}

struct GateSet {
  bool quota = false;
  bool gang = false;

  bool empty() const { return !quota && !gang; }
  friend bool operator==(const GateSet&, const GateSet&) = default;
};

}  // namespace tranche
