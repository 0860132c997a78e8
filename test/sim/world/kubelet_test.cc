// A kubelet alone: what it gives, when it gives it back, what it says.
#include "test/sim/world/kubelet.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/sim/cluster/server_scene.h"

namespace tranche::sim {
namespace THIS_FILE {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Scene : ServerScene {
  explicit Scene(NodeKind kind, int hami_minor = 8)
      : kubelet(loop, history, api, Machined(kind), {hami_minor}, 1) {
    Put("nodes", NodeObject(kubelet.machine()));
    history.Listen([this](const Happening& happening) {
      if (happening.kind == Happening::Kind::kGranted) grants.push_back(happening);
      if (happening.kind == Happening::Kind::kReleased) ++released;
    });
    api.store().Listen([this](std::string_view resource, const Change& change) {
      if (resource == "pods") kubelet.Hear(change);
    });
  }
  static Machine Machined(NodeKind kind) {
    Machine machine;
    machine.name = "node-1";
    machine.kind = kind;
    machine.product = "NVIDIA-A100-SXM4-80GB";
    machine.mib = 81920;
    machine.cards = {"GPU-a", "GPU-b"};
    if (kind == NodeKind::kMig) machine.instances = {{0, "3g.40gb", 0, 4, 40192}};
    if (kind == NodeKind::kAgent) machine.slots = 10;
    return machine;
  }
  void Come(const std::string& name, const Json& limits, Json annotations = Json::object()) {
    Put("pods", {{"metadata",
                  {{"name", name}, {"namespace", "team"}, {"annotations", std::move(annotations)}}},
                 {"spec",
                  {{"nodeName", "node-1"},
                   {"containers",
                    Json::array({{{"name", "main"},
                                  {"resources", {{"limits", limits}, {"requests", limits}}}}})}}},
                 {"status", {{"phase", "Pending"}}}});
  }
  void Run(SimTime time) { loop.RunUntil(loop.now() + time, 100'000); }
  std::string Phase(const std::string& name) { return PhaseOf(Object("pods", "team/" + name)); }

  Kubelet kubelet;
  std::vector<Happening> grants;
  int released = 0;
};

TEST(KubeletTest, APodRunsForItsTime) {
  Scene scene(NodeKind::kStock);
  scene.Come("p", {{"nvidia.com/gpu", "2"}}, {{kRuntimeKey, "5000"}});
  scene.Run(seconds(4));
  EXPECT_EQ(scene.Phase("p"), "Running");
  ASSERT_EQ(scene.grants.size(), 1U);
  EXPECT_EQ(scene.grants[0].after["devices"].size(), 2U);
  EXPECT_EQ(scene.released, 0);
  scene.Run(seconds(6));
  EXPECT_EQ(scene.Phase("p"), "Succeeded");
  EXPECT_EQ(scene.released, 1);
}

TEST(KubeletTest, WhatIsNotThereIsRefused) {
  struct Row {
    NodeKind kind;
    Json limits;
    bool runs;
  };
  for (const Row& row : {Row{NodeKind::kStock, {{"nvidia.com/gpu", "2"}}, true},
                         Row{NodeKind::kStock, {{"nvidia.com/gpu", "3"}}, false},
                         Row{NodeKind::kStock, {{"nvidia.com/mig-3g.40gb", "1"}}, false},
                         Row{NodeKind::kMig, {{"nvidia.com/mig-3g.40gb", "1"}}, true},
                         Row{NodeKind::kMig, {{"nvidia.com/mig-3g.40gb", "2"}}, false},
                         Row{NodeKind::kMig, {{"nvidia.com/gpu", "1"}}, false},
                         Row{NodeKind::kPlain, {{"cpu", "1"}}, true}}) {
    Scene scene(row.kind);
    scene.Come("p", row.limits);
    scene.Run(seconds(4));
    EXPECT_EQ(scene.Phase("p"), row.runs ? "Running" : "Failed") << row.limits;
    if (row.runs) continue;
    EXPECT_EQ(scene.Object("pods", "team/p")["status"]["reason"], "UnexpectedAdmissionError");
    EXPECT_TRUE(scene.grants.empty());
  }
}

TEST(KubeletTest, APodThatIsDeletedKeepsItsCardsUntilItHasEnded) {
  for (const bool by_force : {false, true}) {
    Scene scene(NodeKind::kStock);
    scene.Come("p", {{"nvidia.com/gpu", "2"}});
    scene.Run(seconds(4));
    Json options = Json::object();
    if (by_force) options["gracePeriodSeconds"] = 0;
    Request request{"DELETE", "/api/v1/namespaces/team/pods/p", options.dump()};
    scene.api.Send(scene.client, request, seconds(5), [](const Reply&) {});
    scene.Run(milliseconds(10));
    EXPECT_EQ(scene.Object("pods", "team/p").is_null(), by_force);
    EXPECT_EQ(scene.released, 0);
    scene.Run(seconds(40));
    EXPECT_TRUE(scene.Object("pods", "team/p").is_null());
    EXPECT_EQ(scene.released, 1);
  }
}

TEST(KubeletTest, WhatRanBeforeRunsOn) {
  Scene scene(NodeKind::kHami);
  scene.Put("pods",
            {{"metadata",
              {{"name", "p"}, {"namespace", "other"}, {"annotations", {{kRuntimeKey, "5000"}}}}},
             {"spec", {{"containers", Json::array({{{"name", "main"}}})}}},
             {"status", {{"phase", "Running"}}}});
  scene.kubelet.Adopt(*scene.api.store().Find("pods", "other/p"),
                      Json::array({{{"uuid", "GPU-b"}, {"milli", 500}}}));
  ASSERT_EQ(scene.grants.size(), 1U);
  EXPECT_EQ(scene.grants[0].after["devices"][0]["uuid"], "GPU-b");
  scene.Run(seconds(4));
  EXPECT_EQ(scene.released, 0);
  scene.Run(seconds(4));
  EXPECT_EQ(scene.released, 1);
  EXPECT_EQ(scene.Object("pods", "other/p")["status"]["phase"], "Succeeded");
}

Json HamiNotes(const std::string& devices) {
  return {{"hami.io/vgpu-node", "node-1"},
          {"hami.io/bind-time", "1"},
          {"hami.io/bind-phase", "allocating"},
          {"hami.io/vgpu-devices-to-allocate", devices}};
}

TEST(KubeletTest, HamiGivesWhatIsWrittenOnThePod) {
  Scene scene(NodeKind::kHami);
  scene.Come("p", {{"nvidia.com/gpu", "1"}}, HamiNotes("GPU-b,NVIDIA,3000,30:;"));
  scene.Run(seconds(4));
  EXPECT_EQ(scene.Phase("p"), "Running");
  ASSERT_EQ(scene.grants.size(), 1U);
  const Json device = scene.grants[0].after["devices"][0];
  EXPECT_EQ(device["uuid"], "GPU-b");
  EXPECT_EQ(device["mib"], 3000);
  EXPECT_EQ(device["milli"], 300);
  const Json notes = scene.Object("pods", "team/p")["metadata"]["annotations"];
  EXPECT_EQ(notes["hami.io/bind-phase"], "success");
}

TEST(KubeletTest, HamiRefusesWhatItCannotRead) {
  for (const char* devices :
       {"", "nonsense", "GPU-x,NVIDIA,3000,30:;", "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;"}) {
    Scene scene(NodeKind::kHami);
    scene.Come("p", {{"nvidia.com/gpu", "1"}}, HamiNotes(devices));
    scene.Run(seconds(4));
    EXPECT_EQ(scene.Phase("p"), "Failed") << devices;
    EXPECT_TRUE(scene.grants.empty()) << devices;
  }
}

Json RecordOf(const char* uuid, int milli, int mib) {
  const Json device = {{"index", 0}, {"uuid", uuid}, {"milli", milli}, {"mib", mib}};
  const Json record = {{"v", 1},
                       {"epoch", 1},
                       {"leaf", ""},
                       {"knowledge", "exact"},
                       {"containers", {{{"name", "main"}, {"devices", Json::array({device})}}}}};
  return {{"tranche.dev/allocation", record.dump()}};
}

TEST(KubeletTest, TheAgentGivesTheRecordedPartOrNothing) {
  const struct {
    const char* what;
    Json notes;
    int64_t mib;  // 0: refused
  } rows[] = {
      {"half of the second card", RecordOf("GPU-b", 500, 40960), 40960},
      {"all of it", RecordOf("GPU-b", 1000, 81920), 81920},
      {"a card of another machine", RecordOf("GPU-x", 500, 40960), 0},
      {"no record", Json::object(), 0},
  };
  for (const auto& row : rows) {
    Scene scene(NodeKind::kAgent);
    scene.Come("p", {{"nvidia.com/gpu", "1"}}, row.notes);
    scene.Run(seconds(4));
    EXPECT_EQ(scene.Phase("p"), row.mib > 0 ? "Running" : "Failed") << row.what;
    if (row.mib == 0) continue;
    ASSERT_EQ(scene.grants.size(), 1U) << row.what;
    EXPECT_EQ(scene.grants[0].after["devices"][0]["uuid"], "GPU-b");
    EXPECT_EQ(scene.grants[0].after["devices"][0]["mib"], row.mib);
  }
}

TEST(KubeletTest, WhatTheAgentGaveIsGivenAnewOnceThePodHasEnded) {
  Scene scene(NodeKind::kAgent);
  Json whole = RecordOf("GPU-a", 1000, 81920);
  Json brief = whole;
  brief[kRuntimeKey] = "5000";
  scene.Come("first", {{"nvidia.com/gpu", "1"}}, brief);
  scene.Run(seconds(10));
  EXPECT_EQ(scene.Phase("first"), "Succeeded");
  scene.kubelet.agent()->Restart();
  scene.Come("second", {{"nvidia.com/gpu", "1"}}, whole);
  scene.Run(seconds(4));
  EXPECT_EQ(scene.Phase("second"), "Running");
}

TEST(KubeletTest, AMachineThatVanishesGivesEverythingBack) {
  Scene scene(NodeKind::kStock);
  scene.Come("p", {{"nvidia.com/gpu", "1"}}, {{kRuntimeKey, "5000"}});
  scene.Run(seconds(4));
  scene.kubelet.Vanish();
  EXPECT_EQ(scene.released, 1);
  scene.Run(seconds(60));
  EXPECT_EQ(scene.Phase("p"), "Running");  // nobody says otherwise
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
