// A whole server on the loopback with an embedded cluster and a hand-moved clock.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/kube/transport/single_call.h"
#include "scheduler/server/runtime.h"

namespace tranche {

namespace test {
using Json = nlohmann::json;
}  // namespace test

class LiveServer : public testing::Test {
 protected:
  using Json = test::Json;

  void SetUp() override { Launch({}); }
  void TearDown() override { runtime.reset(); }

  // A new server; the last one goes.
  void Launch(ServeConfig config) {
    runtime.reset();
    config.port = 0;
    config.manual_clock = true;
    runtime = std::make_unique<Runtime>(config);
    const absl::Status started = runtime->Start();
    ASSERT_TRUE(started.ok()) << started;
    server = LoopbackServer(runtime->port());
  }

  static kube::Credentials LoopbackServer(uint16_t port) {
    kube::Credentials server;
    server.host = "127.0.0.1";
    server.port = port;
    server.tls = false;
    return server;
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server.port); }

  kube::SingleAnswer Call(const std::string& method, const std::string& target,
                          const std::string& body = "") const {
    const auto reply = kube::CallOnce(server, {method, target, body});
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : kube::SingleAnswer{};
  }
  // The JSON of a 200.
  test::Json Ask(const std::string& method, const std::string& target,
                 const std::string& body = "") const {
    const kube::SingleAnswer reply = Call(method, target, body);
    EXPECT_EQ(reply.status, 200) << target << ": " << reply.body;
    return test::Json::parse(reply.body, nullptr, false);
  }
  test::Json Get(const std::string& target) const { return Ask("GET", target); }
  test::Json Post(const std::string& target, const test::Json& body) const {
    return Ask("POST", target, body.dump());
  }
  void Apply(const test::Json& object) const { Post("/embedded/v1/apply", object); }

  // What kube-scheduler does with a pod, nodeCacheCapable: the node bound to, or "" with the
  // answer of filter in `refusal`.
  std::string Schedule(const test::Json& pod, const std::vector<std::string>& nodes,
                       test::Json* refusal = nullptr) const {
    const test::Json args = {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nodes}};
    const test::Json found = Post("/scheduler/filter", args);
    if (found["NodeNames"].empty()) {
      if (refusal != nullptr) *refusal = found;
      return "";
    }
    const test::Json ranks =
        Post("/scheduler/prioritize",
             {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", found["NodeNames"]}});
    std::string best;
    int64_t top = -1;
    for (const test::Json& rank : ranks) {
      if (rank["Score"].get<int64_t>() <= top) continue;
      top = rank["Score"];
      best = rank["Host"];
    }
    const test::Json bound =
        Post("/scheduler/bind", {{"PodName", pod["metadata"]["name"]},
                                 {"PodNamespace", pod["metadata"]["namespace"]},
                                 {"PodUID", pod["metadata"]["uid"]},
                                 {"Node", best}});
    EXPECT_EQ(bound["Error"], "");
    return best;
  }

  test::Json Stored(const std::string& name) const {
    return Get("/embedded/v1/objects?kind=Pod&namespace=team-a&name=" + name);
  }

  kube::Credentials server;
  std::unique_ptr<Runtime> runtime;
};

// A pod of team-a with one container.
inline test::Json MakePod(const std::string& name, const std::map<std::string, std::string>& limits,
                          const std::map<std::string, std::string>& annotations = {}) {
  test::Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {{"name", name}, {"namespace", "team-a"}, {"uid", "uid-" + name}};
  if (!annotations.empty()) pod["metadata"]["annotations"] = annotations;
  test::Json container = {{"name", "main"}, {"image", "trainer"}};
  container["resources"]["limits"] = limits;
  pod["spec"]["containers"] = test::Json::array({container});
  return pod;
}

// A node of the stock device plugin.
inline test::Json MakeNode(const std::string& name, int gpus) {
  const std::string count = std::to_string(gpus);
  test::Json node = {{"apiVersion", "v1"}, {"kind", "Node"}};
  node["metadata"] = {{"name", name},
                      {"labels",
                       {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                        {"nvidia.com/gpu.memory", "81559"},
                        {"nvidia.com/gpu.count", count}}}};
  node["status"] = {{"allocatable", {{"nvidia.com/gpu", count}}},
                    {"capacity", {{"nvidia.com/gpu", count}}},
                    {"conditions", test::Json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  return node;
}

}  // namespace tranche
