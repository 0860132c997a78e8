// Books are made anew when what they hang on changes.
#include "scheduler/dra/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

// The pool lacks a slice of the node, and one of another node makes it old.
TEST(Catalog, APoolComesBackWhenItsNewerSlicesGo) {
  Slice old = NodeSlice("n1", {GpuDevice("gpu-0", "GPU-a", "NVIDIA L4", 1000)});
  old.slice_count = 2;
  Slice other = old;
  other.name = "other";
  other.node.name = NodeName("n2");
  Slice newer = other;
  newer.name = "newer";
  newer.generation = 2;
  Catalog catalog;
  catalog.PutSlice(old);
  catalog.PutSlice(other);
  catalog.PutSlice(newer);
  EXPECT_TRUE(catalog.BooksOn({"n1"}).devices.empty());
  catalog.RemoveSlice("newer");
  EXPECT_EQ(catalog.BooksOn({"n1"}).devices.size(), 1U);
}

TaintRule RuleFor(std::optional<std::string> driver, std::optional<std::string> pool,
                  std::optional<std::string> device) {
  return {"rule",
          true,
          std::move(driver),
          std::move(pool),
          std::move(device),
          {"maintenance", "", "NoSchedule"}};
}

// n1 and n2 have gpu-0 and gpu-1 each, in pools of their names.
TEST(Catalog, ATaintRuleIsAboutTheDevicesOfItsNames) {
  const TaintRule none{"rule", false, {}, {}, {}, {"maintenance", "", "NoSchedule"}};
  const struct {
    const char* what;
    TaintRule rule;
    std::vector<std::string> tainted;
  } rows[] = {
      {"no selector", none, {}},
      {"an empty one", RuleFor({}, {}, {}), {"n1/gpu-0", "n1/gpu-1", "n2/gpu-0", "n2/gpu-1"}},
      {"the driver", RuleFor("gpu.nvidia.com", "n2", {}), {"n2/gpu-0", "n2/gpu-1"}},
      {"another driver", RuleFor("fpga.example.com", {}, {}), {}},
      {"a device of all pools", RuleFor({}, {}, "gpu-1"), {"n1/gpu-1", "n2/gpu-1"}},
      {"one device", RuleFor("gpu.nvidia.com", "n1", "gpu-0"), {"n1/gpu-0"}},
      {"a pool that is not there", RuleFor({}, "n3", {}), {}},
  };
  for (const bool rule_first : {true, false}) {
    for (const auto& row : rows) {
      Catalog catalog;
      const auto tainted = [&catalog] {
        std::vector<std::string> names;
        for (const std::string node : {"n1", "n2"}) {
          for (const DeviceBook& book : catalog.BooksOn({node}).devices) {
            if (!IsToleratedBy(*book.device, {})) names.push_back(node + "/" + book.device->name);
          }
        }
        return names;
      };
      if (rule_first) catalog.PutTaintRule(row.rule);
      for (const std::string node : {"n1", "n2"}) {
        catalog.PutSlice(NodeSlice(node, {GpuDevice("gpu-0", node + "-a", "NVIDIA L4", 1000),
                                          GpuDevice("gpu-1", node + "-b", "NVIDIA L4", 1000)}));
      }
      EXPECT_EQ(tainted().empty(), !rule_first || row.tainted.empty()) << row.what;
      catalog.TakeChanges();
      if (!rule_first) catalog.PutTaintRule(row.rule);
      EXPECT_EQ(tainted(), row.tainted) << row.what;
      EXPECT_EQ(catalog.TakeChanges().nodes.empty(), rule_first || row.tainted.empty()) << row.what;
      catalog.PutTaintRule(none);
      EXPECT_THAT(tainted(), testing::IsEmpty()) << row.what << ", which selects none now";
      catalog.PutTaintRule(row.rule);
      catalog.RemoveTaintRule("rule");
      catalog.RemoveTaintRule("rule");
      EXPECT_THAT(tainted(), testing::IsEmpty()) << row.what << ", which is gone";
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
