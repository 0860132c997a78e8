// Every driver against its agent: 200 pods on 10 nodes, in peace and with deletions, kills and lost
// answers.
#include "test/unit/scheduler/controllers/agents_scenario.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "test/fakes/agents/elastic_agent.h"
#include "test/fakes/agents/gpushare_agent.h"
#include "test/fakes/agents/koordlet.h"
#include "test/fakes/agents/stock_plugin.h"
#include "test/fakes/agents/tkestack_agent.h"
#include "test/fakes/agents/vgpu_manager_agent.h"
#include "test/fakes/agents/volcano_agent.h"
#include "test/fakes/agents/volcano_old_agent.h"
#include "test/unit/scheduler/controllers/hami_drivers.h"

namespace tranche {
namespace THIS_FILE {

// ---- Volcano ------------------------------------------------------------------------------------

Driver Volcano(int64_t factor) {
  Driver driver;
  driver.name = "volcano_x" + std::to_string(factor);
  driver.agent = [factor](FakePods& pods) {
    return std::make_unique<fakes::VolcanoAgent>(pods, factor);
  };
  driver.dress = [factor](FakeNode& node) {
    std::string text;
    for (const fakes::FakeCard& card : node.cards) {
      text += card.uuid + ",10," + std::to_string(card.memory_mib / factor) + "," + kHamiType +
              ",true,hami-core:";
    }
    node.annotations["volcano.sh/node-vgpu-register"] = text;
    node.capacity["volcano.sh/vgpu-number"] = Cards(node) * 10;
  };
  driver.containers = [factor](int n) -> std::vector<FakeContainer> {
    const auto units = [factor](int64_t mib) { return std::to_string(mib / factor); };
    switch (n % 4) {
      case 0:
        return {App("main", {{"volcano.sh/vgpu-number", "1"},
                             {"volcano.sh/vgpu-memory", units(4000)},
                             {"volcano.sh/vgpu-cores", "20"}})};
      case 1:
        return {App("log", {}), App("main", {{"volcano.sh/vgpu-number", "2"},
                                             {"volcano.sh/vgpu-memory", units(6000)}})};
      case 2:
        return {App("main", {{"volcano.sh/vgpu-number", "1"},
                             {"volcano.sh/vgpu-memory-percentage", "50"}})};
      default:
        return {App("main",
                    {{"volcano.sh/vgpu-number", "3"}, {"volcano.sh/vgpu-memory", units(2000)}})};
    }
  };
  return driver;
}

Driver VolcanoOld() {
  static constexpr int64_t kUnit = 256;
  Driver driver;
  driver.name = "volcano_old";
  driver.agent = [](FakePods& pods) {
    return std::make_unique<fakes::VolcanoOldAgent>(pods, kUnit);
  };
  driver.dress = [](FakeNode& node) {
    node.capacity["volcano.sh/gpu-memory"] = Cards(node) * node.cards[0].memory_mib / kUnit;
    node.capacity["volcano.sh/gpu-number"] = Cards(node);
  };
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    static constexpr const char* kAmounts[] = {"16", "24", "32", "16", "40"};
    if (n % 8 == 7) return {App("main", {{"volcano.sh/gpu-number", "1"}})};
    return {App("log", {}), App("main", {{"volcano.sh/gpu-memory", kAmounts[n % 5]}})};
  };
  return driver;
}

// ---- by index -----------------------------------------------------------------------------------

Driver Gpushare() {
  Driver driver;
  driver.name = "gpushare";
  driver.agent = [](FakePods& pods) { return std::make_unique<fakes::GpushareAgent>(pods); };
  driver.dress = [](FakeNode& node) {
    node.capacity["aliyun.com/gpu-mem"] = Cards(node) * node.cards[0].memory_mib / 1024;
    node.capacity["aliyun.com/gpu-count"] = Cards(node);
    node.labels["gpushare"] = "true";
  };
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    static constexpr const char* kAmounts[] = {"4", "4", "6", "8", "10"};
    return {App("main", {{"aliyun.com/gpu-mem", kAmounts[n % 5]}})};
  };
  return driver;
}

// Parts of a card it chooses itself: such nodes get whole ones only.
Driver Tkestack() {
  Driver driver;
  driver.name = "tkestack";
  driver.agent = Make<fakes::TkestackAgent>;
  driver.dress = [](FakeNode& node) {
    node.capacity["tencent.com/vcuda-core"] = Cards(node) * 100;
    node.capacity["tencent.com/vcuda-memory"] = Cards(node) * node.cards[0].memory_mib / 256;
  };
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    return {App("main", {{"tencent.com/vcuda-core", n % 5 == 4 ? "200" : "100"}})};
  };
  return driver;
}

Driver Elastic() {
  Driver driver;
  driver.name = "elastic";
  driver.card_mib = 1600;  // of each MiB there is a device id
  driver.agent = Make<fakes::ElasticAgent>;
  driver.dress = [](FakeNode& node) {
    node.capacity["elasticgpu.io/gpu-core"] = Cards(node) * 100;
    node.capacity["elasticgpu.io/gpu-memory"] = Cards(node) * node.cards[0].memory_mib;
  };
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    switch (n % 4) {
      case 0:
        return {App("main", {{"elasticgpu.io/gpu-core", "30"}})};
      case 1:
        return {App("main", {{"elasticgpu.io/gpu-memory", "500"}}),
                App("side", {{"elasticgpu.io/gpu-memory", "300"}})};
      case 2:
        return {App("main", {{"elasticgpu.io/gpu-core", "30"}})};
      default:
        return {App("main", {{"elasticgpu.io/gpu-core", n % 8 == 3 ? "100" : "200"}})};
    }
  };
  return driver;
}

// ---- by name ------------------------------------------------------------------------------------

Driver VgpuManager() {
  Driver driver;
  driver.name = "vgpu_manager";
  driver.agent = Make<fakes::VgpuManagerAgent>;
  driver.dress = [](FakeNode& node) {
    Json list = Json::array();
    for (const fakes::FakeCard& card : node.cards) {
      list.push_back({{"id", list.size()},
                      {"type", kHamiType},
                      {"uuid", card.uuid},
                      {"core", 100},
                      {"memory", card.memory_mib},
                      {"number", 10},
                      {"numa", 0},
                      {"mig", false},
                      {"healthy", true}});
    }
    node.annotations["nvidia.com/node-device-register"] = list.dump();
    node.annotations["nvidia.com/node-config-info"] =
        R"({"deviceSplit":10,"coresScaling":1,"memoryFactor":10,"memoryScaling":1})";
    node.capacity["nvidia.com/vgpu-number"] = Cards(node) * 10;
  };
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    const Text part = {{"nvidia.com/vgpu-number", "1"},
                       {"nvidia.com/vgpu-memory", "400"},
                       {"nvidia.com/vgpu-cores", "20"}};
    switch (n % 4) {
      case 0:
        return {App("main", part)};
      case 1:
        return {App("main", part), App("log", {}), App("side", part)};
      case 2:
        return {App("main", {{"nvidia.com/vgpu-number", "2"}, {"nvidia.com/vgpu-memory", "600"}})};
      default:
        return {Init("prepare", part), App("main", part)};
    }
  };
  return driver;
}

Driver Koordinator() {
  Driver driver;
  driver.name = "koordinator";
  driver.agent = Make<fakes::Koordlet>;
  driver.dress = [](FakeNode& node) {
    node.capacity["koordinator.sh/gpu"] = Cards(node) * 100;
    node.capacity["koordinator.sh/gpu-core"] = Cards(node) * 100;
    node.capacity["koordinator.sh/gpu-memory-ratio"] = Cards(node) * 100;
  };
  driver.device_object = [](const FakeNode& node) {
    Json devices = Json::array();
    for (const fakes::FakeCard& card : node.cards) {
      devices.push_back(
          {{"type", "gpu"},
           {"id", card.uuid},
           {"minor", devices.size()},
           {"health", true},
           {"resources",
            {{"koordinator.sh/gpu-core", "100"},
             {"koordinator.sh/gpu-memory-ratio", "100"},
             {"koordinator.sh/gpu-memory", std::to_string(card.memory_mib) + "Mi"}}}});
    }
    return Json({{"metadata", {{"name", node.name}}}, {"spec", {{"devices", devices}}}}).dump();
  };
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    switch (n % 3) {
      case 0:
        return {App("main", {{"koordinator.sh/gpu", "50"}}), App("log", {})};
      case 1:
        return {App("main", {{"koordinator.sh/gpu-core", "30"},
                             {"koordinator.sh/gpu-memory-ratio", "40"}})};
      default:
        return {App("main", {{"koordinator.sh/gpu", "200"}})};
    }
  };
  return driver;
}

// ---- the stock plugin --------------------------------------------------------------------------

Driver Stock() {
  Driver driver;
  driver.name = "stock";
  driver.any_ids = true;
  driver.agent = [](FakePods& pods) { return std::make_unique<fakes::StockPlugin>(pods, 7); };
  driver.dress = [](FakeNode& node) { node.capacity["nvidia.com/gpu"] = Cards(node); };
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    switch (n % 5) {
      case 0:
        return {App("main", {{"nvidia.com/gpu", "2"}})};
      case 1:
        return {Init("prepare", {{"nvidia.com/gpu", "1"}}), App("main", {{"nvidia.com/gpu", "1"}})};
      case 2:
        return {App("main", {{"nvidia.com/gpu", "1"}}), App("side", {{"nvidia.com/gpu", "1"}})};
      default:
        return {App("log", {}), App("main", {{"nvidia.com/gpu", n % 25 == 4 ? "4" : "1"}})};
    }
  };
  return driver;
}

// Parts of cards that pods of ours hold, beside pods with whole ones.
Driver Reserved() {
  static constexpr const char* kFractions[] = {"", "0.5", "0.25", "0.3", "0.7", "0.25", "0.5"};
  Driver driver = Stock();
  driver.name = "reserved";
  driver.placeholders = true;
  driver.containers = [](int n) -> std::vector<FakeContainer> {
    if (n % 7 == 0) return {App("main", {{"nvidia.com/gpu", n % 3 == 0 ? "2" : "1"}})};
    FakeContainer container = App("main", {});
    container.env_from["NVIDIA_VISIBLE_DEVICES"] = "tranche.dev/visible-devices";
    return {container, App("log", {})};
  };
  driver.annotations = [](int n) -> Text {
    if (n % 7 == 0) return {};
    return {{"tranche.dev/gpu-fraction", kFractions[n % 7]}};
  };
  return driver;
}

std::vector<Driver> Drivers() {
  return {Hami(7),       Hami(8),       Hami(9),      Hami(10),   HamiMig(),  FourPd(),
          Volcano(1),    Volcano(10),   VolcanoOld(), Gpushare(), Tkestack(), Elastic(),
          VgpuManager(), Koordinator(), Stock(),      Reserved()};
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), 8); ++i) text += lines[i] + "\n";
  return text;
}

constexpr int kPods = 200;

// Sanitizers look for other faults than these tests, and take ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::array<uint64_t, 1> kSeeds = {1};
#else
constexpr std::array<uint64_t, 3> kSeeds = {1, 2, 3};
#endif

// What holds whatever happens.
void ExpectRight(const ScenarioOutcome& outcome) {
  EXPECT_EQ(outcome.kubelets.wrong_pod, 0) << Lines(outcome.kubelets.faults);
  EXPECT_EQ(outcome.kubelets.start_errors, 0) << Lines(outcome.kubelets.faults);
  EXPECT_EQ(outcome.kubelets.overcommits, 0) << Lines(outcome.kubelets.faults);
  EXPECT_EQ(outcome.kubelets.admission_errors, 0) << Lines(outcome.kubelets.faults);
  EXPECT_EQ(outcome.failed, outcome.kubelets.admission_errors);
  EXPECT_EQ(outcome.succeeded + outcome.failed + outcome.deleted, kPods);
  EXPECT_EQ(outcome.stuck, 0);
  EXPECT_EQ(outcome.slots_left, 0);
  EXPECT_EQ(outcome.placeholders_left, 0);
  EXPECT_EQ(outcome.early_ends, 0);
  EXPECT_EQ(outcome.faults, std::vector<std::string>{});
  EXPECT_LE(outcome.longest_answer_ms, 5'000);
}

class AgentsTest : public testing::TestWithParam<Driver> {};

TEST_P(AgentsTest, EveryPodGetsWhatWasMeantForIt) {
  AgentsScenario scenario(GetParam(), {}, 1);
  const ScenarioOutcome outcome = scenario.Run();
  ExpectRight(outcome);
  EXPECT_EQ(outcome.kubelets.served, kPods - outcome.failed);
  EXPECT_EQ(outcome.double_posts, 0);
  EXPECT_EQ(outcome.lock_writes, GetParam().locks ? kPods : 0);
  EXPECT_EQ(outcome.locks_left, 0);
  EXPECT_EQ(outcome.passed_over, 0);
  EXPECT_EQ(outcome.placeholders_made > 0, GetParam().placeholders);
}

TEST_P(AgentsTest, DeletedPodsLeaveNoSlotBehind) {
  for (const uint64_t seed : kSeeds) {
    SCOPED_TRACE(seed);
    AgentsScenario scenario(GetParam(), {.deletions = true}, seed);
    const ScenarioOutcome outcome = scenario.Run();
    ExpectRight(outcome);
    EXPECT_GT(outcome.deleted, 5);
    EXPECT_EQ(outcome.double_posts, 0);
    EXPECT_EQ(outcome.passed_over, 0);
  }
}

// A lock that a killed process left is taken over by the next who needs the node.
TEST_P(AgentsTest, KillsAndLostAnswersConfuseNobody) {
  for (const uint64_t seed : kSeeds) {
    SCOPED_TRACE(seed);
    AgentsScenario scenario(GetParam(), {.deletions = true, .restarts = true, .losses = true},
                            seed);
    ExpectRight(scenario.Run());
  }
}

// Refused by the kubelet, slow, dead.
TEST(SharedCardsTest, PodsThatHoldCardsMayFail) {
  for (const uint64_t seed : kSeeds) {
    SCOPED_TRACE(seed);
    const Driver driver = Reserved();
    AgentsScenario scenario(
        driver, {.deletions = true, .restarts = true, .losses = true, .placeholders = true}, seed);
    const ScenarioOutcome outcome = scenario.Run();
    ExpectRight(outcome);
    EXPECT_GT(outcome.placeholders_made, 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Drivers, AgentsTest, testing::ValuesIn(Drivers()),
                         [](const auto& row) { return row.param.name; });

}  // namespace THIS_FILE
}  // namespace tranche
