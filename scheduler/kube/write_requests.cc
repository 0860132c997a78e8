#include "scheduler/kube/write_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "scheduler/kube/server_url.h"
#include "scheduler/kube/steering_resources.h"
#include "scheduler/wire/object_json.h"
#include "topology/base/check.h"

namespace tranche::kube {
namespace {

using wire::AppendMember;

ApiRequest Request(const char* method, std::string target, std::string body) {
  ApiRequest request;
  request.method = method;
  request.target = std::move(target);
  request.body = std::move(body);
  request.answer_limit = kMaxAnswerBytes;
  return request;
}

// Path of an object of ours; `ns` empty: cluster scope.
std::string OwnPath(std::string_view kind, std::string_view ns, std::string_view name) {
  const auto* const found =
      std::find_if(kSteeringResources.begin(), kSteeringResources.end(),
                   [kind](const SteeringResource& one) { return one.kind == kind; });
  TRANCHE_CHECK(found != kSteeringResources.end() && found->custom);
  std::string path(found->group);
  if (!ns.empty()) path += "/namespaces/" + PercentEncoded(ns);
  return fmt::format("{}/{}/{}", path, found->plural, PercentEncoded(name));
}

// Merges JSON members into the pod's status. The uid refuses a namesake.
ApiRequest PodStatusRequest(const PodName& pod, const PodUid& uid, std::string_view members) {
  std::string body = R"({"metadata":{)";
  AppendMember(body, "uid", uid.str());
  body += fmt::format(R"(}},"status":{{{}}}}})", members);
  ApiRequest request = Request("PATCH", PodPath(pod) + "/status", std::move(body));
  request.content_type = "application/strategic-merge-patch+json";
  return request;
}

// Conditions merge by their type.
ApiRequest ConditionRequest(const PodName& pod, const PodUid& uid,
                            const wire::ConditionText& condition) {
  return PodStatusRequest(pod, uid,
                          fmt::format(R"("conditions":[{}])", wire::EncodeCondition(condition)));
}

// A merge patch of one map of the node's metadata; an empty text removes the entry.
ApiRequest NodeMetadataRequest(const NodeName& node, std::string_view map,
                               const std::map<std::string, std::string>& entries) {
  std::string body = fmt::format(R"({{"metadata":{{"{}":{{)", map);
  for (const auto& [key, text] : entries) {
    if (!text.empty()) {
      AppendMember(body, key, text);
      continue;
    }
    if (body.back() != '{') body.push_back(',');
    wire::AppendQuoted(body, key);
    body += ":null";
  }
  ApiRequest request = Request("PATCH", NodePath(node), body + "}}}");
  request.content_type = "application/merge-patch+json";
  return request;
}

}  // namespace

std::string PodPath(const PodName& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", PercentEncoded(pod.ns),
                     PercentEncoded(pod.name));
}

std::string NodePath(const NodeName& node) { return "/api/v1/nodes/" + PercentEncoded(node.str()); }

std::string ConfigMapPath(std::string_view ns, std::string_view name) {
  return fmt::format("/api/v1/namespaces/{}/configmaps{}{}", PercentEncoded(ns),
                     name.empty() ? "" : "/", PercentEncoded(name));
}

ApiRequest BindingRequest(const BindingWrite& write) {
  std::string body = R"({"apiVersion":"v1","kind":"Binding","metadata":{)";
  AppendMember(body, "name", write.pod.name);
  AppendMember(body, "namespace", write.pod.ns);
  AppendMember(body, "uid", write.uid.str());
  if (!write.annotations.empty()) {
    body += R"(,"annotations":{)";
    for (const auto& [key, value] : write.annotations) AppendMember(body, key, value);
    body.push_back('}');
  }
  body += R"(},"target":{"apiVersion":"v1","kind":"Node")";
  AppendMember(body, "name", write.node.str());
  return Request("POST", PodPath(write.pod) + "/binding", body + "}}");
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
  std::string body = R"({"apiVersion":"tranche.dev/v1alpha1")";
  AppendMember(body, "kind", write.kind);
  body += R"(,"metadata":{)";
  AppendMember(body, "name", write.name);
  if (!write.ns.empty()) AppendMember(body, "namespace", write.ns);
  body.push_back('}');
  if (!write.fields.empty()) body += "," + write.fields;
  const std::string path = OwnPath(write.kind, write.ns, write.name);
  ApiRequest request =
      Request("PATCH", path + (write.status ? "/status" : "") + "?fieldManager=tranche&force=true",
              body + "}");
  request.content_type = "application/apply-patch+yaml";
  return request;
}

ApiRequest DeleteRequest(std::string_view kind, std::string_view ns, std::string_view name) {
  return Request("DELETE", OwnPath(kind, ns, name), "");
}

ApiRequest PodCreationRequest(const PodCreation& creation) {
  return Request("POST", fmt::format("/api/v1/namespaces/{}/pods", PercentEncoded(creation.pod.ns)),
                 creation.json);
}

ApiRequest PodDeletionRequest(const PodName& pod, const PodUid& uid) {
  std::string body = R"({"apiVersion":"v1","kind":"DeleteOptions")";
  if (!uid.empty()) {
    body += R"(,"preconditions":{)";
    AppendMember(body, "uid", uid.str());
    body += '}';
  }
  return Request("DELETE", PodPath(pod), body + "}");
}

ApiRequest EvictionRequest(const EvictionWrite& write) {
  std::string body = R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{)";
  AppendMember(body, "name", write.pod.name);
  AppendMember(body, "namespace", write.pod.ns);
  body += R"(},"deleteOptions":{"preconditions":{)";
  AppendMember(body, "uid", write.uid.str());
  body.push_back('}');
  if (write.grace) {
    body += fmt::format(R"(,"gracePeriodSeconds":{})",
                        std::chrono::ceil<std::chrono::seconds>(*write.grace).count());
  }
  return Request("POST", PodPath(write.pod) + "/eviction", body + "}}");
}

ApiRequest NominationRequest(const PodName& pod, const PodUid& uid, const NodeName& node) {
  std::string members = R"("nominatedNodeName":)";
  wire::AppendQuoted(members, node.str());
  return PodStatusRequest(pod, uid, members);
}

ApiRequest PodAnnotationRequest(const PodAnnotationWrite& write) {
  std::string body = R"({"metadata":{)";
  AppendMember(body, "uid", write.uid.str());
  body += R"(,"annotations":{)";
  for (const auto& [key, value] : write.annotations) AppendMember(body, key, value);
  ApiRequest request = Request("PATCH", PodPath(write.pod), body + "}}}");
  request.content_type = "application/merge-patch+json";
  return request;
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
  std::string body = R"({"metadata":{)";
  AppendMember(body, "resourceVersion", version);
  body += R"(,"annotations":{)";
  if (text.empty()) {
    wire::AppendQuoted(body, key);
    body += ":null";
  } else {
    AppendMember(body, key, text);
  }
  ApiRequest request = Request("PATCH", NodePath(node), body + "}}}");
  request.content_type = "application/merge-patch+json";
  return request;
}

ApiRequest GateRequest(const PodName& pod, std::string_view uid, std::string_view gate, int place) {
  const std::string where = fmt::format("/spec/schedulingGates/{}", place);
  std::string body = R"([{"op":"test","path":"/metadata/uid")";
  AppendMember(body, "value", uid);
  body += R"(},{"op":"test")";
  AppendMember(body, "path", where + "/name");
  AppendMember(body, "value", gate);
  body += R"(},{"op":"remove")";
  AppendMember(body, "path", where);
  ApiRequest request = Request("PATCH", PodPath(pod), body + "}]");
  request.content_type = "application/json-patch+json";
  return request;
}

ApiRequest ConfigMapRequest(const ConfigMapWrite& write) {
  std::string body = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{)";
  AppendMember(body, "name", write.name);
  AppendMember(body, "namespace", write.ns);
  if (!write.version.empty()) AppendMember(body, "resourceVersion", write.version);
  body += R"(},"data":{)";
  AppendMember(body, write.key, write.text);
  body += "}}";
  if (write.version.empty()) return Request("POST", ConfigMapPath(write.ns, ""), std::move(body));
  ApiRequest request = Request("PATCH", ConfigMapPath(write.ns, write.name), std::move(body));
  request.content_type = "application/merge-patch+json";
  return request;
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
