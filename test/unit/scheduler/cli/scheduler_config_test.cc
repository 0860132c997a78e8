#include "scheduler/cli/scheduler_config.h"

#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/cli/cli.h"

namespace tranche {
namespace THIS_FILE {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome Tranche(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCommandLine(arguments, out, err);
  return {code, out.str(), err.str()};
}

TEST(SchedulerConfigTest, AsksAboutEveryPodByDefault) {
  const Outcome outcome = Tranche({"scheduler-config", "--server", "http://10.0.0.7:8080/"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const YAML::Node config = YAML::Load(outcome.out);
  const YAML::Node extender = config["extenders"][0];
  EXPECT_EQ(extender["urlPrefix"].as<std::string>(), "http://10.0.0.7:8080/scheduler");
  EXPECT_EQ(extender["weight"].as<int>(), 20);
  EXPECT_TRUE(extender["nodeCacheCapable"].as<bool>());
  EXPECT_FALSE(extender["ignorable"].as<bool>());
  for (const char* verb : {"filter", "prioritize", "preempt", "bind"}) {
    EXPECT_EQ(extender[std::string(verb) + "Verb"].as<std::string>(), verb);
  }
  EXPECT_FALSE(extender["managedResources"]);
  const YAML::Node fit = config["profiles"][0]["pluginConfig"][0];
  EXPECT_EQ(fit["name"].as<std::string>(), "NodeResourcesFit");
  EXPECT_EQ(fit["args"]["ignoredResources"].as<std::vector<std::string>>(),
            (std::vector<std::string>{"nvidia.com/gpumem", "nvidia.com/gpumem-percentage",
                                      "nvidia.com/gpucores", "nvidia.com/vgpu-memory",
                                      "nvidia.com/vgpu-cores", "volcano.sh/vgpu-memory-percentage",
                                      "hivedscheduler.microsoft.com/pod-scheduling-enable"}));
}

TEST(SchedulerConfigTest, ForNamedResourcesListsThemOnce) {
  const Outcome outcome = Tranche({"scheduler-config", "--no-all-pods"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const YAML::Node config = YAML::Load(outcome.out);
  EXPECT_FALSE(config["profiles"][0]["pluginConfig"]);
  std::map<std::string, bool> ignored;
  for (const YAML::Node& resource : config["extenders"][0]["managedResources"]) {
    const auto name = resource["name"].as<std::string>();
    EXPECT_TRUE(ignored.emplace(name, resource["ignoredByScheduler"].as<bool>()).second) << name;
    EXPECT_EQ(name.find('+'), std::string::npos) << name;
  }
  EXPECT_EQ(ignored.at("nvidia.com/gpu"), false);
  EXPECT_EQ(ignored.at("nvidia.com/gpu.shared"), false);
  EXPECT_EQ(ignored.at("nvidia.com/mig-1g.10gb"), false);
  EXPECT_EQ(ignored.at("nvidia.com/mig-1g.5gb.shared"), false);
  EXPECT_EQ(ignored.at("nvidia.com/mig-1g.10gb.me"), false);
  EXPECT_EQ(ignored.at("nvidia.com/gpumem"), true);
  EXPECT_EQ(ignored.at("nvidia.com/gpucores"), true);
  // What an agent advertises kube-scheduler goes on counting.
  EXPECT_EQ(ignored.at("aliyun.com/gpu-mem"), false);
  EXPECT_EQ(ignored.at("volcano.sh/vgpu-number"), false);
  EXPECT_EQ(ignored.at("nvidia.com/vgpu-number"), false);
  EXPECT_EQ(ignored.at("nvidia.com/vgpu-memory"), true);
}

TEST(SchedulerConfigTest, VerifiesHttpsServers) {
  const Outcome outcome =
      Tranche({"scheduler-config", "--server", "https://tranche:8443", "--ca-file", "/etc/ca.crt",
               "--cert-file", "/etc/c.crt", "--key-file", "/etc/c.key"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const YAML::Node extender = YAML::Load(outcome.out)["extenders"][0];
  EXPECT_TRUE(extender["enableHTTPS"].as<bool>());
  EXPECT_EQ(extender["tlsConfig"]["caFile"].as<std::string>(), "/etc/ca.crt");
  EXPECT_EQ(extender["tlsConfig"]["keyFile"].as<std::string>(), "/etc/c.key");
}

TEST(SchedulerConfigTest, LargeFleetsAreSampled) {
  struct Row {
    int nodes;
    int percentage;
    const char* why;
  };
  const Row rows[] = {
      {1, 100, "every feasible node"},
      {1'000, 100, "every feasible node"},
      {1'001, 100, "every feasible node"},
      {1'011, 99, "Of 1011 nodes kube-scheduler stops at 1000"},
      {2'000, 50, "Of 2000 nodes kube-scheduler stops at 1000"},
      {5'000, 20, "Of 5000 nodes kube-scheduler stops at 1000"},
      {15'000, 7, "Of 15000 nodes kube-scheduler stops at 1050"},
      {100'000, 5, "Of 100000 nodes kube-scheduler stops at 5000"},
  };
  for (const Row& row : rows) {
    const Outcome outcome = Tranche({"scheduler-config", "--nodes", std::to_string(row.nodes)});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(YAML::Load(outcome.out)["profiles"][0]["percentageOfNodesToScore"].as<int>(),
              row.percentage)
        << row.nodes;
    EXPECT_NE(outcome.out.find(row.why), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(YAML::Load(Tranche({"scheduler-config"}).out)["profiles"][0]["percentageOfNodesToScore"]
                .as<int>(),
            100);
  for (const char* bad : {"0", "100001", "many"}) {
    const Outcome outcome = Tranche({"scheduler-config", "--nodes", bad});
    EXPECT_EQ(outcome.code, 2) << bad;
    EXPECT_NE(outcome.err.find("--nodes"), std::string::npos) << outcome.err;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
