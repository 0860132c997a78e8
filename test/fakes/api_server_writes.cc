// What the fake API server does with writes: bindings, evictions, pod statuses, server-side
// apply, merge patches, config maps, events.
#include <fmt/format.h>

#include <algorithm>

#include "test/fakes/api_server.h"
#include "test/fakes/conditions.h"

namespace tranche::fakes {
namespace {

using Reply = std::pair<int, Json>;

constexpr const char* kPods = "/api/v1/pods";
constexpr const char* kBudgets = "/apis/policy/v1/poddisruptionbudgets";
constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kConfigMaps = "/api/v1/configmaps";
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/leases";
constexpr const char* kEvents = "/apis/events.k8s.io/v1/events";

Reply Refuse(int code, const std::string& reason, const std::string& message = "") {
  return {code, StatusBody(code, reason, message)};
}

bool HasType(const ApiRequest& request, const std::string& type) {
  const auto found = request.headers.find("content-type");
  return found != request.headers.end() && found->second == type;
}

bool Covers(const Json& budget, const Json& pod) {
  if (budget.at("metadata").at("namespace") != pod.at("metadata").at("namespace")) return false;
  const Json labels = pod.at("metadata").value("labels", Json::object());
  const Json wanted = budget.at("spec").at("selector").at("matchLabels");
  return std::all_of(wanted.items().begin(), wanted.items().end(), [&](const auto& label) {
    return labels.contains(label.key()) && labels.at(label.key()) == label.value();
  });
}

bool SkipsBudgets(const Json& pod) {
  const std::string phase = pod.at("status").value("phase", "");
  return phase != "Running" || pod.at("metadata").contains("deletionTimestamp");
}

Reply RefusedByBudget(const std::string& name) {
  Json status = StatusBody(429, "TooManyRequests", "it would violate the pod's disruption budget");
  status["details"]["causes"] =
      Json::array({{{"reason", "DisruptionBudget"},
                    {"message", "budget " + name + " needs more healthy pods"}}});
  return {429, status};
}

// The API refuses an eventTime without exactly six decimals, and empty texts.
bool IsEvent(const Json& event) {
  constexpr std::size_t kMicroTimeLength = std::string_view("2026-03-01T00:00:00.000000Z").size();
  const auto filled = [&event](const char* key) { return !event.value(key, "").empty(); };
  return event.value("eventTime", "").size() == kMicroTimeLength && filled("reason") &&
         filled("action") && filled("reportingController") && filled("reportingInstance") &&
         event.value("note", "").size() <= 1024;
}

}  // namespace

ApiServer::ObjectPath ApiServer::SplitPath(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  // "api/VERSION/..." or "apis/GROUP/VERSION/..."
  std::size_t next = !parts.empty() && parts[0] == "api" ? 2 : 3;
  ObjectPath out;
  for (std::size_t i = 0; i < std::min(next, parts.size()); ++i) out.list_path += "/" + parts[i];
  if (parts.size() > next + 2 && parts[next] == "namespaces") {
    out.ns = parts[next + 1];
    next += 2;
  }
  if (parts.size() > next) out.list_path += "/" + parts[next];
  if (parts.size() > next + 1) out.name = parts[next + 1];
  if (parts.size() > next + 2) out.subresource = parts[next + 2];
  return out;
}

Reply ApiServer::ApplyBinding(const ApiRequest& request) {
  const Json binding = Json::parse(request.body);
  const std::string key = SplitPath(request.path).key();
  Json pod = Object(kPods, key);
  if (pod.is_null()) return Refuse(404, "NotFound");
  if (pod["metadata"]["uid"] != binding.at("metadata").at("uid")) {
    return Refuse(409, "Conflict", "the UID in the precondition differs");
  }
  if (pod["spec"].contains("nodeName")) {
    return Refuse(409, "Conflict", "pod is already assigned to node");
  }
  pod["spec"]["nodeName"] = binding.at("target").at("name");
  if (binding.at("metadata").contains("annotations")) {
    pod["metadata"]["annotations"].update(binding.at("metadata").at("annotations"));
  }
  Put(kPods, pod);
  return {201, StatusBody(201, "")};
}

Reply ApiServer::PatchPodStatus(const ApiRequest& request) {
  if (!HasType(request, "application/strategic-merge-patch+json")) {
    return Refuse(415, "UnsupportedMediaType");
  }
  const Json patch = Json::parse(request.body);
  Json pod = Object(kPods, SplitPath(request.path).key());
  if (pod.is_null()) return Refuse(404, "NotFound");
  if (pod["metadata"]["uid"] != patch.at("metadata").at("uid")) {
    return Refuse(422, "Invalid", "metadata.uid: field is immutable");
  }
  for (const auto& [key, value] : patch.at("status").items()) {
    if (key == "conditions") {
      MergeConditions(pod["status"]["conditions"], value);
    } else {
      pod["status"][key] = value;
    }
  }
  Put(kPods, pod);
  return {200, pod};
}

std::optional<Reply> ApiServer::ChargeBudget(const Json& pod) {
  std::vector<Json> covering;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, budget] : objects_[kBudgets]) {
      if (Covers(budget, pod)) covering.push_back(budget);
    }
  }
  if (covering.empty()) return std::nullopt;
  if (covering.size() > 1) return Refuse(500, "", "this pod has more than one disruption budget");
  Json& budget = covering.front();
  const int allowed = budget["status"].value("disruptionsAllowed", 0);
  if (allowed <= 0) return RefusedByBudget(budget["metadata"]["name"]);
  budget["status"]["disruptionsAllowed"] = allowed - 1;
  budget["status"]["disruptedPods"][pod.at("metadata").at("name")] = "2026-03-01T00:00:00Z";
  Put(kBudgets, budget);
  return std::nullopt;
}

Reply ApiServer::EvictPod(const ApiRequest& request) {
  const ObjectPath path = SplitPath(request.path);
  const Json eviction = Json::parse(request.body);
  if (eviction.value("kind", "") != "Eviction" || eviction.at("metadata").at("name") != path.name) {
    return Refuse(400, "BadRequest", "not an eviction of this pod");
  }
  Json pod = Object(kPods, path.key());
  if (pod.is_null()) return Refuse(404, "NotFound");
  const Json& options = eviction.at("deleteOptions");
  if (pod["metadata"]["uid"] != options.at("preconditions").at("uid")) {
    return Refuse(409, "Conflict", "the UID in the precondition differs");
  }
  if (!SkipsBudgets(pod)) {
    if (const std::optional<Reply> refusal = ChargeBudget(pod)) return *refusal;
  }
  const int grace = options.value("gracePeriodSeconds", 30);
  if (grace == 0 || pod["status"].value("phase", "") != "Running") {
    Delete(kPods, path.key());
  } else {
    pod["metadata"]["deletionTimestamp"] = "2026-03-01T00:00:30Z";
    pod["metadata"]["deletionGracePeriodSeconds"] = grace;
    MergeConditions(pod["status"]["conditions"],
                    Json::array({{{"type", "DisruptionTarget"},
                                  {"status", "True"},
                                  {"reason", "EvictionByEvictionAPI"}}}));
    Put(kPods, pod);
  }
  return {201, StatusBody(201, "")};
}

Reply ApiServer::ApplyObject(const ApiRequest& request, const ObjectPath& path) {
  if (!HasType(request, "application/apply-patch+yaml") ||
      !request.query.contains("fieldManager")) {
    return Refuse(415, "UnsupportedMediaType");
  }
  const Json applied = Json::parse(request.body);
  Json object = Object(path.list_path, path.key());
  const bool created = object.is_null();
  if (created && !path.subresource.empty()) return Refuse(404, "NotFound");
  if (created) {
    object = applied;
    object["metadata"]["uid"] = "uid-of-" + path.name;
    object["metadata"]["generation"] = 1;
  }
  for (const auto& [key, value] : applied.items()) {
    // The status and the rest are written through different paths.
    const bool here = (key == "status") == (path.subresource == "status");
    if (here && key != "metadata") object[key] = value;
  }
  Put(path.list_path, object);
  return {created ? 201 : 200, object};
}

Reply ApiServer::MergePatch(const ApiRequest& request, const ObjectPath& path) {
  if (!HasType(request, "application/merge-patch+json")) {
    return Refuse(415, "UnsupportedMediaType");
  }
  Json object = Object(path.list_path, path.key());
  if (object.is_null()) return Refuse(404, "NotFound");
  const Json patch = Json::parse(request.body);
  const Json metadata = patch.value("metadata", Json::object());
  if (metadata.contains("resourceVersion") &&
      metadata["resourceVersion"] != object["metadata"]["resourceVersion"]) {
    return Refuse(409, "Conflict", "the object has been modified");
  }
  if (metadata.contains("uid") && metadata["uid"] != object["metadata"]["uid"]) {
    return Refuse(422, "Invalid", "metadata.uid: field is immutable");
  }
  object.merge_patch(patch);
  Put(path.list_path, object);
  return {200, object};
}

Reply ApiServer::JsonPatchPod(const ApiRequest& request, const ObjectPath& path) {
  if (!HasType(request, "application/json-patch+json")) return Refuse(415, "UnsupportedMediaType");
  const Json pod = Object(kPods, path.key());
  if (pod.is_null()) return Refuse(404, "NotFound");
  try {
    const Json patched = pod.patch(Json::parse(request.body));
    Put(kPods, patched);
    return {200, patched};
  } catch (const Json::exception& refused) {
    return Refuse(422, "Invalid", refused.what());  // a `test` among them: 422, not 409
  }
}

Reply ApiServer::CreateObject(const ApiRequest& request, const ObjectPath& path) {
  const Json made = Json::parse(request.body);
  const Json metadata = made.at("metadata");
  if (metadata.at("namespace") != path.ns || metadata.contains("resourceVersion")) {
    return Refuse(400, "BadRequest", "not a new object of this namespace");
  }
  const std::string key = path.ns + "/" + metadata.at("name").get<std::string>();
  if (!Object(path.list_path, key).is_null()) return Refuse(409, "AlreadyExists");
  Put(path.list_path, made);
  return {201, made};
}

Reply ApiServer::WriteLease(const ApiRequest& request, const ObjectPath& path) {
  const std::lock_guard<std::mutex> lock(lease_mutex_);
  const Json made = Json::parse(request.body);
  const std::string key = path.ns + "/" + made.at("metadata").at("name").get<std::string>();
  const Json stored = Object(path.list_path, key);
  if (request.method == "POST") {
    if (!stored.is_null()) return Refuse(409, "AlreadyExists");
  } else {
    if (stored.is_null()) return Refuse(404, "NotFound");
    if (made["metadata"].value("resourceVersion", "") != stored["metadata"]["resourceVersion"]) {
      return Refuse(409, "Conflict", "the object has been modified");
    }
  }
  Put(path.list_path, made);
  return {request.method == "POST" ? 201 : 200, Object(path.list_path, key)};
}

Reply ApiServer::CreateEvent(const ApiRequest& request, const ObjectPath& path) {
  Json event = Json::parse(request.body);
  if (event.at("metadata").at("namespace") != path.ns || !IsEvent(event)) {
    return Refuse(422, "Invalid", "not an event");
  }
  const std::string name = event["metadata"]["name"];
  if (!Object(kEvents, path.ns + "/" + name).is_null()) return Refuse(409, "AlreadyExists");
  event["metadata"]["uid"] = "uid-of-" + name;
  Put(kEvents, event);
  return {201, event};
}

void ApiServer::ServeWrite(const ApiRequest& request, Exchange& exchange) {
  const ObjectPath path = SplitPath(request.path);
  Reply reply = Refuse(405, "MethodNotAllowed");
  if (!Serves(path.list_path)) return exchange.Answer(404, "404 page not found\n");
  if (path.list_path == kPods) {
    if (path.subresource == "binding") reply = ApplyBinding(request);
    if (path.subresource == "eviction") reply = EvictPod(request);
    if (path.subresource == "status") {
      const bool merges = HasType(request, "application/merge-patch+json");
      reply = merges ? MergePatch(request, path) : PatchPodStatus(request);
    }
    if (path.subresource.empty() && request.method == "PATCH") reply = JsonPatchPod(request, path);
  } else if (path.list_path == kEvents) {
    reply = CreateEvent(request, path);
  } else if (path.list_path == kLeases && request.method != "PATCH") {
    reply = WriteLease(request, path);
  } else if (request.method == "POST") {
    reply = CreateObject(request, path);
  } else if ((path.list_path == kConfigMaps || path.list_path == kNodes) &&
             request.method == "PATCH") {
    reply = MergePatch(request, path);
  } else if (request.method == "PATCH") {
    reply = ApplyObject(request, path);
  } else if (request.method == "DELETE") {
    reply = Refuse(404, "NotFound");
    if (!Object(path.list_path, path.key()).is_null()) {
      Delete(path.list_path, path.key());
      reply = {200, StatusBody(200, "")};
    }
  }
  exchange.Answer(reply.first, reply.second.dump());
}

}  // namespace tranche::fakes
