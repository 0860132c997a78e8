// What node annotations say about links, and about who holds which GPU.
#include "scheduler/wire/nodes/node_links.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/nodes/node_decode.h"

namespace tranche::wire {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NodeLinks, ReadsHamisScores) {
  const auto scores = ParseHamiScores(
      R"([{"uuid":"GPU-a","score":{"GPU-b":110}},{"uuid":"GPU-b","score":{"GPU-a":110}}])");
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores, ElementsAre(PairScore{GpuUuid("GPU-a"), GpuUuid("GPU-b"), 110},
                                   PairScore{GpuUuid("GPU-b"), GpuUuid("GPU-a"), 110}));
}

std::vector<AgentDevice> TwoCards() {
  std::vector<AgentDevice> devices(2);
  for (int index : {0, 1}) {
    devices[static_cast<std::size_t>(index)].index = index;
    devices[static_cast<std::size_t>(index)].uuid = GpuUuid(index == 0 ? "GPU-a" : "GPU-b");
  }
  return devices;
}

TEST(NodeLinks, ReadsVgpuManagersLinksAsPoints) {
  // As written for both directions; what a pair comes to, 0: nothing is told.
  const std::pair<const char*, int> cases[] = {
      {"[1]", 10},    {"[2]", 20},      {"[3]", 30},      {"[4]", 40},
      {"[5]", 50},    {"[6]", 60},      {"[1,7]", 110},   {"[7,1]", 110},
      {"[2,8]", 220}, {"[1,18]", 1210}, {"[1,24]", 1810}, {"[24]", 1800},
      {"[0,3]", 30},  {"[0]", 0},       {"[]", 0},        {"null", 0},
  };
  for (const auto& [kinds, points] : cases) {
    const auto scores =
        ParseVgpuManagerLinks(fmt::format(R"([{{"index":1,"links":{{"0":{0},"1":[6]}}}},)"
                                          R"({{"index":0,"links":{{"1":{0}}}}}])",
                                          kinds),
                              TwoCards());
    ASSERT_TRUE(scores.ok()) << kinds << scores.status();
    if (points == 0) {
      EXPECT_THAT(*scores, testing::IsEmpty()) << kinds;
    } else {
      EXPECT_THAT(*scores, ElementsAre(PairScore{GpuUuid("GPU-b"), GpuUuid("GPU-a"), points},
                                       PairScore{GpuUuid("GPU-a"), GpuUuid("GPU-b"), points}))
          << kinds;
    }
  }
  for (const char* alone : {"[]", R"([{"index":0,"links":null}])", R"([{"index":0}])"}) {
    const auto scores = ParseVgpuManagerLinks(alone, TwoCards());
    EXPECT_TRUE(scores.ok() && scores->empty()) << alone << scores.status();
  }
}

TEST(NodeLinks, VgpuManagersLinksThatCannotBeReadAreNamed) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"[", "JSON"},
           {R"({"index":0})", "expected an array"},
           {"[3]", "in topology"},
           {R"([{"links":{}}])", "expected an index, found none"},
           {R"([{"index":2,"links":{}}])", "expected GPUs of the register, found index 2"},
           {R"([{"index":-1,"links":{}}])", "-1"},
           {R"([{"index":0,"links":[]}])", "links"},
           {R"([{"index":0,"links":{"2":[1]}}])", "found index 2"},
           {R"([{"index":0,"links":{"b":[1]}}])", "expected the index of a GPU, found \"b\""},
           {R"([{"index":0,"links":{"1 ":[1]}}])", "expected the index of a GPU"},
           {R"([{"index":0,"links":{"1":[25]}}])", "expected links from 0 to 24, found number 25"},
           {R"([{"index":0,"links":{"1":[-1]}}])", "expected links from 0 to 24"},
           {R"([{"index":0,"links":{"1":["x"]}}])", "expected links from 0 to 24"},
           {R"([{"index":0,"links":{"1":[1,2]}}])", "found more, in links of \"1\""},
           {R"([{"index":0,"links":{"1":[7,8]}}])", "found more, in links of \"1\""},
       }) {
    EXPECT_THAT(std::string(ParseVgpuManagerLinks(text, TwoCards()).status().message()),
                HasSubstr(why))
        << text;
  }
}

TEST(NodeLinks, ANodeOfVgpuManagerCarriesItsLinks) {
  // A node of so many cards, "GPU-0" and on.
  const auto node_with = [](std::string_view product, int cards, std::string_view topology) {
    std::string list;
    for (int card = 0; card < cards; ++card) {
      list += fmt::format(
          R"({}{{"id":{},"uuid":"GPU-{}","memory":80000,"core":100,"number":10,"healthy":true}})",
          card == 0 ? "" : ",", card, card);
    }
    std::string devices;
    AppendQuoted(devices, "[" + list + "]");
    std::string links;
    AppendQuoted(links, topology);
    Parser parser;
    return DecodeNode(*parser.Parse(
        fmt::format(R"({{"metadata":{{"name":"n","labels":{{"nvidia.com/gpu.product":"{}"}},)"
                    R"("annotations":{{"nvidia.com/node-config-info":"{{\"memoryFactor\":1}}",)"
                    R"("nvidia.com/node-device-register":{},)"
                    R"("nvidia.com/node-device-topology":{}}}}}}})",
                    product, devices, links)));
  };
  const std::string linked =
      R"([{"index":0,"links":{"1":[1,18]}},{"index":1,"links":{"0":[1,18]}}])";
  const std::string pcie = R"([{"index":0,"links":{"1":[1]}},{"index":1,"links":{"0":[1]}}])";
  const auto switched = node_with("NVIDIA-A100-SXM4-80GB", 8, linked);
  ASSERT_TRUE(switched.ok()) << switched.status();
  ASSERT_EQ(switched->scores.size(), 2U) << testing::PrintToString(switched->problems);
  EXPECT_EQ(switched->scores[0].points, 1210);
  EXPECT_THAT(switched->problems, testing::IsEmpty());
  EXPECT_EQ(node_with("NVIDIA-L4", 2, pcie)->scores.size(), 2U);
  // An agent that does not see through switches must not make a machine without NVLinks of it.
  const auto blind = node_with("NVIDIA-A100-SXM4-80GB", 8, pcie);
  EXPECT_THAT(blind->scores, testing::IsEmpty());
  EXPECT_THAT(blind->problems, ElementsAre(HasSubstr("expected NVLinks")));
  EXPECT_THAT(node_with("NVIDIA-L4", 2, "{")->problems,
              ElementsAre(HasSubstr("nvidia.com/node-device-topology")));
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
    return DecodeNode(*parser.Parse(fmt::format(
        R"({{"metadata":{{"name":"n","annotations":{{"tranche.dev/topology":{}}}}}}})", quoted)));
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

}  // namespace THIS_FILE
}  // namespace tranche::wire
