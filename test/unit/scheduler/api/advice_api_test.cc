// Advice as JSON and as tables; who asks often is answered from what was made before.
#include "scheduler/api/advice_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "scheduler/cli/cli_advice.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

SplitModel TenH100() {
  SplitModel model;
  model.model = "h100";
  model.gpus = 10;
  model.whole_now = 8;
  model.mig_now = 2;
  SplitPart whole;
  whole.gpus = 4;
  whole.serves = "4 x 1 GPU (training)";
  SplitPart mig;
  mig.use = SplitPart::Use::kMig;
  mig.gpus = 3;
  mig.geometry.profiles = {{"1g.10gb", 7}};
  mig.serves = "20 x 1g.10gb (inference)";
  SplitPart sliced;
  sliced.use = SplitPart::Use::kTimeSliced;
  sliced.gpus = 2;
  sliced.replicas = 10;
  sliced.serves = "20 x 1/10 GPU (notebook)";
  model.parts = {whole, mig, sliced};
  model.spare = 1;
  model.short_of = {"10 x 1/10 GPU (notebook)"};
  return model;
}

NodeRepartition CutOne() {
  NodeRepartition node;
  node.node = NodeName("gpu-1");
  node.config_name = "tranche-1";
  node.config_yaml = "tranche-1: []\n";
  node.steps = {{NodeName("gpu-1"), 0, {}, {{{"1g.10gb", 7}}}},
                {NodeName("gpu-1"), 2, {{{"1g.10gb", 7}}}, {}}};
  node.guards = {"GPU 2 is used"};
  return node;
}

Advice FullAdvice() {
  Advice advice;
  advice.at = Instant(1'767'322'800s);
  advice.split.basis = "the peak of 3 days";
  advice.split.models = {TenH100()};
  advice.split.notes = {"demand was recorded for 3 days only"};
  advice.repartition.emplace();
  advice.repartition->nodes = {CutOne()};
  advice.repartition->waiting_served = 5;
  advice.repartition->expected_milli = 1500;
  DefragEntry gpus;
  gpus.node = NodeName("gpu-2");
  gpus.gpus = {1, 3};
  gpus.moves = {{{"team-a", "web"}, PodUid("u1"), "team-a", NodeName("gpu-3"), 1'001},
                {{"team-b", "nb"}, PodUid("u2"), "", NodeName("gpu-4"), 0}};
  gpus.freed_milli = 1250;
  gpus.lost_gpu_ms = 1'001;
  gpus.waiting_served = 1;
  DefragEntry slice;
  slice.node = NodeName("gpu-5");
  slice.profile = "3g.40gb";
  slice.gpu = 6;
  slice.moves = {{{"team-b", "small"}, PodUid("u3"), "team-b", NodeName(), 60'000}};
  slice.lost_gpu_ms = 60'000;
  advice.defragment = {4, 6, 1250, {gpus, slice}, {"team-a/train may not be moved"}};
  advice.consolidate = {{NodeName("gpu-7"), 8, slice.moves, 60'000}};
  RightSize small;
  small.pod = {"team-a", "web"};
  small.node = NodeName("gpu-2");
  small.leaf = "team-a";
  small.hours = 216;
  small.busiest_hour = 38;
  small.most_memory = Mebibytes::Of(6'144);
  small.holds = "1 GPU";
  small.would_do = {SmallerAsk::Form::kInstance, 0, "1g.10gb", {}};
  small.saved = MilliGpu::Of(857);
  RightSize fewer;
  fewer.pod = {"lab", "train"};
  fewer.node = NodeName("gpu-3");
  fewer.hours = 25;
  fewer.busiest_hour = 990;
  fewer.unused = 3;
  fewer.holds = "4 GPUs";
  fewer.would_do = {SmallerAsk::Form::kGpus, 1, "", {}};
  fewer.saved = MilliGpu::Of(3'000);
  advice.right_sizes = {{fewer, small}, MilliGpu::Of(3'857), 40, 12, {"a note"}};
  return advice;
}

TEST(AdviceApiTest, EveryPartIsInTheJson) {
  EXPECT_EQ(nlohmann::json::parse(EncodeAdvice(FullAdvice())), nlohmann::json::parse(R"json({
    "split": {"basis": "the peak of 3 days", "models": [
      {"model": "h100", "gpus": 10, "now": {"whole": 8, "mig": 2, "timeSliced": 0}, "parts": [
        {"use": "whole", "gpus": 4, "geometry": null, "replicas": 1,
         "serves": "4 x 1 GPU (training)"},
        {"use": "mig", "gpus": 3, "geometry": "7x 1g.10gb", "replicas": 1,
         "serves": "20 x 1g.10gb (inference)"},
        {"use": "timeSliced", "gpus": 2, "geometry": null, "replicas": 10,
         "serves": "20 x 1/10 GPU (notebook)"}],
       "spare": 1, "shortOf": ["10 x 1/10 GPU (notebook)"]
}],
      "notes": ["demand was recorded for 3 days only"]
}
, "repartition" : {
  "nodes" : [ {
    "node" : "gpu-1",
    "config" : "tranche-1",
    "configYaml" : "tranche-1: []\n",
    "steps" : [
      {"gpu" : 0, "from" : "whole", "to" : "7x 1g.10gb"},
      {"gpu" : 2, "from" : "7x 1g.10gb", "to" : "whole"}
    ],
    "guards" : ["GPU 2 is used"]
  } ],
  "waitingServed" : 5,
  "expectedMilli" : 1500,
  "notes" : []
},
                  "defragment"
    : {
      "wholeGpusFree" : 4,
      "wholeGpusPossible" : 6,
      "strandedMilli" : 1250,
      "entries" : [
        {
          "node" : "gpu-2",
          "gpus" : [ 1, 3 ],
          "profile" : null,
          "profileGpu" : null,
          "moves" : [
            {"pod" : "team-a/web", "leaf" : "team-a", "to" : "gpu-3", "lostGpuSeconds" : 2},
            {"pod" : "team-b/nb", "leaf" : null, "to" : "gpu-4", "lostGpuSeconds" : 0}
          ],
          "freedMilli" : 1250,
          "lostGpuSeconds" : 2,
          "waitingServed" : 1
        },
        {
          "node" : "gpu-5",
          "gpus" : [],
          "profile" : "3g.40gb",
          "profileGpu" : 6,
          "moves" :
              [ {"pod" : "team-b/small", "leaf" : "team-b", "to" : null, "lostGpuSeconds" : 60} ],
          "freedMilli" : 0,
          "lostGpuSeconds" : 60,
          "waitingServed" : 0
        }
      ],
      "notes" : ["team-a/train may not be moved"]
    },
      "consolidate" : [ {
        "node" : "gpu-7",
        "gpus" : 8,
        "moves" :
            [ {"pod" : "team-b/small", "leaf" : "team-b", "to" : null, "lostGpuSeconds" : 60} ],
        "lostGpuSeconds" : 60
      } ],
      "rightSizes" : {
        "measuring" : 40,
        "measured" : 12,
        "savedMilli" : 3857,
        "entries" : [
          {
            "pod" : "lab/train",
            "node" : "gpu-3",
            "leaf" : null,
            "hours" : 25,
            "busiestHourPercent" : 99,
            "memoryMiB" : null,
            "unused" : 3,
            "holds" : "4 GPUs",
            "wouldDo" : "1 GPU",
            "request" : {"key" : "nvidia.com/gpu", "value" : "1"},
            "savedMilli" : 3000
          },
          {
            "pod" : "team-a/web",
            "node" : "gpu-2",
            "leaf" : "team-a",
            "hours" : 216,
            "busiestHourPercent" : 4,
            "memoryMiB" : 6144,
            "unused" : 0,
            "holds" : "1 GPU",
            "wouldDo" : "1g.10gb",
            "request" : {"key" : "nvidia.com/mig-1g.10gb", "value" : "1"},
            "savedMilli" : 857
          }
        ],
        "notes" : ["a note"]
      },
      "at" : "2026-01-02T03:00:00Z"
})json"));
}

TEST(AdviceApiTest, WithoutLeaveToLookAtLayoutsThereIsNoPlan) {
  AdviceCase fleet;
  fleet.policy.mig = MigMode::kOff;
  EXPECT_TRUE(
      nlohmann::json::parse(EncodeAdvice(MakeAdvice(fleet, {}))).at("repartition").is_null());
  fleet.policy.mig = MigMode::kAdvise;
  EXPECT_TRUE(
      nlohmann::json::parse(EncodeAdvice(MakeAdvice(fleet, {}))).at("repartition").is_object());
}

TEST(AdviceApiTest, WhatNobodyMeasuresIsNotLookedFor) {
  const AdviceCase fleet;
  const auto right_sizes = [&fleet](const std::optional<UseHistory>& use) {
    return nlohmann::json::parse(EncodeAdvice(MakeAdvice(fleet, use))).at("rightSizes");
  };
  EXPECT_TRUE(right_sizes({}).is_null());
  EXPECT_EQ(right_sizes(UseHistory()).at("measuring"), 0);
}

TEST(AdviceApiTest, PeopleGetFiveTables) {
  std::ostringstream out;
  PrintAdvice(Json::parse(EncodeAdvice(FullAdvice())), out);
  EXPECT_EQ(
      out.str(),
      "\nSplit of the fleet, by the peak of 3 days\n"
      "MODEL  GPUS  NOW             ADVISED  AS                 FOR\n"
      "h100     10  8 whole, 2 MIG        4  whole              4 x 1 GPU (training)\n"
      "                                   3  MIG: 7x 1g.10gb    20 x 1g.10gb (inference)\n"
      "                                   2  time-sliced by 10  20 x 1/10 GPU (notebook)\n"
      "                                   1  whole              spare\n"
      "h100 is short of 10 x 1/10 GPU (notebook)\n"
      "- demand was recorded for 3 days only\n"
      "\nMIG layouts to change\n"
      "NODE   GPU  FROM        TO          CONFIG     GUARDS\n"
      "gpu-1    0  whole       7x 1g.10gb  tranche-1  GPU 2 is used\n"
      "         2  7x 1g.10gb  whole\n"
      "serves 5 waiting pods and 1500m of expected demand\n"
      "\nPods whose restart would free room: 4 whole GPUs are free, 6 would be\n"
      "NODE   FREES             SERVES     LOST      RESTART       QUOTA   TO\n"
      "gpu-2  GPU 1,3           1 waiting  2 GPU-s   team-a/web    team-a  gpu-3\n"
      "                                    0 GPU-s   team-b/nb     -       gpu-4\n"
      "gpu-5  3g.40gb on GPU 6  0 waiting  60 GPU-s  team-b/small  team-b  -\n"
      "- team-a/train may not be moved\n"
      "\nNodes that could be empty: what little they run may be moved, and has room elsewhere\n"
      "NODE   GPUS  LOST      MOVE          QUOTA   TO\n"
      "gpu-7     8  60 GPU-s  team-b/small  team-b   -\n"
      "\nWork that would do with less: by its busiest hour, and the most memory it ever held\n"
      "POD         QUOTA   HOLDS   HOURS  BUSIEST  MEMORY   WOULD DO  SAVES  ASK\n"
      "lab/train   -       4 GPUs     25  99 %     -        1 GPU      3.00  nvidia.com/gpu: 1\n"
      "team-a/web  team-a  1 GPU     216  4 %      6.0 GiB  1g.10gb    0.86  "
      "nvidia.com/mig-1g.10gb: 1\n"
      "12 of 40 pods that are measured were measured for a day, by the hour\n"
      "- a note\n");
}

TEST(AdviceApiTest, PeopleAreToldWhereThereIsNothingToAdvise) {
  std::ostringstream out;
  PrintAdvice(Json::parse(EncodeAdvice(Advice())), out);
  EXPECT_EQ(
      out.str(),
      "\nSplit of the fleet, by -\nno GPUs are known\n"
      "\nMIG layouts to change\nnot looked for: mig of the GPUPolicy is Off\n"
      "\nPods whose restart would free room: 0 whole GPUs are free, 0 would be\nnone\n"
      "\nNodes that could be empty: what little they run may be moved, and has room elsewhere\n"
      "none\n"
      "\nWork that would do with less: by its busiest hour, and the most memory it ever held\n"
      "not looked for: nobody is asked how much GPUs are used (use.prometheus)\n");
}

TEST(AdviserTest, LooksAgainOnlyWhenTheAnswerIsOlderThanAsked) {
  int looks = 0;
  std::chrono::steady_clock::time_point now(1h);
  Adviser adviser(
      [&looks] {
        ++looks;
        return AdviceCase();
      },
      [] { return std::nullopt; }, [&now] { return now; });
  adviser.Get(10s);
  now += 9s;
  adviser.Get(10s);
  EXPECT_EQ(looks, 1);
  now += 1s;
  adviser.Get(5min);
  EXPECT_EQ(looks, 1);
  adviser.Get(10s);
  EXPECT_EQ(looks, 2);
}

TEST(AdviserTest, WhoPeeksWaitsForNobodyAndOrdersOnce) {
  int looks = 0;
  std::chrono::steady_clock::time_point now(1h);
  Adviser adviser(
      [&looks] {
        ++looks;
        return AdviceCase();
      },
      [] { return std::nullopt; }, [&now] { return now; });
  std::vector<std::function<void()>> ordered;
  const auto later = [&ordered](std::function<void()> work) { ordered.push_back(std::move(work)); };
  EXPECT_EQ(adviser.Peek(5min, later), nullptr);
  EXPECT_EQ(adviser.Peek(5min, later), nullptr);
  ASSERT_EQ(ordered.size(), 1U);
  EXPECT_EQ(looks, 0);
  ordered[0]();
  const std::shared_ptr<const Advice> first = adviser.Peek(5min, later);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(ordered.size(), 1U);
  now += 5min;
  EXPECT_EQ(adviser.Peek(5min, later), first) << "old, and at once";
  ASSERT_EQ(ordered.size(), 2U);
  ordered[1]();
  EXPECT_NE(adviser.Peek(5min, later), first);
  EXPECT_EQ(looks, 2);
}

}  // namespace THIS_FILE
}  // namespace tranche
