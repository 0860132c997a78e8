// Advice and changes of MIG layouts through a whole server on an embedded cluster; the test plays
// mig-manager.
#include <functional>

#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

class AdviceServer : public LiveServer {
 protected:
  void SetUp() override {
    ServeConfig config;
    config.mig_config_ns = "ops";
    config.mig_config_name = "mig";
    Launch(config);
  }
  // A node of one whole A100 whose layout mig-manager changes.
  static Json Board() {
    Json node = MakeNode("gpu-1", 1);
    Json& labels = node["metadata"]["labels"];
    labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
    labels["nvidia.com/gpu.memory"] = "40960";
    labels["nvidia.com/mig.capable"] = "true";
    labels["nvidia.com/mig.strategy"] = "mixed";
    labels["nvidia.com/mig.config"] = "all-disabled";
    labels["nvidia.com/mig.config.state"] = "success";
    return node;
  }
  void Declare(const char* mig) const {
    Apply({{"apiVersion", "tranche.dev/v1alpha1"},
           {"kind", "GPUPolicy"},
           {"metadata", {{"name", "all"}}},
           {"spec", {{"mig", mig}}}});
  }
  Json Node() const { return Get("/embedded/v1/objects?kind=Node&name=gpu-1"); }
  // Moves the clock on until it holds.
  bool Eventually(const std::function<bool()>& holds) const {
    for (int i = 0; i < 60; ++i) {
      if (holds()) return true;
      Post("/embedded/v1/clock", {{"advanceSeconds", 10}});
    }
    return false;
  }
  std::string Config() const {
    return Node()["metadata"]["labels"]["nvidia.com/mig.config"].get<std::string>();
  }
};

TEST_F(AdviceServer, ALayoutIsPlannedForWhatWaitsAndCarriedOutWhereThePolicySaysSo) {
  Apply(Board());
  Declare("Advise");
  const Json pod = MakePod("small", {{"nvidia.com/mig-1g.5gb", "1"}});
  Apply(pod);
  ASSERT_EQ(Schedule(pod, {"gpu-1"}), "");
  Post("/embedded/v1/clock", {{"advanceSeconds", 120}});
  const Json plan = Get("/api/v1/advice")["repartition"];
  ASSERT_EQ(plan["nodes"].size(), 1U) << plan;
  const std::string config = plan["nodes"][0]["config"];
  EXPECT_EQ(plan["nodes"][0]["node"], "gpu-1");
  EXPECT_EQ(plan["waitingServed"], 1);
  EXPECT_EQ(Config(), "all-disabled");

  Declare("Apply");
  ASSERT_TRUE(Eventually([&] { return Config() == config; })) << Node();
  const Json map = Get("/embedded/v1/objects?kind=ConfigMap&namespace=ops&name=mig");
  EXPECT_NE(map["data"]["config.yaml"].get<std::string>().find(config), std::string::npos);
  EXPECT_FALSE(Get("/api/v1/nodes")["nodes"][0]["closed"].is_null()) << "it is held";

  Json node = Node();
  node["metadata"]["labels"]["nvidia.com/mig.config.state"] = "success";
  node["metadata"]["labels"].erase("nvidia.com/gpu.count");
  Json resources = {{"nvidia.com/gpu", "0"}};
  for (const Json& step : plan["nodes"][0]["steps"]) {
    EXPECT_EQ(step["to"], "7x 1g.5gb");
    resources["nvidia.com/mig-1g.5gb"] = "7";
  }
  node["status"]["allocatable"] = resources;
  node["status"]["capacity"] = resources;
  Apply(node);
  ASSERT_TRUE(Eventually([&] { return Get("/api/v1/nodes")["nodes"][0]["closed"].is_null(); }))
      << Get("/api/v1/nodes");
  EXPECT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  const std::string metrics = Call("GET", "/metrics").body;
  EXPECT_NE(metrics.find("tranche_mig_changes_total{outcome=\"done\"} 1"), std::string::npos);
}

}  // namespace THIS_FILE
}  // namespace tranche
