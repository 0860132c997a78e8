// The whole server over HTTP: each kind of pod from filter to Binding, each path of the contract.
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/fakes/places.h"
#include "test/unit/scheduler/http/raw_client.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

const std::vector<std::string> kFleet = {"h100-a",      "h100-b",    "a100-mig",
                                         "l40s-shared", "v100-mesh", "t4-hami"};

class Fleet : public LiveServer {
 protected:
  void SetUp() override {
    ServeConfig config;
    config.objects = {fakes::SourceFolder() + "/scheduler/quickstart/fleet.yaml"};
    Launch(config);
  }
};

struct PodKind {
  const char* name;
  std::map<std::string, std::string> limits;
  std::map<std::string, std::string> annotations;
  std::string node;       // the only one it may go to; empty: any
  std::size_t devices;    // in the record
  int64_t milli;          // of the first device; < 0: not looked at
  std::string knowledge;  // empty: not looked at
  std::string mig;        // profile of the first device
};

TEST_F(Fleet, EveryKindOfPodIsPlacedAndWrittenDown) {
  const std::vector<PodKind> kinds = {
      {"one-gpu",
       {{"nvidia.com/gpu", "1"}},
       {{"tranche.dev/model", "h100"}},
       "",
       1,
       1000,
       "counts",
       ""},
      {"eight-gpus",
       {{"nvidia.com/gpu", "8"}},
       {{"tranche.dev/model", "h100"}},
       "",
       8,
       1000,
       "",
       ""},
      {"mig", {{"nvidia.com/mig-3g.40gb", "1"}}, {}, "a100-mig", 1, -1, "counts", "3g.40gb"},
      {"replica", {{"nvidia.com/gpu.shared", "1"}}, {}, "l40s-shared", 1, -1, "counts", ""},
      {"hami",
       {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "4000"}, {"nvidia.com/gpucores", "30"}},
       {},
       "t4-hami",
       1,
       300,
       "exact",
       ""},
      {"fraction", {}, {{"tranche.dev/gpu-fraction", "0.5"}}, "", 1, 500, "", ""},
      {"memory", {}, {{"tranche.dev/gpu-memory", "8192"}}, "", 1, 0, "", ""},
  };
  for (const PodKind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    const Json pod = MakePod(kind.name, kind.limits, kind.annotations);
    Apply(pod);
    const std::string node = Schedule(pod, kFleet);
    ASSERT_NE(node, "");
    EXPECT_TRUE(kind.node.empty() || node == kind.node) << node;
    const Json stored = Stored(kind.name);
    EXPECT_EQ(stored["spec"]["nodeName"], node);
    EXPECT_EQ(stored["status"]["phase"], "Running");
    const Json record =
        Json::parse(stored["metadata"]["annotations"]["tranche.dev/allocation"].get<std::string>());
    ASSERT_EQ(record["containers"].size(), 1U);
    const Json& devices = record["containers"][0]["devices"];
    ASSERT_EQ(devices.size(), kind.devices);
    EXPECT_TRUE(kind.milli < 0 || devices[0]["milli"] == kind.milli) << record;
    EXPECT_TRUE(kind.knowledge.empty() || record["knowledge"] == kind.knowledge) << record;
    EXPECT_TRUE(kind.mig.empty() || devices[0]["mig"]["profile"] == kind.mig) << record;
    const Json listed = Get("/api/v1/explain/team-a/" + std::string(kind.name));
    EXPECT_EQ(listed["state"], "bound");
    EXPECT_EQ(listed["node"], node);
    EXPECT_EQ(listed["devices"].size(), kind.devices);
    EXPECT_EQ(listed["knowledge"], record["knowledge"]);
    EXPECT_EQ(listed["devices"][0]["index"].is_null(), record["knowledge"] == "counts");
  }
}

TEST_F(Fleet, HamiPodCarriesTheKeysOfItsAgent) {
  const Json pod = MakePod("hami", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "4000"}});
  Apply(pod);
  EXPECT_EQ(Schedule(pod, kFleet), "t4-hami");
  const Json annotations = Stored("hami")["metadata"]["annotations"];
  EXPECT_EQ(annotations["hami.io/vgpu-node"], "t4-hami");
  EXPECT_NE(annotations["hami.io/vgpu-devices-allocated"].get<std::string>().find("GPU-7b4e90d"),
            std::string::npos);
}

TEST_F(Fleet, TheNextPodOfANodeWithALockNeedsNoTime) {
  for (const char* name : {"first", "second"}) {
    const Json pod = MakePod(name, {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "4000"}});
    Apply(pod);
    EXPECT_EQ(Schedule(pod, {"t4-hami"}), "t4-hami") << name;
  }
}

TEST_F(Fleet, PodWithoutGpuPassesUntouched) {
  const Json pod = MakePod("web", {{"cpu", "1"}});
  std::vector<std::string> nodes = kFleet;
  for (int i = 0; i < 20; ++i) nodes.push_back("cpu-" + std::to_string(i));
  const Json found =
      Post("/scheduler/filter", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nodes}});
  EXPECT_EQ(found["NodeNames"], Json(nodes));
  Apply(pod);
  EXPECT_NE(Schedule(pod, nodes), "");
  EXPECT_FALSE(Stored("web")["metadata"].contains("annotations"));
}

TEST_F(Fleet, RefusalsAreFixedSentencesByNode) {
  Json refusal;
  const Json pod = MakePod("huge", {{"nvidia.com/gpu", "64"}});
  EXPECT_EQ(Schedule(pod, {"h100-a", "h100-b"}, &refusal), "");
  EXPECT_EQ(refusal["Error"], "");
  EXPECT_EQ(refusal["FailedAndUnresolvableNodes"]["h100-a"],
            "the node has fewer GPUs than the pod asks for");
}

TEST_F(Fleet, BadAmountIsADomainAnswer) {
  Json refusal;
  const Json pod = MakePod("odd", {}, {{"tranche.dev/gpu-fraction", "1.5"}});
  EXPECT_EQ(Schedule(pod, {"h100-a"}, &refusal), "");
  EXPECT_EQ(refusal["FailedAndUnresolvableNodes"]["h100-a"],
            "a GPU amount of the pod is not valid");
  const Json explained = Get("/api/v1/explain/team-a/odd");
  EXPECT_NE(explained["reason"]["detail"].get<std::string>().find("1.5"), std::string::npos);
}

TEST_F(Fleet, WholeNodesInTheQuestionAreInTheAnswer) {
  const Json node = Get("/embedded/v1/objects?kind=Node&name=h100-a");
  const Json pod = MakePod("train", {{"nvidia.com/gpu", "1"}});
  const Json found =
      Post("/scheduler/filter",
           {{"Pod", pod}, {"Nodes", {{"items", Json::array({node})}}}, {"NodeNames", nullptr}});
  ASSERT_EQ(found["Nodes"]["items"].size(), 1U);
  EXPECT_EQ(found["Nodes"]["items"][0]["metadata"]["name"], "h100-a");
}

TEST_F(LiveServer, WhatIfTakesPodsInTurnAndChangesNothing) {
  Apply(MakeNode("gpu-1", 2));
  const Json before = Get("/api/v1/nodes");
  const Json answer =
      Post("/api/v1/whatif",
           {{"pods",
             {MakePod("a", {{"nvidia.com/gpu", "1"}}), MakePod("a", {{"nvidia.com/gpu", "1"}}),
              MakePod("b", {{"nvidia.com/gpu", "1"}})}}});
  ASSERT_EQ(answer["pods"].size(), 3U);
  EXPECT_EQ(answer["pods"][0]["fits"], true);
  EXPECT_EQ(answer["pods"][0]["node"], "gpu-1");
  EXPECT_EQ(answer["pods"][1]["fits"], true);
  EXPECT_EQ(answer["pods"][2]["fits"], false);
  EXPECT_EQ(answer["pods"][2]["reason"]["code"], "NoRoom");
  EXPECT_EQ(answer["pods"][2]["victims"], Json::array());
  EXPECT_EQ(Get("/api/v1/nodes"), before);
  EXPECT_EQ(Get("/api/v1/pods")["pods"], Json::array());
}

TEST_F(LiveServer, PreemptKeepsNodesWhereTheVictimsHelp) {
  Apply(MakeNode("gpu-1", 1));
  Apply(MakeNode("gpu-2", 1));
  for (const char* node : {"gpu-1", "gpu-2"}) {
    const Json low = MakePod(std::string("low-") + node, {{"nvidia.com/gpu", "1"}});
    Apply(low);
    ASSERT_EQ(Schedule(low, {node}), node);
  }
  const auto victims = [](const std::vector<std::string>& uids) {
    Json pods = Json::array();
    for (const std::string& uid : uids) pods.push_back({{"UID", uid}});
    return Json{{"Pods", pods}, {"NumPDBViolations", 0}};
  };
  const Json asked = {{"gpu-1", victims({"uid-low-gpu-1", "nobody"})},
                      {"gpu-2", victims({"nobody"})}};
  const auto preempt = [&](const Json& pod) {
    return Post("/scheduler/preempt", {{"Pod", pod},
                                       {"NodeNameToVictims", nullptr},
                                       {"NodeNameToMetaVictims", asked}})["NodeNameToMetaVictims"];
  };
  const Json kept = preempt(MakePod("high", {{"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(kept, Json({{"gpu-1", victims({"uid-low-gpu-1"})}}));
  EXPECT_EQ(preempt(MakePod("higher", {{"nvidia.com/gpu", "2"}})), Json::object());
  EXPECT_EQ(preempt(MakePod("web", {})), asked);
}

TEST_F(LiveServer, BindIsAnsweredTheSameWhenAskedAgain) {
  Apply(MakeNode("gpu-1", 1));
  const Json pod = MakePod("train", {{"nvidia.com/gpu", "1"}});
  Apply(pod);
  EXPECT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  const Json again = {
      {"PodName", "train"}, {"PodNamespace", "team-a"}, {"PodUID", "uid-train"}, {"Node", "gpu-1"}};
  EXPECT_EQ(Post("/scheduler/bind", again)["Error"], "");
  Json other = again;
  other["Node"] = "gpu-2";
  EXPECT_EQ(Post("/scheduler/bind", other)["Error"],
            "the pod is bound, or being bound, to another node");
}

TEST_F(LiveServer, ANodeNotKnownYetIsAnErrorOnlyWhenNothingElseFits) {
  Apply(MakeNode("gpu-1", 1));
  const auto filter = [this](const Json& pod, const std::vector<std::string>& nodes) {
    return Post("/scheduler/filter", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nodes}});
  };
  const Json small = MakePod("small", {{"nvidia.com/gpu", "1"}});
  const Json large = MakePod("large", {{"nvidia.com/gpu", "2"}});
  const Json fits = filter(small, {"gpu-1", "just-born"});
  EXPECT_EQ(fits["Error"], "");
  EXPECT_EQ(fits["NodeNames"], Json({"gpu-1"}));
  EXPECT_EQ(filter(large, {"gpu-1"})["Error"], "");
  EXPECT_EQ(filter(large, {"gpu-1", "just-born"})["Error"], "the node is not known yet");
  EXPECT_EQ(filter(MakePod("web", {}), {"just-born"})["Error"], "") << "no GPU, not our business";
}

TEST_F(LiveServer, OfAHundredBindsAtOnceForEightGpusEightSucceed) {
  constexpr int kPods = 100;
  Apply(MakeNode("gpu-1", 8));
  for (int i = 0; i < kPods; ++i) {
    Apply(MakePod("p" + std::to_string(i), {{"nvidia.com/gpu", "1"}}));
  }
  std::atomic<int> bound{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kPods; ++i) {
    callers.emplace_back([&, name = "p" + std::to_string(i)] {
      const Json answer = Post("/scheduler/bind", {{"PodName", name},
                                                   {"PodNamespace", "team-a"},
                                                   {"PodUID", "uid-" + name},
                                                   {"Node", "gpu-1"}});
      bound += answer["Error"] == "";
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(bound, 8);
  std::set<int> slots;
  int with_node = 0;
  for (int i = 0; i < kPods; ++i) {
    const Json pod = Stored("p" + std::to_string(i));
    if (!pod["spec"].contains("nodeName")) continue;
    ++with_node;
    const Json record =
        Json::parse(pod["metadata"]["annotations"]["tranche.dev/allocation"].get<std::string>());
    slots.insert(record["containers"][0]["devices"][0]["slot"].get<int>());
  }
  EXPECT_EQ(with_node, 8);
  EXPECT_EQ(slots.size(), 8u) << "no GPU twice";
}

TEST_F(LiveServer, DeletedPodGivesItsGpuBackAfterItsGracePeriod) {
  Apply(MakeNode("gpu-1", 1));
  const Json first = MakePod("first", {{"nvidia.com/gpu", "1"}});
  const Json second = MakePod("second", {{"nvidia.com/gpu", "1"}});
  Apply(first);
  ASSERT_EQ(Schedule(first, {"gpu-1"}), "gpu-1");
  Post("/embedded/v1/delete",
       {{"kind", "Pod"}, {"metadata", {{"name", "first"}, {"namespace", "team-a"}}}});
  EXPECT_EQ(Schedule(second, {"gpu-1"}), "");
  const Json moved = Post("/embedded/v1/clock", {{"advanceSeconds", 31}});
  EXPECT_EQ(moved["now"].get<std::string>().back(), 'Z');
  Apply(second);
  EXPECT_EQ(Schedule(second, {"gpu-1"}), "gpu-1");
}

TEST_F(LiveServer, ClaimsEndWithTheClockAndNotBefore) {
  Apply(MakeNode("gpu-1", 1));
  const Json pod = MakePod("train", {{"nvidia.com/gpu", "1"}});
  Apply(pod);
  Post("/scheduler/filter", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", {"gpu-1"}}});
  const auto state = [this] { return Get("/api/v1/explain/team-a/train")["state"]; };
  EXPECT_EQ(state(), "claimed");
  Post("/embedded/v1/clock", {{"advanceSeconds", 0}});
  EXPECT_EQ(state(), "claimed");
  Post("/embedded/v1/clock", {{"advanceSeconds", 11}});
  EXPECT_EQ(state(), "pending");
}

struct Refused {
  const char* method;
  const char* target;
  const char* body;
  int status;
};

TEST_F(LiveServer, WhatCannotBeAnsweredIsRefusedInJson) {
  const std::vector<Refused> table = {
      {"GET", "/nothing", "", 404},
      {"GET", "/scheduler/filter", "", 405},
      {"POST", "/api/v1/nodes", "{}", 405},
      {"GET", "/api/v1/explain/team-a", "", 404},
      {"GET", "/api/v1/explain/team-a/nobody", "", 404},
      {"GET", "/api/v1/explain/a/b/c", "", 404},
      {"POST", "/api/v1/whatif", "{", 400},
      {"POST", "/api/v1/whatif", "[]", 400},
      {"POST", "/api/v1/whatif", "{}", 400},
      {"POST", "/api/v1/whatif", R"({"pods":[{}]})", 400},
      {"POST", "/embedded/v1/apply", "{", 400},
      {"POST", "/embedded/v1/delete", R"({"kind":"Pod","metadata":{"name":"nobody"}})", 404},
      {"POST", "/embedded/v1/clock", R"({"advanceSeconds":-1})", 400},
      {"POST", "/embedded/v1/clock", R"({"advanceSeconds":"1"})", 400},
      {"GET", "/embedded/v1/objects", "", 400},
      {"GET", "/embedded/v1/objects?kind=Pod&namespace=a&name=b", "", 404},
      {"GET", "/ui/none.js", "", 404},
  };
  for (const Refused& row : table) {
    SCOPED_TRACE(std::string(row.method) + " " + row.target + " " + row.body);
    const kube::SingleAnswer reply = Call(row.method, row.target, row.body);
    EXPECT_EQ(reply.status, row.status);
    const Json body = Json::parse(reply.body, nullptr, false);
    ASSERT_TRUE(body.is_object()) << reply.body;
    EXPECT_TRUE(body.contains("error"));
  }
}

TEST_F(LiveServer, MalformedVerbBodiesAre400WithAReason) {
  for (const char* verb : {"filter", "prioritize", "preempt", "bind"}) {
    for (const char* body : {"", "{", "[]", R"({"Pod":7})"}) {
      SCOPED_TRACE(std::string(verb) + " " + body);
      const kube::SingleAnswer reply = Call("POST", std::string("/scheduler/") + verb, body);
      EXPECT_EQ(reply.status, 400);
      const Json json = Json::parse(reply.body, nullptr, false);
      ASSERT_TRUE(json.is_object()) << reply.body;
      EXPECT_NE(json.value("Error", ""), "");
    }
  }
}

TEST_F(LiveServer, ProbesHaveAPortThatCrowdsElsewhereDoNotReach) {
  ServeConfig config;
  config.pages_address = config.probes_address = "127.0.0.1";
  config.limits.connections = 4;
  Launch(config);
  std::vector<std::unique_ptr<http::RawClient>> crowd;
  for (int i = 0; i < 40; ++i) {
    for (const uint16_t port : {runtime->pages_port(), runtime->port()}) {
      crowd.push_back(std::make_unique<http::RawClient>(port));
      crowd.back()->Send("G");
    }
  }
  const auto ask = [this](const std::string& path) {
    http::RawClient probe(runtime->probes_port());
    return probe.Ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n").status;
  };
  for (int i = 0; i < 3; ++i) {
    for (const char* path : {"/livez", "/readyz", "/healthz"}) EXPECT_EQ(ask(path), 200) << path;
  }
  for (const char* path : {"/metrics", "/api/v1/pods", "/scheduler/filter", "/ui/"}) {
    EXPECT_EQ(ask(path), 404) << path;
  }
}

TEST_F(LiveServer, WhoIsRefusedSendsNoBody) {
  ServeConfig config;
  config.pages_address = "127.0.0.1";
  Launch(config);
  const struct {
    uint16_t port;
    const char* path;
    int bytes;
    int status;
  } rows[] = {
      {runtime->pages_port(), "/scheduler/filter", 5'000'000, 404},
      {runtime->pages_port(), "/api/v1/whatif", 2'000'000, 413},
      {runtime->pages_port(), "/api/v1/pods", 70'000, 413},
      {runtime->port(), "/admission/validate", 34'000'000, 413},
      {runtime->port(), "/scheduler/filter", 9'000'000, 413},
  };
  for (const auto& [port, path, bytes, status] : rows) {
    http::RawClient client(port);
    EXPECT_EQ(client
                  .Ask("POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                       std::to_string(bytes) + "\r\n\r\n")
                  .status,
              status)
        << path;
  }
}

// kube-scheduler may ask about a pod with claims before the watch has shown it: passed as a pod
// that wants no GPUs it would never be charged.
TEST_F(LiveServer, APodWithClaimsIsJudgedOnceItWasSeen) {
  Apply(MakeNode("gpu-1", 1));
  Json pod = MakePod("claims", Json::object());
  pod["spec"]["resourceClaims"] = {{{"name", "gpu"}, {"resourceClaimName", "unknown"}}};
  const Json question = {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", {"gpu-1"}}};
  EXPECT_EQ(Post("/scheduler/filter", question)["Error"],
            "the pod, which names claims, has not been seen yet");
  Apply(pod);
  const Json answer = Post("/scheduler/filter", question);
  EXPECT_EQ(answer.value("Error", ""), "");
  EXPECT_TRUE(answer["NodeNames"].empty()) << "nobody knows the claim";
}

TEST_F(LiveServer, AUidThatComesBackUnderAnotherNameEndsNothing) {
  Apply(MakeNode("gpu-1", 1));
  Json pod = MakePod("first", {{"nvidia.com/gpu", "1"}});
  Post("/scheduler/filter", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", {"gpu-1"}}});
  pod["metadata"]["name"] = "second";
  Apply(pod);
  Post("/embedded/v1/delete",
       {{"kind", "Pod"}, {"metadata", {{"name", "second"}, {"namespace", "team-a"}}}});
  Post("/embedded/v1/clock", {{"advanceSeconds", 60}});
  Get("/api/v1/pods");
  EXPECT_EQ(Call("GET", "/livez").status, 200);
}

TEST_F(LiveServer, HealthVersionAndPageAreThere) {
  EXPECT_EQ(Call("GET", "/healthz").status, 200);
  EXPECT_EQ(Call("GET", "/livez").status, 200);
  EXPECT_EQ(Call("GET", "/readyz").status, 200);
  EXPECT_EQ(Get("/version")["version"], TRANCHE_VERSION);
  EXPECT_EQ(Call("GET", "/").status, 302);
  const kube::SingleAnswer page = Call("GET", "/ui/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("<html"), std::string::npos);
}

TEST_F(LiveServer, MetricsShowWhatHappened) {
  Apply(MakeNode("gpu-1", 2));
  const Json pod = MakePod("train", {{"nvidia.com/gpu", "1"}});
  Apply(pod);
  ASSERT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  const std::string text = Call("GET", "/metrics").body;
  for (const char* line : {
           "tranche_requests_total{result=\"yes\",verb=\"filter\"} 1\n",
           "tranche_requests_total{result=\"yes\",verb=\"bind\"} 1\n",
           "tranche_decisions_total{reason=\"None\",verb=\"bind\"} 1\n",
           "tranche_request_duration_seconds_count{verb=\"bind\"} 1\n",
           "tranche_ready 1\n",
           "tranche_nodes 1\n",
           "tranche_pods{state=\"bound\"} 1\n",
           "tranche_gpus{model=\"h100\"} 2\n",
           "tranche_gpu_allocated{model=\"h100\"} 1\n",
       }) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST_F(LiveServer, FilterWidthOfAPolicyNarrowsTheAnswer) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back("gpu-" + std::to_string(i));
    Apply(MakeNode(nodes.back(), 1));
  }
  const Json question = {{"Pod", MakePod("train", {{"nvidia.com/gpu", "1"}})},
                         {"Nodes", nullptr},
                         {"NodeNames", nodes}};
  EXPECT_EQ(Post("/scheduler/filter", question)["NodeNames"].size(), 4U);
  Apply({{"apiVersion", "tranche.dev/v1alpha1"},
         {"kind", "GPUPolicy"},
         {"metadata", {{"name", "narrow"}}},
         {"spec", {{"placement", {{"filterWidth", 1}}}}}});
  EXPECT_EQ(Post("/scheduler/filter", question)["NodeNames"].size(), 1U);
}

TEST_F(LiveServer, ClockIsMovedOnlyWhereItIsManual) {
  ServeConfig config;
  config.port = 0;
  Runtime other(config);
  ASSERT_TRUE(other.Start().ok());
  const auto reply = kube::CallOnce(LoopbackServer(other.port()),
                                    {"POST", "/embedded/v1/clock", R"({"advanceSeconds":1})"});
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->status, 409);
}

TEST(RuntimeTest, StartFailsWithTheReason) {
  ServeConfig config;
  config.port = 0;
  config.objects = {"/nonexistent/objects.yaml"};
  Runtime runtime(config);
  const absl::Status started = runtime.Start();
  ASSERT_FALSE(started.ok());
  EXPECT_NE(std::string(started.message()).find("/nonexistent/objects.yaml"), std::string::npos);
}

TEST(RuntimeTest, PortInUseIsAnError) {
  ServeConfig config;
  config.port = 0;
  Runtime first(config);
  ASSERT_TRUE(first.Start().ok());
  config.port = first.port();
  Runtime second(config);
  EXPECT_FALSE(second.Start().ok());
}

}  // namespace THIS_FILE
}  // namespace tranche
