// The kinds of objects the embedded cluster keeps.
//
// Source: the Kubernetes API (groups, resource names, scopes); quota-model section 8 for the
// kinds of tranche.dev.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scheduler/dra/model.h"

namespace tranche::embedded {

enum class Scope { kCluster, kNamespace, kUnknown };  // unknown: as the object states it

struct Kind {
  std::string name;         // "Pod"
  std::string api_version;  // what an object gets that states none
  Scope scope = Scope::kUnknown;
};

inline constexpr std::string_view kDefaultNamespace = "default";
inline constexpr std::string_view kPodKind = "Pod";
inline constexpr std::string_view kNodeKind = "Node";
inline constexpr std::string_view kZonesKind = "NodeResourceTopology";
inline constexpr std::string_view kSliceKind = "ResourceSlice";
inline constexpr std::string_view kDeviceClassKind = "DeviceClass";
inline constexpr std::string_view kClaimKind = "ResourceClaim";
inline constexpr std::string_view kClaimTemplateKind = "ResourceClaimTemplate";
inline constexpr std::string_view kTaintRuleKind = "DeviceTaintRule";
inline constexpr std::string_view kDeviceKind = "Device";  // Koordinator's
inline constexpr std::string_view kPodGroupKind = "PodGroup";
inline constexpr std::string_view kViewKind = "GPUQuotaView";
inline constexpr std::string_view kReclaimKind = "GPUReclaim";
inline constexpr std::string_view kProvisioningKind = "ProvisioningRequest";
inline constexpr std::string_view kPodTemplateKind = "PodTemplate";
inline constexpr std::string_view kDisruptionBudgetKind = "PodDisruptionBudget";
inline constexpr std::string_view kResourceQuotaKind = "ResourceQuota";
// Written by us alone.
inline constexpr std::string_view kEventKind = "Event";
inline constexpr std::string_view kConfigMapKind = "ConfigMap";

// The kept kind that an object with these two fields is of; nullopt for any other. Without
// `api_version` the kind's name decides.
std::optional<Kind> KeptKind(std::string_view api_version, std::string_view kind);

// The group of an apiVersion; "" for the core group, whose apiVersion is a version alone.
std::string_view GroupOf(std::string_view api_version);

// Whether the kind's objects steer us, and reach the engine as text.
bool IsPolicyObject(std::string_view kind);
// Whether the kind is one of group tranche.dev that we know.
bool IsOurs(std::string_view kind);

// Which kind of resource.k8s.io it is; nullopt: none that we keep.
std::optional<dra::ObjectRef::Kind> DraKindOf(std::string_view kind);

// The scope of a kind by its exact name.
Scope ScopeOf(std::string_view kind);

// The kind behind a name that people type: "Pod", "pods", "pod". Unknown text is returned as is.
std::string KindFromQuery(std::string_view text);

}  // namespace tranche::embedded
