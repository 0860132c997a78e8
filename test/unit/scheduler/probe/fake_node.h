// A machine for the fake NVML library to play, as long as this lives.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/fakes/places.h"

namespace tranche::probe {

inline const std::string kFakeNvml = fakes::FakeNvml();
inline const std::string kGpuNode = fakes::SourceFolder() + "/test/fakes/gpu_node";
inline const std::string kTopologies = fakes::SourceFolder() + "/test/cases/topologies";

// An empty folder of the running test, removed at the end.
class TempFolder {
 public:
  TempFolder() : path_(testing::TempDir() + "tranche-probe-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file; the folders on its way are made.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }

 private:
  std::string path_;
};

class FakeNode {
 public:
  // The machine of test/fakes/gpu_node, changed by `edit`.
  explicit FakeNode(void (*edit)(nlohmann::json& node) = [](nlohmann::json&) {}) {
    std::ifstream file(kGpuNode + "/node.json");
    nlohmann::json node = nlohmann::json::parse(file);
    node["matrix"] = kTopologies + "/dgx-h100.txt";
    edit(node);
    Play(node);
  }
  explicit FakeNode(const nlohmann::json& node) { Play(node); }
  // Plays another one; instances that were made stay.
  void Change(const nlohmann::json& node) { Play(node); }
  // What goes wrong from now on, by function (test/fakes/nvml).
  void Fail(const nlohmann::json& faults) { folder_.Write("faults.json", faults.dump()); }
  // What the driver tells from now on, in full: of each uuid, type and data.
  void Tell(const nlohmann::json& events) { folder_.Write("events.json", events.dump()); }
  // Instances of GPUs that can be cut: "GPU-a 1g.10gb@3" in the driver's order.
  std::vector<std::string> Instances() const {
    std::vector<std::string> all;
    std::ifstream file(folder_ / "instances.json");
    const nlohmann::json kept = nlohmann::json::parse(file, nullptr, false);
    if (!kept.is_object()) return all;
    for (const auto& [gpu, instances] : kept.items()) {
      if (!instances.is_array()) continue;
      for (const auto& one : instances) {
        all.push_back(gpu + " " + one["profile"].get<std::string>() + "@" +
                      std::to_string(one["start"].get<int>()));
      }
    }
    return all;
  }
  ~FakeNode() { unsetenv("FAKE_NVML_NODE"); }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

 private:
  void Play(const nlohmann::json& node) {
    setenv("FAKE_NVML_NODE", folder_.Write("node.json", node.dump()).c_str(), 1);
  }

  TempFolder folder_;
};

}  // namespace tranche::probe
