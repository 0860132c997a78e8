// What node annotations say about links, and about who holds which GPU.
#include "scheduler/wire/node_links.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/wire/json.h"
#include "scheduler/wire/node_decode.h"

namespace tranche::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NodeLinks, ReadsHamisScores) {
  const auto scores = ParseHamiScores(
      R"([{"uuid":"GPU-a","score":{"GPU-b":110}},{"uuid":"GPU-b","score":{"GPU-a":110}}])");
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores, ElementsAre(PairScore{GpuUuid("GPU-a"), GpuUuid("GPU-b"), 110},
                                   PairScore{GpuUuid("GPU-b"), GpuUuid("GPU-a"), 110}));
}

TEST(NodeLinks, ReadsWhatTheProbeSaw) {
  const auto probe = ParseNodeProbe(
      R"({"v":1,"at":"2026-11-20T10:00:00Z","driver":"550.54","gpus":[)"
      R"({"index":1,"uuid":"GPU-b","bus":"0000:0f:00.0","numa":1,"memoryMiB":81559,"mig":null},)"
      R"({"index":0,"uuid":"GPU-a","bus":"0000:07:00.0","numa":0,"memoryMiB":81559,)"
      R"("mig":[{"profile":"1g.10gb","start":3,"size":1,"uuid":"MIG-x"}]}],)"
      R"("pods":[{"namespace":"t","name":"p","container":"main","resource":"nvidia.com/gpu",)"
      R"("devices":["GPU-b"]},{"namespace":"t","name":"p","container":"side",)"
      R"("resource":"nvidia.com/gpu","devices":["GPU-a::2","MIG-x"]}]})");
  ASSERT_TRUE(probe.ok()) << probe.status();
  ASSERT_EQ(probe->gpus.size(), 2U);
  EXPECT_EQ(probe->gpus[0].uuid, GpuUuid("GPU-a"));
  EXPECT_TRUE(probe->gpus[0].mig);
  EXPECT_EQ(probe->gpus[0].layout[0].start, 3);
  EXPECT_FALSE(probe->gpus[1].mig);
  EXPECT_EQ(probe->gpus[1].numa, 1);
  ASSERT_TRUE(probe->pods.has_value());
  ASSERT_EQ(probe->pods->size(), 1U);
  EXPECT_THAT((*probe->pods)[0].gpus, ElementsAre(GpuUuid("GPU-a"), GpuUuid("GPU-b")));
  const auto blind = ParseNodeProbe(R"({"v":1,"at":"2026-11-20T10:00:00Z","gpus":[],"pods":null})");
  ASSERT_TRUE(blind.ok());
  EXPECT_FALSE(blind->pods.has_value()) << "could not ask, which is not nobody";
}

TEST(NodeLinks, WhatCannotBeReadIsNamed) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"[", "JSON"},
           {R"({"v":2})", "expected version 1, found 2"},
           {R"({"at":"2026-11-20T10:00:00Z"})", "expected version 1, found none"},
           {R"({"v":1,"at":"today"})", "expected a time, found \"today\""},
           {R"({"v":1,"at":"2026-11-20T10:00:00Z","gpus":[{"index":0}]})", "expected a uuid"},
           {R"({"v":1,"at":"2026-11-20T10:00:00Z","gpus":[{"uuid":"a","index":-1}]})", "-1"},
       }) {
    EXPECT_THAT(std::string(ParseNodeProbe(text).status().message()), HasSubstr(why)) << text;
  }
  EXPECT_FALSE(ParseHamiScores(R"({"a":1})").ok());
  EXPECT_FALSE(ParseHamiScores(R"([{"uuid":"a","score":{"b":"x"}}])").ok());
}

TEST(NodeLinks, ANodeCarriesItsMatrix) {
  const auto node_with = [](std::string_view matrix) {
    Parser parser;
    std::string quoted;
    AppendQuoted(quoted, matrix);
    return DecodeNode(*parser.Parse(
        fmt::format(R"({{"metadata":{{"name":"n","annotations":{{"tranche.dev/topology":{}}}}}}})",
                    quoted),
        false));
  };
  const auto node = node_with(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\t0-31\t0\n"
      "GPU1\tNV12\t X \t0-31\t0\n");
  ASSERT_TRUE(node->matrix.has_value());
  EXPECT_EQ(node->matrix->link(0, 1).nvlinks, 12);
  const auto odd = node_with("\tGPU0\tGPU1\nGPU0\t X \tXGMI\nGPU1\tXGMI\t X \n");
  ASSERT_TRUE(odd->matrix.has_value());
  EXPECT_EQ(odd->matrix->link(0, 1), (Link{PathClass::kSys, 0}));
  EXPECT_THAT(odd->problems, testing::Contains(HasSubstr("XGMI")));
  const auto broken = node_with("not a matrix");
  EXPECT_FALSE(broken->matrix.has_value());
  EXPECT_THAT(broken->problems, testing::Contains(HasSubstr("annotation tranche.dev/topology")));
}

}  // namespace
}  // namespace tranche::wire
