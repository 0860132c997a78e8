// What kube-scheduler's allocator gives on a node whose first card is cut.
#include "test/sim/claims/device_allocator.h"

#include <gtest/gtest.h>

#include "test/sim/claims/claim_reads.h"
#include "test/sim/claims/device_slices.h"

namespace tranche::sim {
namespace THIS_FILE {

// Four cards, of which the first is two instances.
Machine FourCards() {
  Machine machine;
  machine.name = "n1";
  machine.kind = NodeKind::kDra;
  machine.product = "NVIDIA-H100-80GB-HBM3";
  machine.mib = 81559;
  machine.cards = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};
  machine.instances = {{0, "3g.40gb", 0, 4, 40192}, {0, "3g.40gb", 4, 4, 40192}};
  return machine;
}

Json Exactly(const char* device_class, int count, const char* expression = nullptr) {
  Json choice = {{"deviceClassName", device_class}, {"count", count}};
  if (expression != nullptr) {
    choice["selectors"] = Json::array({{{"cel", {{"expression", expression}}}}});
  }
  return choice;
}

Json SpecOf(Json request) {
  request["name"] = "gpu";
  return {{"devices", {{"requests", Json::array({std::move(request)})}}}};
}

Json SameNuma(Json spec) {
  spec["devices"]["constraints"] =
      Json::array({{{"matchAttribute", "resource.kubernetes.io/numaNode"}}});
  return spec;
}

constexpr const char* kProfile = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'";
constexpr const char* kMissing = "device.attributes['gpu.nvidia.com'].nothing == 'x'";

std::string Given(const std::vector<Json>& slices, const std::vector<Json>& specs,
                  const std::set<std::string>& taken) {
  const std::vector<Json> classes = DraClasses(/*serves_gpus=*/false);
  DraObjects by_name;
  for (const Json& one : classes) by_name[one.at("metadata").at("name")] = &one;
  AllocatorView view{{}, &by_name, &taken};
  for (const Json& slice : slices) view.slices.push_back(&slice);
  std::vector<const Json*> asked;
  for (const Json& spec : specs) asked.push_back(&spec);
  const auto allocations = AllocateOn("n1", asked, view);
  if (!allocations) return "none";
  std::string text;
  for (const Json& allocation : *allocations) {
    EXPECT_EQ(NodeOfAllocation(allocation), "n1");
    for (const std::string& device : DevicesIn(allocation)) text += device + " ";
    text += "| ";
  }
  return text;
}

TEST(DeviceAllocator, GivesTheFirstThatFit) {
  const Json one = SpecOf({{"exactly", Exactly("gpu.nvidia.com", 1)}});
  const Json two = SpecOf({{"exactly", Exactly("gpu.nvidia.com", 2)}});
  const Json part = SpecOf({{"exactly", Exactly("mig.nvidia.com", 1, kProfile)}});
  Json small = Exactly("mig.nvidia.com", 1, kProfile);
  Json whole = Exactly("gpu.nvidia.com", 1);
  small["name"] = "small";
  whole["name"] = "whole";
  const Json either = SpecOf({{"firstAvailable", Json::array({small, whole})}});
  const std::set<std::string> both = {"n1/gpu-0-mig-3g40gb-0", "n1/gpu-0-mig-3g40gb-4"};
  struct Row {
    const char* what;
    std::vector<Json> specs;
    std::set<std::string> taken;
    const char* given;
  };
  const Row kRows[] = {
      {"one card", {one}, {}, "n1/gpu-1 | "},
      {"the next, where one is taken", {one}, {"n1/gpu-1"}, "n1/gpu-2 | "},
      {"two claims never the same", {one, two}, {}, "n1/gpu-1 | n1/gpu-2 n1/gpu-3 | "},
      {"more than there are", {two, two}, {}, "none"},
      {"cards of one NUMA node", {SameNuma(two)}, {}, "n1/gpu-2 n1/gpu-3 | "},
      {"none of one NUMA node", {SameNuma(two)}, {"n1/gpu-3"}, "none"},
      {"an instance", {part}, {}, "n1/gpu-0-mig-3g40gb-0 | "},
      {"the first way", {either}, {}, "n1/gpu-0-mig-3g40gb-0 | "},
      {"the second way", {either}, both, "n1/gpu-1 | "},
      {"a class that is not there", {SpecOf({{"exactly", Exactly("no.class", 1)}})}, {}, "none"},
      {"an attribute nobody has",
       {SpecOf({{"exactly", Exactly("gpu.nvidia.com", 1, kMissing)}})},
       {},
       "none"},
  };
  const std::vector<Json> slices = SlicesOf(FourCards(), 1, 2, {});
  for (const Row& row : kRows) {
    EXPECT_EQ(Given(slices, row.specs, row.taken), row.given) << row.what;
  }
}

TEST(DeviceAllocator, CountsTheNewestPoolThatIsWhole) {
  const std::vector<Json> one = {SpecOf({{"exactly", Exactly("gpu.nvidia.com", 1)}})};
  std::vector<Json> slices = SlicesOf(FourCards(), 1, 2, {});
  slices.pop_back();
  EXPECT_EQ(Given(slices, one, {}), "none") << "a slice is missing";
  slices = SlicesOf(FourCards(), 1, 1, {});
  const std::vector<Json> newer = SlicesOf(FourCards(), 2, 1, {"gpu-1"});
  slices.insert(slices.end(), newer.begin(), newer.end());
  EXPECT_EQ(Given(slices, one, {}), "n1/gpu-2 | ") << "the old generation counts for nothing";
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
