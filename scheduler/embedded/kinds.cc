#include "scheduler/embedded/kinds.h"

#include <algorithm>
#include <array>

namespace tranche::embedded {
namespace {

struct KnownKind {
  std::string_view name, singular, plural, api_version;
  Scope scope;
};

constexpr std::string_view kOwnGroup = "tranche.dev";

constexpr std::array kKnownKinds = {
    KnownKind{"Node", "node", "nodes", "v1", Scope::kCluster},
    KnownKind{"Pod", "pod", "pods", "v1", Scope::kNamespace},
    KnownKind{"Namespace", "namespace", "namespaces", "v1", Scope::kCluster},
    KnownKind{"PriorityClass", "priorityclass", "priorityclasses", "scheduling.k8s.io/v1",
              Scope::kCluster},
    KnownKind{kDisruptionBudgetKind, "poddisruptionbudget", "poddisruptionbudgets", "policy/v1",
              Scope::kNamespace},
    KnownKind{kResourceQuotaKind, "resourcequota", "resourcequotas", "v1", Scope::kNamespace},
    KnownKind{kZonesKind, "noderesourcetopology", "noderesourcetopologies",
              "topology.node.k8s.io/v1alpha2", Scope::kCluster},
    KnownKind{kSliceKind, "resourceslice", "resourceslices", "resource.k8s.io/v1", Scope::kCluster},
    KnownKind{kDeviceClassKind, "deviceclass", "deviceclasses", "resource.k8s.io/v1",
              Scope::kCluster},
    KnownKind{kClaimKind, "resourceclaim", "resourceclaims", "resource.k8s.io/v1",
              Scope::kNamespace},
    KnownKind{kClaimTemplateKind, "resourceclaimtemplate", "resourceclaimtemplates",
              "resource.k8s.io/v1", Scope::kNamespace},
    KnownKind{kTaintRuleKind, "devicetaintrule", "devicetaintrules", "resource.k8s.io/v1",
              Scope::kCluster},
    KnownKind{kDeviceKind, "device", "devices", "scheduling.koordinator.sh/v1alpha1",
              Scope::kCluster},
    KnownKind{kPodGroupKind, "podgroup", "podgroups", "scheduling.volcano.sh/v1beta1",
              Scope::kNamespace},
    KnownKind{kPodGroupKind, "podgroup", "podgroups", "scheduling.x-k8s.io/v1alpha1",
              Scope::kNamespace},
    KnownKind{kPodGroupKind, "podgroup", "podgroups", "scheduling.k8s.io/v1beta1",
              Scope::kNamespace},
    KnownKind{kProvisioningKind, "provisioningrequest", "provisioningrequests",
              "autoscaling.x-k8s.io/v1", Scope::kNamespace},
    KnownKind{kPodTemplateKind, "podtemplate", "podtemplates", "v1", Scope::kNamespace},
    KnownKind{"JobSet", "jobset", "jobsets", "jobset.x-k8s.io/v1alpha2", Scope::kNamespace},
    KnownKind{"PyTorchJob", "pytorchjob", "pytorchjobs", "kubeflow.org/v1", Scope::kNamespace},
    KnownKind{"MPIJob", "mpijob", "mpijobs", "kubeflow.org/v2beta1", Scope::kNamespace},
    KnownKind{"RayCluster", "raycluster", "rayclusters", "ray.io/v1", Scope::kNamespace},
    KnownKind{"GPUQuota", "gpuquota", "gpuquotas", "tranche.dev/v1alpha1", Scope::kCluster},
    KnownKind{"GPUBudget", "gpubudget", "gpubudgets", "tranche.dev/v1alpha1", Scope::kCluster},
    KnownKind{"GPUClass", "gpuclass", "gpuclasses", "tranche.dev/v1alpha1", Scope::kCluster},
    KnownKind{"GPUPolicy", "gpupolicy", "gpupolicies", "tranche.dev/v1alpha1", Scope::kCluster},
    KnownKind{"GPUPool", "gpupool", "gpupools", "tranche.dev/v1alpha1", Scope::kCluster},
    KnownKind{"GPUPrice", "gpuprice", "gpuprices", "tranche.dev/v1alpha1", Scope::kCluster},
    KnownKind{kReclaimKind, "gpureclaim", "gpureclaims", "tranche.dev/v1alpha1", Scope::kCluster},
    KnownKind{"GPUQuotaView", "gpuquotaview", "gpuquotaviews", "tranche.dev/v1alpha1",
              Scope::kNamespace},
    KnownKind{kEventKind, "event", "events", "events.k8s.io/v1", Scope::kNamespace},
    KnownKind{kConfigMapKind, "configmap", "configmaps", "v1", Scope::kNamespace},
};

}  // namespace

std::string_view GroupOf(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

std::optional<Kind> KeptKind(std::string_view api_version, std::string_view kind) {
  if (kind == kEventKind || kind == kConfigMapKind) return std::nullopt;
  for (const KnownKind& known : kKnownKinds) {
    if (known.name != kind) continue;
    if (!api_version.empty() && GroupOf(api_version) != GroupOf(known.api_version)) continue;
    return Kind{std::string(known.name), std::string(known.api_version), known.scope};
  }
  if (GroupOf(api_version) == kOwnGroup) {
    return Kind{std::string(kind), std::string(api_version), Scope::kUnknown};
  }
  return std::nullopt;
}

bool IsPolicyObject(std::string_view kind) {
  return kind == "Namespace" || kind == "PriorityClass" || kind == kDisruptionBudgetKind ||
         kind == kResourceQuotaKind || IsOurs(kind);
}

bool IsOurs(std::string_view kind) {
  return std::any_of(kKnownKinds.begin(), kKnownKinds.end(), [kind](const KnownKind& known) {
    return known.name == kind && GroupOf(known.api_version) == kOwnGroup;
  });
}

std::optional<dra::ObjectRef::Kind> DraKindOf(std::string_view kind) {
  if (kind == kDeviceClassKind) return dra::ObjectRef::Kind::kClass;
  if (kind == kSliceKind) return dra::ObjectRef::Kind::kSlice;
  if (kind == kClaimKind) return dra::ObjectRef::Kind::kClaim;
  if (kind == kClaimTemplateKind) return dra::ObjectRef::Kind::kTemplate;
  if (kind == kTaintRuleKind) return dra::ObjectRef::Kind::kTaintRule;
  return std::nullopt;
}

Scope ScopeOf(std::string_view kind) {
  for (const KnownKind& known : kKnownKinds) {
    if (kind == known.name) return known.scope;
  }
  return Scope::kUnknown;
}

std::string KindFromQuery(std::string_view text) {
  for (const KnownKind& known : kKnownKinds) {
    if (text == known.singular || text == known.plural) return std::string(known.name);
  }
  return std::string(text);
}

}  // namespace tranche::embedded
