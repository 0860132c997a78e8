#include "scheduler/kube/writes/write_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/kube/transport/server_url.h"
#include "scheduler/kube/watch/policy_resources.h"
#include "scheduler/wire/json/object_json.h"
#include "topology/base/check.h"
#include "topology/base/plant.h"

namespace tranche::kube {
namespace {

using wire::Dump;
using wire::Json;
using wire::TextOrNull;

constexpr const char* kMergePatch = "application/merge-patch+json";

ApiRequest Request(const char* method, std::string target, std::string body) {
  ApiRequest request;
  request.method = method;
  request.target = std::move(target);
  request.body = std::move(body);
  request.answer_limit = kMaxAnswerBytes;
  return request;
}

ApiRequest PatchRequest(const char* content_type, std::string target, std::string body) {
  ApiRequest request = Request("PATCH", std::move(target), std::move(body));
  request.content_type = content_type;
  return request;
}

// Path of an object of ours; without a namespace: cluster scope.
std::string OwnPath(std::string_view kind, const NamespacedName& object) {
  const auto* const found =
      std::find_if(kPolicyResources.begin(), kPolicyResources.end(),
                   [kind](const PolicyResource& one) { return one.kind == kind; });
  TRANCHE_CHECK(found != kPolicyResources.end() && found->custom);
  std::string path(found->group);
  if (!object.ns.empty()) path += "/namespaces/" + PercentEncoded(object.ns);
  return fmt::format("{}/{}/{}", path, found->plural, PercentEncoded(object.name));
}

// Of all in the namespace.
std::string ProvisioningPath(const std::string& ns) {
  return fmt::format("/apis/autoscaling.x-k8s.io/v1/namespaces/{}/provisioningrequests",
                     PercentEncoded(ns));
}

std::string PodTemplatePath(const NamespacedName& name) {
  return fmt::format("/api/v1/namespaces/{}/podtemplates/{}", PercentEncoded(name.ns),
                     PercentEncoded(name.name));
}

// Merges members into the pod's status. The uid refuses a namesake.
ApiRequest PodStatusRequest(const PodName& pod, const PodUid& uid, const Json& status) {
  return PatchRequest("application/strategic-merge-patch+json", PodPath(pod) + "/status",
                      Dump({{"metadata", {{"uid", uid.str()}}}, {"status", status}}));
}

// Conditions merge by their type.
ApiRequest ConditionRequest(const PodName& pod, const PodUid& uid,
                            const wire::ConditionText& condition) {
  return PodStatusRequest(pod, uid,
                          {{"conditions", Json::array({wire::ConditionJson(condition)})}});
}

// A merge patch of one map of the node's metadata; an empty text removes the entry.
ApiRequest NodeMetadataRequest(const NodeName& node, const char* map,
                               const std::map<std::string, std::string>& entries) {
  Json changes = Json::object();
  for (const auto& [key, text] : entries) changes[key] = TextOrNull(text);
  return PatchRequest(kMergePatch, NodePath(node), Dump({{"metadata", {{map, changes}}}}));
}

}  // namespace

std::string PodPath(const PodName& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", PercentEncoded(pod.ns),
                     PercentEncoded(pod.name));
}

std::string NodePath(const NodeName& node) { return "/api/v1/nodes/" + PercentEncoded(node.str()); }

std::string ConfigMapPath(const NamespacedName& map) {
  return fmt::format("/api/v1/namespaces/{}/configmaps{}{}", PercentEncoded(map.ns),
                     map.name.empty() ? "" : "/", PercentEncoded(map.name));
}

ApiRequest BindingRequest(const BindingWrite& write) {
  Json metadata = {{"name", write.pod.name}, {"namespace", write.pod.ns}, {"uid", write.uid.str()}};
  if (!write.annotations.empty()) metadata["annotations"] = write.annotations;
  return Request(
      "POST", PodPath(write.pod) + "/binding",
      Dump({{"apiVersion", "v1"},
            {"kind", "Binding"},
            {"metadata", metadata},
            {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", write.node.str()}}}}));
}

ApiRequest PokeRequest(const PodName& pod, const PodUid& uid, Instant when) {
  return ConditionRequest(
      pod, uid,
      {"tranche.dev/RoomFreed", true, "RoomFreed", "room appeared after the last attempt", when});
}

ApiRequest WaitingRequest(const WaitingWrite& write) {
  return ConditionRequest(
      write.pod, write.uid,
      {"tranche.dev/Waiting", write.waiting, write.reason, write.message, write.when});
}

ApiRequest ApplyRequest(const ObjectWrite& write) {
  Json metadata = {{"name", write.name}};
  if (!write.ns.empty()) metadata["namespace"] = write.ns;
  std::string body =
      Dump({{"apiVersion", "tranche.dev/v1alpha1"}, {"kind", write.kind}, {"metadata", metadata}});
  // The fields are members as text, made where the object is known.
  if (!write.fields.empty()) body = body.substr(0, body.size() - 1) + "," + write.fields + "}";
  const std::string path = OwnPath(write.kind, {write.ns, write.name});
  return PatchRequest("application/apply-patch+yaml",
                      path + (write.status ? "/status" : "") + "?fieldManager=tranche&force=true",
                      std::move(body));
}

ApiRequest DeleteRequest(std::string_view kind, const NamespacedName& object) {
  return Request("DELETE", OwnPath(kind, object), "");
}

ApiRequest PodCreationRequest(const PodCreation& creation) {
  return Request("POST", fmt::format("/api/v1/namespaces/{}/pods", PercentEncoded(creation.pod.ns)),
                 creation.json);
}

ApiRequest PodDeletionRequest(const PodName& pod, const PodUid& uid) {
  Json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!uid.empty()) options["preconditions"] = {{"uid", uid.str()}};
  return Request("DELETE", PodPath(pod), Dump(options));
}

ApiRequest EvictionRequest(const EvictionWrite& write) {
  Json options = Json::object();
  if (!TRANCHE_PLANTED(eviction_names_no_uid)) options["preconditions"]["uid"] = write.uid.str();
  if (write.grace) {
    options["gracePeriodSeconds"] = std::chrono::ceil<std::chrono::seconds>(*write.grace).count();
  }
  return Request("POST", PodPath(write.pod) + "/eviction",
                 Dump({{"apiVersion", "policy/v1"},
                       {"kind", "Eviction"},
                       {"metadata", {{"name", write.pod.name}, {"namespace", write.pod.ns}}},
                       {"deleteOptions", options}}));
}

ApiRequest NominationRequest(const PodName& pod, const PodUid& uid, const NodeName& node) {
  return PodStatusRequest(pod, uid, {{"nominatedNodeName", node.str()}});
}

ApiRequest PodAnnotationRequest(const PodAnnotationWrite& write) {
  return PatchRequest(
      kMergePatch, PodPath(write.pod),
      Dump({{"metadata", {{"uid", write.uid.str()}, {"annotations", write.annotations}}}}));
}

ApiRequest PodMarkRequest(const PodMarkWrite& write, std::string_view version) {
  Json annotations = Json::object();
  for (const PodMark& mark : write.marks) {
    annotations[mark.key] = mark.after ? Json(*mark.after) : Json(nullptr);
  }
  return PatchRequest(kMergePatch, PodPath(write.pod) + "/status",
                      Dump({{"metadata",
                             {{"uid", write.uid.str()},
                              {"resourceVersion", version},
                              {"annotations", annotations}}}}));
}

ApiRequest NodeLabelRequest(const NodeLabelWrite& write) {
  return NodeMetadataRequest(write.node, "labels", {{write.key, write.value}});
}

ApiRequest NodeAnnotationRequest(const NodeName& node,
                                 const std::map<std::string, std::string>& annotations) {
  return NodeMetadataRequest(node, "annotations", annotations);
}

ApiRequest NodeLockRequest(const NodeName& node, std::string_view key, std::string_view text,
                           std::string_view version) {
  return PatchRequest(
      kMergePatch, NodePath(node),
      Dump({{"metadata",
             {{"resourceVersion", version}, {"annotations", {{key, TextOrNull(text)}}}}}}));
}

ApiRequest GateRequest(const PodName& pod, std::string_view uid, std::string_view gate, int place) {
  const std::string where = fmt::format("/spec/schedulingGates/{}", place);
  return PatchRequest(
      "application/json-patch+json", PodPath(pod),
      Dump(Json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", uid}},
                        {{"op", "test"}, {"path", where + "/name"}, {"value", gate}},
                        {{"op", "remove"}, {"path", where}}})));
}

ApiRequest ConfigMapRequest(const ConfigMapWrite& write) {
  Json metadata = {{"name", write.name}, {"namespace", write.ns}};
  if (!write.version.empty()) metadata["resourceVersion"] = write.version;
  std::string body = Dump({{"apiVersion", "v1"},
                           {"kind", "ConfigMap"},
                           {"metadata", metadata},
                           {"data", {{write.key, write.text}}}});
  if (write.version.empty()) return Request("POST", ConfigMapPath({write.ns, ""}), std::move(body));
  return PatchRequest(kMergePatch, ConfigMapPath({write.ns, write.name}), std::move(body));
}

std::string ProvisioningListTarget() {
  return "/apis/autoscaling.x-k8s.io/v1/provisioningrequests?limit=500&labelSelector="
         "app.kubernetes.io%2Fmanaged-by%3Dtranche";
}

ApiRequest ProvisioningRequest(const std::string& ns, std::string json) {
  return Request("POST", ProvisioningPath(ns), std::move(json));
}

ApiRequest PodTemplateRequest(const NamespacedName& name, std::string json) {
  return PatchRequest("application/apply-patch+yaml",
                      PodTemplatePath(name) + "?fieldManager=tranche&force=true", std::move(json));
}

ApiRequest ProvisioningDeletionRequest(const NamespacedName& name) {
  return Request("DELETE", ProvisioningPath(name.ns) + "/" + PercentEncoded(name.name), "");
}

ApiRequest PodTemplateDeletionRequest(const NamespacedName& name) {
  return Request("DELETE", PodTemplatePath(name), "");
}

ApiRequest EventRequest(const EventWrite& event, std::string_view instance, uint64_t serial) {
  const wire::EventText text{event.kind,    event.ns,     event.name,   event.uid,
                             event.warning, event.reason, event.action, event.note,
                             event.when,    instance,     serial};
  return Request("POST",
                 fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events",
                             PercentEncoded(wire::PlaceOf(text).ns)),
                 wire::EncodeEvent(text));
}

}  // namespace tranche::kube
