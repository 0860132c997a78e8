#include "scheduler/api/asks_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using Json = nlohmann::json;

Json Written(const PodRequest* request) {
  std::string out = "{";
  AppendAsks(out, request);
  return Json::parse(out + "}")["asks"];
}

PodRequest Asking(Ask ask) {
  PodRequest request;
  request.style = RequestStyle::kTranche;
  request.containers = {{"main"}};
  request.asks = {std::move(ask)};
  return request;
}

TEST(AsksJsonTest, EveryWayOfAskingIsTold) {
  struct Row {
    Ask ask;
    Json told;
  };
  Ask whole;
  whole.count = 8;
  Ask slice;
  slice.resource = Resource::kMig;
  slice.count = 1;
  slice.mig.profile = "1g.10gb+me";
  Ask half;
  half.resource = Resource::kShare;
  half.count = 2;
  half.compute = MilliGpu::Of(500);
  half.memory = {MemoryNeed::Kind::kMilliOfCard, 500};
  Ask memory;
  memory.resource = Resource::kShare;
  memory.count = 1;
  memory.memory = {MemoryNeed::Kind::kMib, 20'480};
  const std::vector<Row> rows = {
      {whole, {{"kind", "gpu"}, {"count", 8}, {"profile", nullptr}, {"milli", nullptr}}},
      {slice, {{"kind", "mig"}, {"count", 1}, {"profile", "1g.10gb+me"}, {"mib", nullptr}}},
      {half, {{"kind", "share"}, {"count", 2}, {"milli", 500}, {"milliOfMemory", 500}}},
      {memory, {{"kind", "share"}, {"milli", 0}, {"mib", 20'480}, {"milliOfMemory", nullptr}}},
  };
  for (const Row& row : rows) {
    const PodRequest request = Asking(row.ask);
    const Json device = Written(&request)["devices"][0];
    EXPECT_EQ(device["container"], "main");
    for (const auto& [key, value] : row.told.items()) EXPECT_EQ(device[key], value) << device;
  }
}

TEST(AsksJsonTest, WhatWasNotSaidIsNull) {
  EXPECT_EQ(Written(nullptr), nullptr);
  const PodRequest silent = Asking({});
  const Json quiet = Written(&silent);
  EXPECT_EQ(quiet["style"], "tranche");
  EXPECT_EQ(quiet["models"], Json::array());
  for (const char* key :
       {"minGpuMemoryMiB", "topology", "gang", "gangSize", "expectedRuntimeSeconds"}) {
    EXPECT_EQ(quiet[key], nullptr) << key;
  }
  PodRequest loud = silent;
  loud.models_any = {"h100"};
  loud.topology = TopologyWish::kRequired;
  loud.gang = "run-7";
  loud.gang_size = 4;
  loud.expected_runtime = std::chrono::hours(2);
  const Json told = Written(&loud);
  EXPECT_EQ(told["models"], Json({"h100"}));
  EXPECT_EQ(told["topology"], "required");
  EXPECT_EQ(told["gang"], "run-7");
  EXPECT_EQ(told["gangSize"], 4);
  EXPECT_EQ(told["expectedRuntimeSeconds"], 7200);
}

}  // namespace THIS_FILE
}  // namespace tranche
