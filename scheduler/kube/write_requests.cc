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

}  // namespace

std::string PodPath(const PodName& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", PercentEncoded(pod.ns),
                     PercentEncoded(pod.name));
}

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

ApiRequest NodeLabelRequest(const NodeLabelWrite& write) {
  std::string body = R"({"metadata":{"labels":{)";
  if (write.value.empty()) {
    wire::AppendQuoted(body, write.key);
    body += ":null";
  } else {
    AppendMember(body, write.key, write.value);
  }
  ApiRequest request =
      Request("PATCH", "/api/v1/nodes/" + PercentEncoded(write.node.str()), body + "}}}");
  request.content_type = "application/merge-patch+json";
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
