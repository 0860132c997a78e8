// An API server alone, for tests: requests are sent and the loop runs until their answers are
// there.
//
// Thread rule: one thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/cluster/api_server.h"
#include "test/sim/cluster/network.h"

namespace tranche::sim {

struct ServerScene {
  explicit ServerScene(FaultPlan plan = {})
      : loop(1),
        history(loop),
        script(1),
        faults(plan),
        network(loop, history, script, faults, 1),
        api(loop, history, script, faults, network, 1),
        client(loop.NewActor("tranche-0/1")) {
    Put("namespaces", {{"metadata", {{"name", "team"}}}});
  }

  void Put(const char* resource, Json object) {
    const ResourceType* const type = FindResource(resource);
    object["apiVersion"] = type->version;
    object["kind"] = type->kind;
    api.Put("administrator", resource, std::move(object));
  }
  // A pod of namespace "team" with one container.
  void PutPod(const std::string& name, Json spec, const char* phase = "Pending",
              Json metadata = Json::object()) {
    metadata["name"] = name;
    metadata["namespace"] = "team";
    spec["containers"] = Json::array({{{"name", "main"}}});
    Put("pods", {{"metadata", std::move(metadata)},
                 {"spec", std::move(spec)},
                 {"status", {{"phase", phase}}}});
  }
  Json Object(const char* resource, const std::string& key) {
    const StoredPtr found = api.store().Find(resource, key);
    return found == nullptr ? Json(nullptr) : found->object();
  }
  std::string UidOf(const std::string& key) { return Object("pods", key).at("metadata").at("uid"); }

  Reply Send(const std::string& method, const std::string& target, const Json& body = nullptr,
             const std::string& content_type = "application/json") {
    Request request{method, target, body.is_null() ? "" : body.dump(), content_type};
    std::optional<Reply> heard;
    api.Send(client, std::move(request), std::chrono::seconds(5),
             [&heard](Reply reply) { heard = std::move(reply); });
    loop.RunUntil(loop.now() + std::chrono::seconds(6), 100'000);
    return heard ? *heard : Reply{-1, true, "never heard", {}};
  }

  Loop loop;
  History history;
  Script script;
  const FaultPlan faults;
  Network network;
  ApiServer api;
  const Actor client;
};

// What one watch tells.
struct Heard {
  std::string bytes;
  std::optional<int> code;
  // "ADDED p 103" for each frame; of an ERROR its code.
  std::vector<std::string> frames() const {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = bytes.find('\n', at);
      const Json frame = Json::parse(bytes.substr(at, end - at));
      const Json& object = frame.at("object");
      const std::string type = frame.at("type");
      if (type == "ERROR") {
        out.push_back("ERROR " + std::to_string(object.at("code").get<int>()));
      } else {
        out.push_back(type + " " + object.at("metadata").value("name", "-"));
      }
      at = end + 1;
    }
    return out;
  }
};

inline uint64_t OpenWatch(ServerScene& scene, const std::string& target, Heard& heard) {
  return scene.api.Watch(
      scene.client, target, [&heard](std::string_view bytes) { heard.bytes += bytes; },
      [&heard](int code, const std::string&) { heard.code = code; });
}

}  // namespace tranche::sim
