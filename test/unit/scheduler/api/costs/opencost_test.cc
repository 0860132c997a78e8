// The bill as OpenCost's Allocation API tells it: windows, steps, and what the sets add up to.
#include "scheduler/api/costs/opencost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scheduler/api/costs/cost_window.h"
#include "scheduler/wire/json/json.h"
#include "test/unit/scheduler/server/ledger_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;
using testing::HasSubstr;

Instant At(const char* text) { return *wire::ParseTime(text); }

TEST(CostWindow, IsWhatOpenCostWouldTake) {
  const Instant now = At("2026-11-25T10:30:00Z");  // a Wednesday
  const struct {
    const char* text;
    const char* from;
    const char* to;
  } rows[] = {
      {"today", "2026-11-25T00:00:00Z", "2026-11-25T10:30:00Z"},
      {"yesterday", "2026-11-24T00:00:00Z", "2026-11-25T00:00:00Z"},
      {"week", "2026-11-22T00:00:00Z", "2026-11-25T10:30:00Z"},
      {"lastweek", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z"},
      {"month", "2026-11-01T00:00:00Z", "2026-11-25T10:30:00Z"},
      {"lastmonth", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"},
      {"30m", "2026-11-25T10:00:00Z", "2026-11-25T10:30:00Z"},
      {"12h", "2026-11-24T22:30:00Z", "2026-11-25T10:30:00Z"},
      {"7d", "2026-11-18T10:30:00Z", "2026-11-25T10:30:00Z"},
      {"2w", "2026-11-11T10:30:00Z", "2026-11-25T10:30:00Z"},
      {"2026-11-01T00:00:00Z,2026-11-02T00:00:00Z", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"},
      {"1793491200,1793577600", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"},
      {"2026-11-25T00:00:00Z,2026-11-30T00:00:00Z", "2026-11-25T00:00:00Z", "2026-11-25T10:30:00Z"},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<CostWindow> window = ParseCostWindow(row.text, now);
    ASSERT_TRUE(window.ok()) << row.text << ": " << window.status();
    EXPECT_EQ(wire::FormatTime(window->from), row.from) << row.text;
    EXPECT_EQ(wire::FormatTime(window->to), row.to) << row.text;
  }
  const Instant january = At("2027-01-03T00:00:01Z");  // a Sunday
  EXPECT_EQ(ParseCostWindow("lastmonth", january)->from, At("2026-12-01T00:00:00Z"));
  EXPECT_EQ(ParseCostWindow("week", january)->from, At("2027-01-03T00:00:00Z"));
}

TEST(CostWindow, WhatIsNoneIsRefused) {
  const Instant now = At("2026-11-25T10:30:00Z");
  for (const char* const text :
       {"", "fortnight", "d", "0d", "-7d", "7", "7y", "99999999999999999999d", "9000000w", ",",
        "today,now", "2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z,", "99999999999999,1",
        "1,2,3"}) {
    EXPECT_THAT(ParseCostWindow(text, now).status().message(), HasSubstr("window: expected today"))
        << text;
  }
  for (const char* const text :
       {"2026-11-02T00:00:00Z,2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z,2026-12-02T00:00:00Z"}) {
    EXPECT_THAT(ParseCostWindow(text, now).status().message(), HasSubstr("a span that has begun"));
  }
}

class OpenCostServer : public LedgerServer {
 protected:
  void SetUp() override {
    LedgerServer::SetUp();
    Apply(Json::parse(R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUPrice",
                          "metadata": {"name": "all"},
                          "spec": {"perGpuHour": "2.5", "currency": "USD"}})"));
    Advance(60);
    start_ = *wire::ParseTime(Now());
    Run("team-a", 4,
        Json::parse(R"({"labels": {"project": "x", "team": "zebra"}, "ownerReferences": [
            {"kind": "Job", "name": "train", "uid": "j", "controller": true}]})"));
    Run("other", 1);
    Advance(7200 + 60);
  }
  Json Ask(const std::string& more) {
    const std::string window =
        wire::FormatTime(start_) + "," + wire::FormatTime(start_ + std::chrono::hours(2));
    return Get("/api/v1/opencost/allocation/compute?window=" + window + more);
  }

  Instant start_;
};

TEST_F(OpenCostServer, ASetAddsUpToTheFleet) {
  const Json answer = Ask("&includeIdle=true");
  EXPECT_EQ(answer["code"], 200);
  ASSERT_EQ(answer["data"].size(), 1U);
  const Json& set = answer["data"][0];
  EXPECT_EQ(set["team-a"]["gpuHours"], 8.0);
  EXPECT_EQ(set["team-a"]["gpuCount"], 4.0);
  EXPECT_EQ(set["team-a"]["gpuCost"], 20.0);
  EXPECT_EQ(set["team-a"]["totalCost"], 20.0);
  EXPECT_EQ(set["team-a"]["minutes"], 120.0);
  EXPECT_EQ(set["team-a"]["properties"]["namespace"], "team-a");
  EXPECT_EQ(set["team-a"]["gpuEfficiency"], 1.0);
  EXPECT_EQ(set["other"]["totalCost"], 5.0);
  EXPECT_EQ(set["__idle__"]["totalCost"], 15.0);
  EXPECT_EQ(set.size(), 3U) << set;
}

TEST_F(OpenCostServer, StepsAreSetsOfTheirOwn) {
  const Json steps = Ask("&step=30m&aggregate=label:team")["data"];
  ASSERT_EQ(steps.size(), 4U);
  for (const Json& set : steps) {
    EXPECT_EQ(set["a"]["totalCost"], 5.0);
    EXPECT_EQ(set["__unallocated__"]["gpuHours"], 0.5) << "of no team";
    EXPECT_EQ(set.size(), 2U);
  }
  EXPECT_EQ(steps[1]["a"]["start"], steps[0]["a"]["end"]);
  EXPECT_EQ(Ask("&step=30m&accumulate=true")["data"].size(), 1U);
}

TEST_F(OpenCostServer, RowsAreOfPodsNodesOrTheCluster) {
  const Json pods = Ask("&aggregate=pod")["data"][0];
  EXPECT_EQ(pods["team-a/p"]["properties"]["pod"], "p");
  EXPECT_EQ(pods["team-a/p"]["properties"]["namespace"], "team-a");
  EXPECT_EQ(Ask("&aggregate=node")["data"][0]["n"]["gpuHours"], 10.0);
  EXPECT_EQ(Ask("&aggregate=cluster")["data"][0]["cluster-one"]["totalCost"], 25.0);
}

TEST_F(OpenCostServer, RowsAreOfControllersAndLabels) {
  const Json made = Ask("&aggregate=controller&includeIdle=true")["data"][0];
  const Json& job = made["team-a/Job/train"];
  EXPECT_EQ(job["totalCost"], 20.0) << made;
  EXPECT_EQ(job["properties"]["namespace"], "team-a");
  EXPECT_EQ(job["properties"]["controllerKind"], "job");
  EXPECT_EQ(job["properties"]["controller"], "train");
  EXPECT_EQ(made["__unallocated__"]["totalCost"], 5.0) << "nobody made it";
  EXPECT_EQ(made["__idle__"]["totalCost"], 15.0);
  const Json labels = Ask("&aggregate=label:project")["data"][0];
  EXPECT_EQ(labels["x"]["totalCost"], 20.0) << labels;
  EXPECT_EQ(labels["x"]["properties"]["labels"]["project"], "x");
  EXPECT_EQ(labels["__unallocated__"]["totalCost"], 5.0);
  EXPECT_EQ(labels.size(), 2U);
  EXPECT_EQ(Ask("&aggregate=label:team")["data"][0]["a"]["totalCost"], 20.0) << "Tranche's teams";
}

// The bill and /metrics count the same: 4 and 1 GPUs of 8 at 2.50.
TEST_F(OpenCostServer, WhatItCostsNowIsAMetric) {
  const std::string page = "\n" + Call("GET", "/metrics").body;
  for (const char* const line :
       {R"(tranche_cost_per_hour{leaf="a",model="h100",currency="USD"} 10)",
        R"(tranche_cost_per_hour{leaf="",model="h100",currency="USD"} 2.5)",
        R"(tranche_fleet_cost_per_hour{model="h100",currency="USD"} 20)"}) {
    EXPECT_NE(page.find("\n" + std::string(line) + "\n"), std::string::npos) << line << page;
  }
  EXPECT_EQ(page.find("\ntranche_unpriced_gpus"), std::string::npos);
}

TEST_F(OpenCostServer, WhatItDoesNotKnowItRefuses) {
  const struct {
    const char* query;
    const char* said;
  } rows[] = {{"window=soon", "window: expected today"},
              {"", "window: expected today"},
              {"window=7d&aggregate=moon", "aggregate: expected namespace, pod"},
              {"window=7d&aggregate=label:", "label:team or label:KEY, found"},
              {"window=7d&step=1m", "step: expected at most 31 steps in the window, found 10080"},
              {"window=7d&step=x", "step: expected a span like 30m"},
              {"window=7d&includeIdle=1", "includeIdle: expected true or false"}};
  for (const auto& row : rows) {
    const auto answer = Call("GET", std::string("/api/v1/opencost/allocation?") + row.query);
    EXPECT_EQ(answer.status, 400) << row.query;
    EXPECT_THAT(answer.body, HasSubstr(row.said));
    EXPECT_THAT(answer.body, HasSubstr("\"code\":400"));
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
