// What each write looks like on the wire: method, path, content type and body.
//
// Pure functions; the deadline is left to the caller.
// Source: kube-client-protocol sections 2 and 10 to 14.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "scheduler/kube/transport/api_client.h"
#include "scheduler/ports/cluster_api.h"

namespace tranche::kube {

std::string PodPath(const PodName& pod);
std::string NodePath(const NodeName& node);
// `name` empty: of all in the namespace.
std::string ConfigMapPath(const NamespacedName& map);

// The uid in it is a precondition of the write.
ApiRequest BindingRequest(const BindingWrite& write);
// A condition of our own with a new time: kube-scheduler takes the update of a waiting pod as
// reason to try it again (kube-scheduler-extender 3.7).
ApiRequest PokeRequest(const PodName& pod, const PodUid& uid, Instant when);
ApiRequest WaitingRequest(const WaitingWrite& write);
// Server-side apply under the field manager "tranche". Requires: a kind of policy_resources.h
// that is ours.
ApiRequest ApplyRequest(const ObjectWrite& write);
// An object of ours, as for ApplyRequest; `ns` empty: cluster scope.
ApiRequest DeleteRequest(std::string_view kind, const NamespacedName& object);
ApiRequest PodCreationRequest(const PodCreation& creation);
// The uid in it is a precondition, if there is one.
ApiRequest PodDeletionRequest(const PodName& pod, const PodUid& uid);
// The uid in it is a precondition; the grace is rounded up to seconds.
ApiRequest EvictionRequest(const EvictionWrite& write);
ApiRequest NominationRequest(const PodName& pod, const PodUid& uid, const NodeName& node);
ApiRequest PodAnnotationRequest(const PodAnnotationWrite& write);
// A merge patch of the annotations through the pod's status, on condition that the pod has still
// that uid and that version.
ApiRequest PodMarkRequest(const PodMarkWrite& write, std::string_view version);
// A merge patch of the one label.
ApiRequest NodeLabelRequest(const NodeLabelWrite& write);
// A merge patch of these annotations; an empty text removes one.
ApiRequest NodeAnnotationRequest(const NodeName& node,
                                 const std::map<std::string, std::string>& annotations);
// A merge patch of one annotation, on condition that the node has still that version; an empty text
// removes it.
ApiRequest NodeLockRequest(const NodeName& node, std::string_view key, std::string_view text,
                           std::string_view version);
// A JSON patch that takes the gate at `place` of spec.schedulingGates away, on condition that the
// pod has that uid and the place that gate.
ApiRequest GateRequest(const PodName& pod, std::string_view uid, std::string_view gate, int place);
// Without a version a POST, which refuses one that exists; else a merge patch of the one key, which
// refuses one that was changed since.
ApiRequest ConfigMapRequest(const ConfigMapWrite& write);
// Of those that carry our label.
std::string ProvisioningListTarget();
// Objects as text; of a PodTemplate server-side apply, so that one that was left behind is no
// hindrance.
ApiRequest ProvisioningRequest(const std::string& ns, std::string json);
ApiRequest PodTemplateRequest(const NamespacedName& name, std::string json);
ApiRequest ProvisioningDeletionRequest(const NamespacedName& name);
ApiRequest PodTemplateDeletionRequest(const NamespacedName& name);
// `instance` says which of us reports; `serial` tells events of one moment apart.
ApiRequest EventRequest(const EventWrite& event, std::string_view instance, uint64_t serial);

}  // namespace tranche::kube
