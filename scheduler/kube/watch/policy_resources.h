// The resources whose objects steer us, beside pods and nodes.
//
// Source: quota-model section 8, kube-client-protocol section 2.
#pragma once

#include <array>
#include <string_view>

namespace tranche::kube {

struct PolicyResource {
  std::string_view kind;    // "GPUQuota"
  std::string_view plural;  // "gpuquotas"
  std::string_view group;   // "/apis/tranche.dev/v1alpha1"
  bool custom = false;      // of ours: may not be installed
  // What counts is that the object is there: it is handed over once, as we write its content.
  bool written_by_us = false;
  // Its status carries checkpoints of the ledger, which one who takes over asks for.
  bool checkpoints = false;
  bool for_hami = false;  // watched only where Options::resource_quotas says so
};

inline constexpr std::string_view kOwnGroup = "/apis/tranche.dev/v1alpha1";

inline constexpr std::array kPolicyResources = {
    PolicyResource{"GPUPolicy", "gpupolicies", kOwnGroup, true, false},
    PolicyResource{"GPUClass", "gpuclasses", kOwnGroup, true, false},
    PolicyResource{"GPUQuota", "gpuquotas", kOwnGroup, true, false, true},
    PolicyResource{"GPUBudget", "gpubudgets", kOwnGroup, true, false, true},
    // Definitions of an older chart lack these two; then there are no pools and no prices.
    PolicyResource{"GPUPool", "gpupools", kOwnGroup, true, false},
    PolicyResource{"GPUPrice", "gpuprices", kOwnGroup, true, false},
    PolicyResource{"GPUQuotaView", "gpuquotaviews", kOwnGroup, true, true},
    // Carries what a restart goes on with, which its first version handed over has.
    PolicyResource{"GPUReclaim", "gpureclaims", kOwnGroup, true, true},
    PolicyResource{"Namespace", "namespaces", "/api/v1", false, false},
    PolicyResource{"PriorityClass", "priorityclasses", "/apis/scheduling.k8s.io/v1", false, false},
    // Of every version, for its status is what counts.
    PolicyResource{"PodDisruptionBudget", "poddisruptionbudgets", "/apis/policy/v1", false, false},
    PolicyResource{"ResourceQuota", "resourcequotas", "/api/v1", false, false, false, true},
};

}  // namespace tranche::kube
