// HAMi and its ancestor for the scenarios with node agents: what their nodes register, and pods.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "test/fakes/agents/hami_agent.h"
#include "test/unit/scheduler/controllers/agents_scenario.h"

namespace tranche {

using fakes::FakeContainer;
using fakes::FakeNode;
using fakes::FakePods;
using fakes::Text;
using Json = nlohmann::json;

inline FakeContainer App(std::string name, Text limits) {
  return {std::move(name), false, std::move(limits)};
}
inline FakeContainer Init(std::string name, Text limits) {
  return {std::move(name), true, std::move(limits)};
}

template <typename Agent>
std::unique_ptr<fakes::NodeAgent> Make(FakePods& pods) {
  return std::make_unique<Agent>(pods);
}

inline int64_t Cards(const FakeNode& node) { return static_cast<int64_t>(node.cards.size()); }

inline constexpr const char* kHamiType = "NVIDIA-Tesla P100-PCIE-16GB";

inline std::string TextRegister(const FakeNode& node) {
  std::string text;
  for (const fakes::FakeCard& card : node.cards) {
    text += card.uuid + "," + std::to_string(card.slots) + "," + std::to_string(card.memory_mib) +
            ",100," + kHamiType + ",0,true:";
  }
  return text;
}

inline std::string JsonRegister(const FakeNode& node, bool profiles) {
  Json list = Json::array();
  for (const fakes::FakeCard& card : node.cards) {
    Json device = {{"id", card.uuid}, {"count", card.slots}, {"devmem", card.memory_mib},
                   {"devcore", 100},  {"type", kHamiType},   {"mode", "hami-core"},
                   {"health", true}};
    if (!list.empty()) device["index"] = list.size();
    if (profiles) {
      device["migProfiles"] = {{{"name", "1g.5gb"},
                                {"memoryMB", 4864},
                                {"core", 14},
                                {"sliceCount", 1},
                                {"placements", {{{"start", 0}, {"size", 1}}}}}};
    }
    list.push_back(device);
  }
  return list.dump();
}

inline std::vector<FakeContainer> HamiContainers(int n) {
  const Text part = {
      {"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "4000"}, {"nvidia.com/gpucores", "20"}};
  switch (n % 5) {
    case 0:
      return {App("main", part)};
    case 1:
      return {App("main", {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "6000"}})};
    case 2:
      return {App("main", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem-percentage", "50"}})};
    case 3:
      return {App("main", part), App("log", {}), App("side", part)};
    default:
      return {App(
          "main",
          {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "9000"}, {"nvidia.com/gpucores", "60"}})};
  }
}

inline std::vector<FakeContainer> HamiContainersWithInit(int n) {
  std::vector<FakeContainer> containers = HamiContainers(n);
  if (n % 6 == 0) {
    containers.insert(containers.begin(),
                      Init("prepare", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "2000"}}));
  }
  return containers;
}

inline Driver Hami(int minor) {
  Driver driver;
  driver.name = "hami_2_" + std::to_string(minor);
  driver.agent = [minor](FakePods& pods) {
    return std::make_unique<fakes::HamiAgent>(pods, minor);
  };
  driver.dress = [minor](FakeNode& node) {
    node.capacity["nvidia.com/gpu"] = Cards(node) * 10;
    node.annotations["hami.io/node-nvidia-register"] =
        minor <= 7 ? TextRegister(node) : JsonRegister(node, minor >= 10);
  };
  driver.containers = minor >= 9 ? HamiContainersWithInit : HamiContainers;
  // The register of 2.8 looks like that of 2.9: a lock that 2.8 could do without does no harm.
  driver.locks = minor >= 8;
  return driver;
}

// Half of the nodes in mode mig, the others shared; pods that want the one, the other, or any.
inline constexpr int64_t kA100Mib = 40960;

inline std::string MigRegister(const FakeNode& node) {
  Json list = Json::array();
  for (const fakes::FakeCard& card : node.cards) {
    Json device = {{"id", card.uuid},
                   {"count", card.slots},
                   {"devmem", card.memory_mib},
                   {"devcore", 100},
                   {"type", "NVIDIA-NVIDIA A100-SXM4-40GB"},
                   {"mode", card.profiles.empty() ? "hami-core" : "mig"},
                   {"health", true}};
    if (!list.empty()) device["index"] = list.size();
    for (const fakes::FakeMigProfile& profile : card.profiles) {
      Json places = Json::array();
      for (const int start : profile.starts) {
        places.push_back({{"start", start}, {"size", profile.size}});
      }
      device["migProfiles"].push_back({{"name", profile.name},
                                       {"memoryMB", profile.memory_mib},
                                       {"core", profile.cores},
                                       {"placements", places}});
    }
    list.push_back(device);
  }
  return list.dump();
}

inline std::vector<FakeContainer> MigContainers(int n) {
  const auto share = [](const char* cards, const char* mib) {
    return Text{{"nvidia.com/gpu", cards}, {"nvidia.com/gpumem", mib}};
  };
  switch (n % 6) {
    case 0:
      return {App("main", share("1", "4000"))};
    case 1:
      return {App("main", share("1", "9000")), App("log", {}), App("side", share("1", "4000"))};
    case 2:
      return {Init("prepare", share("1", "2000")), App("main", share("1", "18000"))};
    case 3:
      return {App("main", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem-percentage", "50"}})};
    case 4:
      return {App("main", share("2", "8000"))};
    default:
      return {App("main", {{"nvidia.com/gpu", "1"}})};
  }
}

inline Driver HamiMig() {
  Driver driver;
  driver.name = "hami_2_10_mig";
  driver.agent = [](FakePods& pods) { return std::make_unique<fakes::HamiAgent>(pods, 10); };
  driver.card_mib = kA100Mib;
  driver.dress = [](FakeNode& node) {
    const bool cut = node.name.back() % 2 == 0;
    for (fakes::FakeCard& card : node.cards) {
      if (!cut) break;
      card.profiles = {{"1g.5gb", 4864, 14, 1, {0, 1, 2, 3, 4, 5, 6}},
                       {"2g.10gb", 9984, 28, 2, {0, 2, 4}},
                       {"3g.20gb", 20096, 42, 4, {0, 4}},
                       {"7g.40gb", 40320, 100, 8, {0}}};
    }
    node.labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
    node.capacity["nvidia.com/gpu"] = Cards(node) * 10;
    node.annotations["hami.io/node-nvidia-register"] = MigRegister(node);
  };
  driver.containers = MigContainers;
  driver.annotations = [](int n) -> Text {
    if (n % 6 == 4) return {{"nvidia.com/vgpu-mode", "mig"}};
    if (n % 12 == 0) return {{"nvidia.com/vgpu-mode", "mig"}};
    return {};
  };
  driver.locks = true;
  return driver;
}

inline Driver FourPd() {
  Driver driver;
  driver.name = "4pd";
  driver.agent = Make<fakes::FourPdAgent>;
  driver.dress = [](FakeNode& node) {
    node.capacity["nvidia.com/gpu"] = Cards(node) * 10;
    node.annotations["4pd.io/node-nvidia-register"] = TextRegister(node);
  };
  driver.containers = HamiContainers;
  return driver;
}

}  // namespace tranche
