// A server that keeps a ledger, with a team of its own and a node of eight H100.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "scheduler/wire/json/json.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {

class LedgerServer : public LiveServer {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    ServeConfig config;
    config.ledger = folder_ / "ledger.db";
    config.bill_labels = {"project"};
    Launch(config);
    for (const char* object :
         {R"({"apiVersion": "v1", "kind": "Namespace",
              "metadata": {"name": "team-a", "labels": {"team": "a"}}})",
          R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUQuota", "metadata": {"name": "a"},
              "spec": {"namespaceSelector": {"matchLabels": {"team": "a"}},
                       "lines": [{"model": "h100", "nominal": {"gpus": 8}}]}})",
          R"({"apiVersion": "v1", "kind": "Node",
              "metadata": {"name": "n", "labels": {
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "8"}},
              "status": {"capacity": {"nvidia.com/gpu": "8"},
                         "allocatable": {"nvidia.com/gpu": "8"},
                         "conditions": [{"type": "Ready", "status": "True"}]}})"}) {
      Apply(test::Json::parse(object));
    }
  }
  void TearDown() override {
    LiveServer::TearDown();
    std::filesystem::remove_all(folder_);
  }

  void Advance(int seconds) { Post("/embedded/v1/clock", {{"advanceSeconds", seconds}}); }
  std::string Now() { return Post("/embedded/v1/clock", {{"advanceSeconds", 0}})["now"]; }
  // A pod "p" of the namespace that runs on the node from now on; more of its metadata.
  void Run(const std::string& ns, int gpus, const test::Json& metadata = test::Json::object()) {
    const std::string count = std::to_string(gpus);
    test::Json pod = {
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"status", {{"phase", "Pending"}}},
        {"metadata", {{"namespace", ns}, {"name", "p"}, {"uid", "u-" + ns}}},
        {"spec",
         {{"containers",
           test::Json::array(
               {{{"name", "m"}, {"resources", {{"limits", {{"nvidia.com/gpu", count}}}}}}})}}}};
    pod["metadata"].update(metadata);
    Apply(pod);
    ASSERT_EQ(Schedule(pod, {"n"}), "n");
  }

  std::filesystem::path folder_;
};

}  // namespace tranche
