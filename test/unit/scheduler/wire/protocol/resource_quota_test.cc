#include "scheduler/wire/protocol/resource_quota.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tranche::wire {
namespace THIS_FILE {

std::string Quota(const std::string& spec) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"q","namespace":"team"}},)"
      R"("spec":{}}})",
      spec);
}

// "MEMORY/CORES", "-" where not limited, and what could not be read.
std::string Read(const std::string& json) {
  const absl::StatusOr<QuotaReading> reading = DecodeResourceQuota(json);
  if (!reading.ok()) return std::string(reading.status().message());
  const auto& cap = reading->cap;
  std::string out = cap.memory ? fmt::format("{}", cap.memory->count()) : "-";
  out += cap.cores ? fmt::format("/{}", *cap.cores) : "/-";
  return reading->problem.empty() ? out : out + " " + reading->problem;
}

TEST(ResourceQuota, IsReadAsFarAsItIsAboutGpus) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"hard":{"limits.nvidia.com/gpumem":"20k","limits.nvidia.com/gpucores":"200"}})",
       "20000/200"},
      {R"({"hard":{"limits.nvidia.com/gpumem":8192}})", "8192/-"},
      {R"({"hard":{"limits.nvidia.com/gpucores":"0"}})", "-/0"},
      // Counted by the API server itself.
      {R"({"hard":{"requests.nvidia.com/gpu":"4","limits.cpu":"8"}})", "-/-"},
      {R"({"hard":{}})", "-/-"},
      {R"({})", "-/-"},
      {R"({"hard":{"limits.nvidia.com/gpumem":"many","limits.nvidia.com/gpucores":"50"}})",
       "0/50 expected a whole number in spec.hard[limits.nvidia.com/gpumem], found \"many\"; it "
       "counts as 0"},
      {R"({"hard":{"limits.nvidia.com/gpucores":"-1"}})",
       "-/0 expected a whole number in spec.hard[limits.nvidia.com/gpucores], found \"-1\"; it "
       "counts as 0"},
  };
  for (const auto& [spec, expected] : cases) EXPECT_EQ(Read(Quota(spec)), expected) << spec;
  const auto reading = DecodeResourceQuota(Quota("{}"));
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->cap.ns, "team");
  EXPECT_EQ(reading->cap.name, "q");
}

TEST(ResourceQuota, WithoutANameIsRefused) {
  EXPECT_EQ(Read(R"({"metadata":{}})"), "ResourceQuota: expected metadata.name, found none");
  EXPECT_EQ(Read("[]"), "ResourceQuota: expected metadata.name, found none");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
