#include "scheduler/wire/pods/pod_pinned.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

std::vector<OwnLimits> OwnOf(const std::string& init_env, const std::string& env,
                             const std::string& limits = R"("nvidia.com/gpu.shared":"1")") {
  const std::string text = fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"ns","uid":"u"}},"spec":{{
          "initContainers":[{{"name":"first","env":{}}}],
          "containers":[{{"name":"main","env":{},"resources":{{"limits":{{{}}}}}}}]}}}})",
      init_env, env, limits);
  const absl::StatusOr<PodFacts> pod = TryPod(text);
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? pod->request.own_limits : std::vector<OwnLimits>();
}

std::string Set(const std::string& name, const std::string& value) {
  return fmt::format(R"([{{"name":"CUDA_MPS_{}","value":"{}"}}])", name, value);
}

constexpr const char* kThreads = "ACTIVE_THREAD_PERCENTAGE";
constexpr const char* kMemory = "PINNED_DEVICE_MEM_LIMIT";

TEST(OwnLimitsTest, ReadsPercentages) {
  const struct {
    const char* text;
    int64_t milli;  // 0: it is none
  } rows[] = {{"25", 250},    {"100", 1000}, {"33.3", 333},
              {"33.34", 333}, {"0.1", 1},    {"100.0", 1000},
              {"0", 0},       {"0.01", 0},   {"100.1", 0},
              {"101", 0},     {"", 0},       {"25%", 0},
              {" 25", 0},     {"-1", 0},     {"25.", 0},
              {".5", 0},      {"1e2", 0},    {"99999999999999999999", 0},
              {"33.3.3", 0}};
  for (const auto& row : rows) {
    const std::vector<OwnLimits> own = OwnOf("[]", Set(kThreads, row.text));
    ASSERT_EQ(own.size(), 1U) << row.text;
    EXPECT_EQ(own[0].container, 1) << row.text;
    EXPECT_EQ(own[0].memory, std::nullopt) << row.text;
    EXPECT_EQ(own[0].threads ? own[0].threads->count() : 0, row.milli) << row.text;
    EXPECT_EQ(own[0].problem,
              row.milli > 0 ? ""
                            : fmt::format("expected a percentage of 0.1 to 100, found \"{}\", "
                                          "in CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                          row.text));
  }
}

TEST(OwnLimitsTest, ReadsTheLargestLimitOfMemory) {
  const struct {
    const char* text;
    int64_t mib;  // 0: it is none
  } rows[] = {{"0=10G", 10240},
              {"0=10G,1=2500M", 10240},
              {"GPU-0a=4000M", 4000},
              {"0=512MB,1=1GB", 1024},
              {"0=1K", 1},
              {"10G", 0},      // of no device: MPS passes it over
              {"0=4000B", 0},  // likewise
              {"0=10", 0},
              {"0=0G", 0},
              {"=10G", 0},
              {"0=10G,", 10240},
              {"0=10G,,1=1G", 0},
              {"0=10G,1", 0},
              {"0=9999999999G", 0},
              {"", 0}};
  for (const auto& row : rows) {
    const std::vector<OwnLimits> own = OwnOf("[]", Set(kMemory, row.text));
    ASSERT_EQ(own.size(), 1U) << row.text;
    EXPECT_EQ(own[0].threads, std::nullopt) << row.text;
    EXPECT_EQ(own[0].memory ? own[0].memory->count() : 0, row.mib) << row.text;
    EXPECT_EQ(own[0].problem.empty(), row.mib > 0) << row.text << ": " << own[0].problem;
  }
}

TEST(OwnLimitsTest, AreOfTheContainersThatSetThem) {
  EXPECT_TRUE(OwnOf("[]", R"([{"name":"CUDA_VISIBLE_DEVICES","value":"0"}])").empty());
  EXPECT_TRUE(OwnOf("[]", Set(kThreads, "25"), R"("cpu":"1")").empty()) << "asks for no GPU";
  const std::vector<OwnLimits> both = OwnOf(Set(kMemory, "0=1G"), Set(kThreads, "25"));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].container, 0);
  EXPECT_EQ(both[1].container, 1);
  const std::vector<OwnLimits> twice =
      OwnOf("[]", R"([{"name":"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE","value":"10"},)"
                  R"({"name":"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE","value":"20"}])");
  ASSERT_EQ(twice.size(), 1U);
  EXPECT_EQ(twice[0].threads, MilliGpu::Of(200)) << "the last counts";
  const std::vector<OwnLimits> elsewhere =
      OwnOf("[]", R"([{"name":"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT","valueFrom":{}}])");
  ASSERT_EQ(elsewhere.size(), 1U);
  EXPECT_EQ(elsewhere[0].problem,
            "expected DEVICE=AMOUNT with K, M or G, found no value in the pod, in "
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  const std::string broken = R"([7,{"name":3},{"value":"x"}])";
  EXPECT_TRUE(OwnOf("[]", broken).empty());
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
