// A node with an agent, a kubelet, an API server and GPUs: the fixture of the agent's tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/agent/agent.h"
#include "scheduler/turns/device_id.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "test/agent/kubelet.h"
#include "test/fakes/api_server.h"
#include "test/unit/scheduler/probe/fake_node.h"

namespace tranche::agent {

inline constexpr const char* kPods = "/api/v1/pods";
inline constexpr const char* kNodes = "/api/v1/nodes";

// Three cards: a and b are whole, c is in MIG mode.
inline nlohmann::json Cards(const std::vector<std::string>& uuids) {
  nlohmann::json node = {{"driver", "550.54.15"},
                         {"matrix", probe::kTopologies + "/dgx-h100.txt"},
                         {"gpus", nlohmann::json::array()}};
  int bus = 0x10;
  for (const std::string& uuid : uuids) {
    nlohmann::json card = {
        {"uuid", uuid}, {"bus", fmt::format("0000:{:02x}:00.0", bus++)}, {"memoryMiB", 81559}};
    if (uuid == "GPU-c") card["mig"] = nlohmann::json::array();
    node["gpus"].push_back(card);
  }
  return node;
}

// `ids` as the kubelet's (scheduler/turns/device_id.h).
inline std::string RecordText(const std::string& container, const fakes::Ids& ids) {
  nlohmann::json devices = nlohmann::json::array();
  for (const std::string& text : ids) {
    const DeviceId id = ParseDeviceId(text);
    devices.push_back({{"index", 0},
                       {"uuid", id.gpu.str()},
                       {"milli", id.place ? 142 : 1000},
                       {"mib", 81559},
                       {"mig", nullptr}});
    if (!id.place) continue;
    devices.back()["mig"] = {
        {"profile", id.place->profile}, {"start", id.place->start}, {"size", id.place->size}};
  }
  return nlohmann::json({{"v", 1},
                         {"epoch", 1},
                         {"leaf", "team"},
                         {"knowledge", "exact"},
                         {"containers", {{{"name", container}, {"devices", devices}}}}})
      .dump();
}

// A node with API server, kubelet and agent.
class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    config_.node = NodeName("node-1");
    config_.plugin_folder = folder_ / "plugins";
    std::filesystem::create_directories(config_.plugin_folder);
    config_.pod_resources = config_.plugin_folder + "/pod-resources.sock";
    config_.nvml = probe::kFakeNvml;
    config_.watch_health = false;  // while NVML is held open, another machine is not played
    credentials_.host = "127.0.0.1";
    credentials_.port = api_.port();
    credentials_.tls = false;
    node_.emplace(Cards({"GPU-a", "GPU-b", "GPU-c"}));
    kubelet_.emplace(config_.plugin_folder);
    api_.Put(kNodes, {{"metadata", {{"name", "node-1"}, {"uid", "uid-node"}}}});
  }

  // The devices of its register, as "uuid healthy".
  std::string Register() const {
    const auto node = api_.Object(kNodes, "node-1");
    const auto text = node["metadata"]
                          .value("annotations", nlohmann::json::object())
                          .value("tranche.dev/agent-register", "");
    const auto parsed = wire::ParseTrancheRegister(text);
    if (!parsed.ok()) return "none";
    std::string all;
    for (const AgentDevice& device : parsed->agent.devices) {
      all += fmt::format("{}:{} {}, ", device.index, device.uuid.str(), device.healthy);
    }
    return all;
  }
  // What its register says is wrong with them.
  std::string Problem() const {
    const auto node = api_.Object(kNodes, "node-1");
    const auto parsed = wire::ParseTrancheRegister(
        node["metadata"]["annotations"].value("tranche.dev/agent-register", ""));
    return parsed.ok() ? parsed->problem : std::string(parsed.status().message());
  }

  // At most a minute.
  static bool Await(const std::function<bool()>& so) {
    for (int i = 0; i < 600; ++i) {
      if (so()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  void StartAgent(int looks = 1) {
    agent_.reset();
    agent_ = std::make_unique<Agent>(config_, credentials_, looks);
    const absl::Status status = agent_->Step(now_);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(kubelet_->WaitForDevices(all_));
  }

  // A pod of one container "main" that asks for that many GPUs, or instances, and is recorded to
  // have these.
  static nlohmann::json PodJson(const std::string& name, const fakes::Ids& ids,
                                const std::string& resource = fakes::Kubelet::kGpus) {
    const nlohmann::json limits = {{resource, std::to_string(ids.size())}};
    return {{"metadata",
             {{"namespace", "team"},
              {"name", name},
              {"uid", "uid-" + name},
              {"annotations", {{"tranche.dev/allocation", RecordText("main", ids)}}}}},
            {"spec",
             {{"nodeName", "node-1"},
              {"containers", {{{"name", "main"}, {"resources", {{"limits", limits}}}}}}}},
            {"status", {{"phase", "Pending"}}}};
  }
  static fakes::ManagedPod Managed(const std::string& name, int64_t count) {
    return {"uid-" + name, "team", name, {{"main", count}}};
  }
  void Bind(const std::string& name, const fakes::Ids& gpus) {
    api_.Put(kPods, PodJson(name, gpus));
  }
  void Acknowledge(nlohmann::json pod, const std::string& phase) {
    pod["status"] = {{"phase", phase}, {"startTime", "2026-01-02T03:04:05Z"}};
    api_.Put(kPods, std::move(pod));
  }

  // The program itself, with these lines more in its configuration.
  void StartProgram(const std::string& more) {
    const std::string kubeconfig = folder_.Write(
        "kubeconfig",
        fmt::format("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                    "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
                    "clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{}'}}}}]"
                    "\nusers: [{{name: u, user: {{}}}}]\n",
                    api_.port()));
    const std::string file =
        folder_.Write("node.yaml", fmt::format("node: node-1\nkubeconfig: {}\npluginFolder: {}\n"
                                               "podResources: {}\nnvml: {}\nlogLevel: warn\n{}",
                                               kubeconfig, config_.plugin_folder,
                                               config_.pod_resources, config_.nvml, more));
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    execl(TRANCHE_NODE_BINARY, TRANCHE_NODE_BINARY, "--config", file.c_str(), nullptr);
    _exit(127);
  }
  // It has stayed small, and ends when asked.
  void EndProgram() {
    int64_t resident_kib = 0;
    std::ifstream status(fmt::format("/proc/{}/status", child_));
    for (std::string word; status >> word;) {
      if (word == "VmRSS:") status >> resident_kib;
    }
    std::cout << "resident: " << resident_kib << " KiB\n";
    EXPECT_GT(resident_kib, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LE(resident_kib, 20 * 1024);
#endif
    kill(child_, SIGTERM);
    int ended = -1;
    waitpid(child_, &ended, 0);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << ended;
  }

  pid_t child_ = 0;
  probe::TempFolder folder_;
  fakes::ApiServer api_;
  Config config_;
  kube::Credentials credentials_;
  std::optional<probe::FakeNode> node_;
  std::optional<fakes::Kubelet> kubelet_;
  std::unique_ptr<Agent> agent_;
  Agent::Time now_{};
  std::map<std::string, bool> all_ = {{"GPU-a", true}, {"GPU-b", true}, {"GPU-c", false}};
};

}  // namespace tranche::agent
