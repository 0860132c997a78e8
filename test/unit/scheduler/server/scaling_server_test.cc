// What a whole server says of pods for when their number is changed.
#include <string>

#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

constexpr const char* kCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr const char* kOurs = "tranche.dev/deletion-cost";

// A ReplicaSet with a pod on gpu-1 beside other work, and one alone on gpu-2.
class ScaledPods : public LiveServer {
 protected:
  void SetUp() override {
    LiveServer::SetUp();
    Apply(MakeNode("gpu-1", 4));
    Apply(MakeNode("gpu-2", 4));
    Place(MakePod("other", {{"nvidia.com/gpu", "3"}}), "gpu-1");
    Place(Replica("web-1"), "gpu-1");
    Place(Replica("web-2"), "gpu-2");
  }
  static Json Replica(const std::string& name) {
    Json pod = MakePod(name, {{"nvidia.com/gpu", "1"}}, {{"team", "own"}});
    pod["metadata"]["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                           {"kind", "ReplicaSet"},
                                           {"name", "web"},
                                           {"uid", "uid-web"},
                                           {"controller", true}}};
    return pod;
  }
  void Place(const Json& pod, const std::string& node) {
    Apply(pod);
    ASSERT_EQ(Schedule(pod, {node}), node);
  }
  void Policy(const std::string& deletion_cost) {
    Apply({{"apiVersion", "tranche.dev/v1alpha1"},
           {"kind", "GPUPolicy"},
           {"metadata", {{"name", "fleet"}}},
           {"spec", {{"deletionCost", deletion_cost}}}});
  }
  void Advance(int64_t seconds) const { Post("/embedded/v1/clock", {{"advanceSeconds", seconds}}); }
  // What the annotation says; null: it is not there.
  Json Says(const std::string& pod, const char* key) const {
    return Stored(pod)["metadata"]["annotations"].value(key, Json());
  }
};

TEST_F(ScaledPods, AreToldWhichFreesTheMostUntilNobodyWantsIt) {
  Advance(180);
  EXPECT_EQ(Says("web-2", kCost), Json()) << "nobody asked for it";
  Policy("On");
  Advance(61);
  Advance(61);
  EXPECT_EQ(Says("web-2", kCost), "-310");
  EXPECT_EQ(Says("web-2", kOurs), "-310");
  EXPECT_EQ(Says("web-1", kCost), "-10") << "its GPU is whole, its node is full";
  EXPECT_EQ(Says("other", kCost), Json());
  EXPECT_EQ(Says("web-2", "team"), "own");

  Policy("Off");
  Advance(61);
  for (const char* pod : {"web-1", "web-2"}) {
    EXPECT_EQ(Says(pod, kCost), Json()) << pod;
    EXPECT_EQ(Says(pod, kOurs), Json()) << pod;
    EXPECT_FALSE(Says(pod, "tranche.dev/allocation").is_null());
  }
}

TEST_F(ScaledPods, AUsersCostStaysAndIsAloneInItsSet) {
  Policy("On");
  Advance(61);
  Advance(61);
  ASSERT_EQ(Says("web-2", kCost), "-310");
  Json mine = Stored("web-1");
  mine["metadata"]["annotations"][kCost] = "100";
  Apply(mine);
  Advance(61);
  Advance(61);
  EXPECT_EQ(Says("web-1", kCost), "100");
  EXPECT_EQ(Says("web-2", kCost), Json());
  Policy("Off");
  Advance(61);
  EXPECT_EQ(Says("web-1", kCost), "100");
}

// A gang of two pods of four GPUs and a node for one of them. The test plays the autoscaler.
class GangWithoutRoom : public LiveServer {
 protected:
  void SetUp() override {
    LiveServer::SetUp();
    Apply(MakeNode("gpu-1", 4));
    Apply({{"apiVersion", "tranche.dev/v1alpha1"},
           {"kind", "GPUPolicy"},
           {"metadata", {{"name", "fleet"}}},
           {"spec", {{"provisioning", "AtomicScaleUp"}}}});
    for (const char* name : {"run-0", "run-1"}) Apply(Member(name));
    for (const char* name : {"run-0", "run-1"}) EXPECT_EQ(Schedule(Member(name), {"gpu-1"}), "");
  }
  static Json Member(const std::string& name) {
    Json pod = MakePod(name, {{"nvidia.com/gpu", "4"}},
                       {{"tranche.dev/gang", "run"}, {"tranche.dev/gang-size", "2"}});
    pod["metadata"]["ownerReferences"] = {{{"apiVersion", "batch/v1"},
                                           {"kind", "Job"},
                                           {"name", "run"},
                                           {"uid", "uid-run"},
                                           {"controller", true}}};
    return pod;
  }
  void Advance(int64_t seconds) const { Post("/embedded/v1/clock", {{"advanceSeconds", seconds}}); }
  Json Requests() const { return Get("/embedded/v1/objects?kind=ProvisioningRequest")["items"]; }
  Json Templates() const { return Get("/embedded/v1/objects?kind=PodTemplate")["items"]; }
  // The autoscaler says so of the request, now.
  void Says(const std::string& type, const std::string& status) const {
    Json request = Requests().at(0);
    const std::string now = Post("/embedded/v1/clock", {{"advanceSeconds", 0}})["now"];
    request["status"]["conditions"] = Json::array({{{"type", type},
                                                    {"status", status},
                                                    {"reason", "Why"},
                                                    {"message", "because"},
                                                    {"lastTransitionTime", now}}});
    Apply(request);
  }
  Json Uses(const std::string& pod) const {
    return Stored(pod)["metadata"]["annotations"].value(
        "autoscaling.x-k8s.io/consume-provisioning-request", Json());
  }
};

TEST_F(GangWithoutRoom, IsAskedForAsOneAndTheRequestGoesWithItsPlacement) {
  EXPECT_EQ(Requests().size(), 0U);
  Advance(11);
  Advance(11);
  ASSERT_EQ(Requests().size(), 1U);
  const Json request = Requests()[0];
  EXPECT_EQ(request["spec"]["provisioningClassName"],
            "best-effort-atomic-scale-up.autoscaling.x-k8s.io");
  ASSERT_EQ(request["spec"]["podSets"].size(), 1U);
  EXPECT_EQ(request["spec"]["podSets"][0]["count"], 2);
  ASSERT_EQ(Templates().size(), 1U);
  EXPECT_EQ(Templates()[0]["metadata"]["name"],
            request["spec"]["podSets"][0]["podTemplateRef"]["name"]);
  Advance(11);
  for (const char* name : {"run-0", "run-1"}) {
    EXPECT_EQ(Uses(name), request["metadata"]["name"]) << name;
  }
  Says("Provisioned", "True");
  Advance(11);
  const std::string told = Get("/embedded/v1/objects?kind=Event").dump();
  EXPECT_NE(told.find("nodes for all of its pods are there or on their way (Why: because)"),
            std::string::npos);

  Apply(MakeNode("gpu-2", 4));
  const std::vector<std::string> nodes = {"gpu-1", "gpu-2"};
  for (const char* name : {"run-0", "run-1"}) EXPECT_NE(Schedule(Member(name), nodes), "") << name;
  Advance(11);
  EXPECT_EQ(Requests().size(), 0U);
  EXPECT_EQ(Templates().size(), 0U);
}

TEST_F(GangWithoutRoom, WhatFailedLeavesItsPodsToTheAutoscalerAsEver) {
  for (int i = 0; i < 3; ++i) Advance(11);
  ASSERT_FALSE(Uses("run-0").is_null());
  Says("Failed", "True");
  Advance(11);
  EXPECT_TRUE(Uses("run-0").is_null());
  EXPECT_EQ(Requests().size(), 1U) << "so that it is not asked for again at once";
}

}  // namespace THIS_FILE
}  // namespace tranche
