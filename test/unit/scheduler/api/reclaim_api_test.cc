#include "scheduler/api/reclaim_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/api/api_json.h"
#include "scheduler/cli/cli_reclaim.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

const Instant kPlanned{std::chrono::hours(24 * 365 * 56)};  // 2025-12-18T00:00:00Z

ReclaimVictim Victim(const std::string& name, int64_t lost_gpu_ms) {
  ReclaimVictim victim;
  victim.pod = {"team-b", name};
  victim.uid = PodUid("u-" + name);
  victim.node = NodeName("gpu-1");
  victim.leaf = "research";
  victim.state = QuotaState::kBorrowed;
  victim.lost_gpu_ms = lost_gpu_ms;
  return victim;
}

// Half way: one of two victims is gone.
Reclaim HalfWay() {
  Reclaim reclaim;
  reclaim.name = "r-1";
  reclaim.rule = ReclaimRule::kR1;
  reclaim.leaf = "prod";
  reclaim.members = {{{"prod", "serve-0"}, PodUid("u-serve"), NodeName("gpu-1"), false}};
  reclaim.phase = ReclaimPhase::kEvicting;
  reclaim.victims = {Victim("train-0", 1'919'001), Victim("train-1", 0)};
  reclaim.victims[0].gang = "train";
  reclaim.victims[0].checkpoint = kPlanned - 5min;
  reclaim.victims[0].evicted_at = kPlanned + 1s;
  reclaim.victims[0].gone_at = kPlanned + 31s;
  reclaim.cost.rank = 2;
  reclaim.cost.gangs = 2;
  reclaim.cost.lost_gpu_ms = 1'919'001;
  reclaim.cost.pods = 2;
  reclaim.optimal = true;
  reclaim.evaluations = 41;
  reclaim.planned_at = kPlanned;
  return reclaim;
}

Reclaim Drained() {
  Reclaim reclaim = HalfWay();
  reclaim.name = "r-2";
  reclaim.rule = ReclaimRule::kDrain;
  reclaim.members.clear();
  reclaim.source = "monthly";
  reclaim.phase = ReclaimPhase::kAborted;
  reclaim.reason = "PDBBlocked";
  reclaim.finished_at = kPlanned + 1min;
  return reclaim;
}

template <typename Print>
std::string Shown(Print print) {
  std::ostringstream out;
  print(out);
  return out.str();
}

// ---- /api/v1/reclaims ---------------------------------------------------------------------------

TEST(ReclaimApiTest, ReclaimHasTheKeysOfTheContract) {
  const Json answer = Json::parse(EncodeReclaims(std::vector<Reclaim>{HalfWay()}, kPlanned + 1min));
  EXPECT_EQ(answer["now"], "2025-12-18T00:01:00Z");
  ASSERT_EQ(answer["reclaims"].size(), 1U);
  const Json& got = answer["reclaims"][0];
  EXPECT_EQ(got["for"], Json({{"namespace", "prod"}, {"name", "serve-0"}}));
  EXPECT_EQ(got["rule"], "R1");
  EXPECT_EQ(got["phase"], "Evicting");
  EXPECT_EQ(got["progress"], "1 of 2 gone");
  EXPECT_EQ(got["cost"], Json({0, 2, 0, 2, 0, 1920, 2, 0}));
  EXPECT_EQ(got["search"], Json({{"result", "optimal"}, {"evaluations", 41}}));
  EXPECT_EQ(got["node"], "gpu-1");
  EXPECT_EQ(got["plannedAt"], "2025-12-18T00:00:00Z");
  for (const char* key : {"reason", "reservedAt", "finishedAt"}) {
    EXPECT_TRUE(got.at(key).is_null()) << key;
  }
  EXPECT_EQ(got["victims"][0], Json({{"pod", "team-b/train-0"},
                                     {"leaf", "research"},
                                     {"gang", "train"},
                                     {"state", "borrowed"},
                                     {"node", "gpu-1"},
                                     {"lostGpuSeconds", 1920},
                                     {"lastCheckpoint", "2025-12-17T23:55:00Z"},
                                     {"evictedAt", "2025-12-18T00:00:01Z"},
                                     {"goneAt", "2025-12-18T00:00:31Z"},
                                     {"gone", true}}));
  EXPECT_EQ(got["victims"][1]["gone"], false);
}

TEST(ReclaimApiTest, DrainNamesItsBudget) {
  const Json got =
      Json::parse(EncodeReclaims(std::vector<Reclaim>{Drained()}, kPlanned))["reclaims"][0];
  EXPECT_EQ(got["for"], Json({{"kind", "GPUBudget"}, {"name", "monthly"}}));
  EXPECT_EQ(got["members"], Json::array());
  EXPECT_EQ(got["reason"], "PDBBlocked");
}

// ---- explain ------------------------------------------------------------------------------------

Json PlanOf(const Explanation& explanation) {
  return Json::parse(EncodeExplanation(explanation)).at("plan");
}

TEST(ReclaimApiTest, PlanOfAnExplanationIsTheReclaimWithThePodsPartInIt) {
  Explanation explanation;
  EXPECT_TRUE(PlanOf(explanation).is_null());
  explanation.reclaim = HalfWay();
  explanation.pod.uid = PodUid("u-serve");
  EXPECT_EQ(PlanOf(explanation)["role"], "preemptor");
  EXPECT_EQ(PlanOf(explanation)["progress"], "1 of 2 gone");
  explanation.pod.uid = PodUid("u-train-1");
  EXPECT_EQ(PlanOf(explanation)["role"], "victim");
}

TEST(ReclaimApiTest, WhyThereIsNoPlanIsSaidWithTheTime) {
  Explanation explanation;
  explanation.blocked =
      PlanBlock{Reason::kVictimsProtected, "team-b/train-0: minRuntime", kPlanned + 2min};
  EXPECT_EQ(PlanOf(explanation), Json({{"blocked",
                                        {{"code", "VictimsProtected"},
                                         {"text", Describe(Reason::kVictimsProtected).text},
                                         {"detail", "team-b/train-0: minRuntime"},
                                         {"until", "2025-12-18T00:02:00Z"}}}}));
}

TEST(ReclaimApiTest, ExplainPrintsProgressAndTimes) {
  Explanation explanation;
  explanation.reclaim = HalfWay();
  explanation.pod.uid = PodUid("u-serve");
  EXPECT_EQ(
      Shown([&](std::ostream& out) { PrintPlan(PlanOf(explanation), out); }),
      "plan     victims leave for prod/serve-0 by rule R1: Evicting, 1 of 2 gone\n"
      "planned  2025-12-18T00:00:00Z\n"
      "\n"
      "VICTIM          QUOTA     STATE     NODE   LOSES       CHECKPOINT            NOW\n"
      "team-b/train-0  research  borrowed  gpu-1  1920 GPU-s  2025-12-17T23:55:00Z  gone\n"
      "team-b/train-1  research  borrowed  gpu-1  0 GPU-s     -                     running\n");
  explanation.reclaim.reset();
  explanation.blocked =
      PlanBlock{Reason::kEvictionBudget, "research lost 20 pods", kPlanned + 2min};
  EXPECT_EQ(Shown([&](std::ostream& out) { PrintPlan(PlanOf(explanation), out); }),
            "plan     none: " + std::string(Describe(Reason::kEvictionBudget).text) +
                "\nguard    research lost 20 pods\nuntil    2025-12-18T00:02:00Z\n");
}

// ---- what-if ------------------------------------------------------------------------------------

TEST(ReclaimApiTest, WhatIfNamesVictimsAndPrintsThePlan) {
  WhatIfResult result;
  result.name = {"prod", "serve-0"};
  result.reason = Reason::kNoRoom;
  const auto encoded = [&result] {
    return Json::parse(EncodeWhatIf(std::vector<WhatIfResult>{result}))["pods"][0];
  };
  EXPECT_EQ(encoded()["victims"], Json::array());
  for (const char* key : {"rule", "cost", "search"}) {
    EXPECT_TRUE(encoded().at(key).is_null()) << key;
  }
  EXPECT_EQ(Shown([&](std::ostream& out) { PrintEvictions(encoded(), out); }), "");

  result.victims = {Victim("train-0", 1'920'000), Victim("train-1", 80'000)};
  result.rule = ReclaimRule::kR2b;
  result.cost.pods = 2;
  EXPECT_EQ(encoded()["victims"], Json({"team-b/train-0", "team-b/train-1"}));
  EXPECT_EQ(encoded()["rule"], "R2b");
  EXPECT_EQ(encoded()["cost"], Json({0, -1, 0, 0, 0, 0, 2, 0}));
  EXPECT_EQ(encoded()["search"]["result"], "heuristic");
  EXPECT_EQ(Shown([&](std::ostream& out) { PrintEvictions(encoded(), out); }),
            "\n"
            "room for prod/serve-0 would be made by evicting\n"
            "VICTIM          QUOTA     STATE     NODE   LOSES       CHECKPOINT\n"
            "team-b/train-0  research  borrowed  gpu-1  1920 GPU-s           -\n"
            "team-b/train-1  research  borrowed  gpu-1  80 GPU-s             -\n"
            "rule R2b, heuristic search, 2000 GPU-s of work lost; nothing was done\n");
}

// ---- tranche reclaims ---------------------------------------------------------------------------

TEST(ReclaimApiTest, ReclaimsAreATable) {
  const auto shown = [](const std::vector<Reclaim>& reclaims, Instant now) {
    const Json answer = Json::parse(EncodeReclaims(reclaims, now));
    return Shown(
        [&](std::ostream& out) { out << WriteList(ReclaimList(), {}, answer, TerminalOf(out)); });
  };
  Reclaim gang = HalfWay();
  gang.members.push_back(gang.members.front());
  EXPECT_EQ(shown({gang, Drained()}, kPlanned + 45min),
            "FOR                      RULE   VICTIMS      LOST        STATE     REASON      AGE\n"
            "prod/serve-0 and 1 more  R1     1 of 2 gone  1920 GPU-s  Evicting  -           45m\n"
            "GPUBudget monthly        Drain  1 of 2 gone  1920 GPU-s  Aborted   PDBBlocked  45m\n");
  EXPECT_EQ(shown({}, kPlanned), "no reclaim runs or ended within the last day\n");
}

}  // namespace THIS_FILE
}  // namespace tranche
