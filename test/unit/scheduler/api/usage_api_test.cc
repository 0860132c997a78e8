// The page's questions to the ledger and its conditional requests, on a whole server.
#include "scheduler/api/usage_api.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/wire/json/json.h"
#include "test/unit/scheduler/server/ledger_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

class UsageServer : public LedgerServer {
 protected:
  void SetUp() override {
    LedgerServer::SetUp();
    Apply(Json::parse(R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUBudget",
                          "metadata": {"name": "rolling"},
                          "spec": {"quotaRef": "a", "gpuHours": 100, "rates": {"h100": "0.5"},
                                   "window": {"type": "Rolling", "duration": "24h"}}})"));
  }
  // Four GPUs for two hours.
  void Use() {
    Run("team-a", 4);
    Advance(7200);
  }
};

TEST_F(UsageServer, SeriesAddUpToTheReport) {
  const Instant start = *wire::ParseTime(Now());
  Use();
  const std::string span =
      "from=" + wire::FormatTime(start) + "&to=" + wire::FormatTime(start + std::chrono::hours(3));
  const Json report = Get("/api/v1/ledger?" + span);
  ASSERT_EQ(report["rows"].size(), 1U);
  EXPECT_EQ(report["total"], "8.000");
  const Json series = Get("/api/v1/ledger/series?step=3600&" + span);
  EXPECT_EQ(series["stepSeconds"], 3600);
  ASSERT_EQ(series["rows"].size(), 1U);
  EXPECT_EQ(series["rows"][0]["leaf"], "a");
  EXPECT_EQ(series["rows"][0]["model"], "h100");
  EXPECT_EQ(series["rows"][0]["gpuHours"], Json({"4.000", "4.000", "0.000"}));
  EXPECT_EQ(Get("/api/v1/ledger/series?leaf=b&step=3600&" + span)["rows"].size(), 0U);
}

TEST_F(UsageServer, ABillAddsUpToTheFleetAndKnowsPricesSinceTheyWereDeclared) {
  Apply(Json::parse(R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUPool",
      "metadata": {"name": "all"}, "spec": {"nodes": {}, "capacity": "Spot"}})"));
  Apply(Json::parse(R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUPrice",
      "metadata": {"name": "spot"},
      "spec": {"perGpuHour": "2.5", "currency": "USD", "capacity": "Spot"}})"));
  Advance(60);
  const Instant start = *wire::ParseTime(Now());
  Use();
  Advance(60);
  const std::string span = "/api/v1/ledger/bill?from=" + wire::FormatTime(start) +
                           "&to=" + wire::FormatTime(start + std::chrono::hours(2));
  const Json bill = Get(span);
  EXPECT_EQ(bill["currency"], "USD");
  EXPECT_EQ(bill["by"], "team");
  EXPECT_EQ(bill["fleet"]["gpuHours"], "16.000");
  EXPECT_EQ(bill["fleet"]["cost"], "40.00");
  EXPECT_EQ(bill["used"]["cost"], "20.00");
  EXPECT_EQ(bill["free"]["cost"], "20.00");
  EXPECT_EQ(bill["refunded"]["cost"], "0.00");
  EXPECT_EQ(bill["unknownGpuHours"], "0.000");
  ASSERT_EQ(bill["rows"].size(), 1U);
  EXPECT_EQ(bill["rows"][0]["key"], "a");
  EXPECT_EQ(bill["rows"][0]["gpuHours"], "8.000");
  EXPECT_EQ(bill["rows"][0]["cost"], "20.00");
  EXPECT_EQ(Get(span + "&by=pool")["rows"][0]["key"], "all");
  const Json node = Get("/api/v1/nodes/n");
  EXPECT_EQ(node["pool"], "all");
  EXPECT_EQ(node["capacity"], "Spot");
  EXPECT_EQ(node["pricePerHour"], "20");
  EXPECT_EQ(node["currency"], "USD");
}

TEST_F(UsageServer, TellsWhoHeldWhatAtAMoment) {
  const Instant start = *wire::ParseTime(Now());
  Advance(60);
  Use();
  const auto at = [&](int minutes) {
    return Get("/api/v1/ledger/held?at=" +
               wire::FormatTime(start + std::chrono::minutes(minutes)))["rows"];
  };
  EXPECT_EQ(at(0), Json::array()) << "it came a minute later";
  const Json then = at(1);
  ASSERT_EQ(then.size(), 1U);
  EXPECT_EQ(then[0]["node"], "n");
  EXPECT_EQ(then[0]["model"], "h100");
  EXPECT_EQ(then[0]["gpus"], "4.000");
  EXPECT_EQ(then[0]["leaf"], "a");
  EXPECT_EQ(then[0]["namespace"], "team-a");
  EXPECT_EQ(then[0]["pod"], "p");
  EXPECT_EQ(then[0]["since"], wire::FormatTime(start + std::chrono::minutes(1)));
  EXPECT_EQ(then[0]["until"], nullptr) << "it runs on";
  EXPECT_EQ(then[0]["containers"][0]["devices"].size(), 4U);
  // It has half a minute to end in.
  const std::string ended = wire::FormatTime(*wire::ParseTime(Now()) + std::chrono::seconds(30));
  Post("/embedded/v1/delete", {{"kind", "Pod"}, {"namespace", "team-a"}, {"name", "p"}});
  Advance(60);
  EXPECT_EQ(at(121)[0]["until"], ended);
  EXPECT_EQ(Get("/api/v1/ledger/held?at=" + ended)["rows"], Json::array());
  EXPECT_EQ(Get("/api/v1/ledger/held?leaf=b&at=" + wire::FormatTime(start))["rows"], Json::array());
  EXPECT_EQ(Get("/api/v1/ledger/held")["rows"], Json::array()) << "now";
  // Of a span also what has ended in it.
  const std::string from = "/api/v1/ledger/held?from=" + wire::FormatTime(start);
  ASSERT_EQ(Get(from)["rows"].size(), 1U);
  EXPECT_EQ(Get(from)["rows"][0]["until"], ended);
  EXPECT_EQ(Get(from + "&leaf=b")["rows"], Json::array());
  EXPECT_EQ(Get(from + "&at=" + wire::FormatTime(start))["rows"], Json::array())
      << "before it came";
  EXPECT_EQ(Get("/api/v1/ledger/held?from=" + ended)["rows"], Json::array()) << "it held none then";
}

TEST_F(UsageServer, ABudgetsCurveEndsWhereItsMeterStands) {
  Use();
  const Json budget = Get("/api/v1/budgets")["budgets"][0];
  const Json burn = Get("/api/v1/burndown/rolling");
  EXPECT_EQ(burn["used"], budget["used"]);
  EXPECT_EQ(burn["used"], "4.000");
  EXPECT_EQ(burn["windowEnd"], nullptr);
  EXPECT_EQ(burn["burningPerHour"], "2.000");
  // Steps of 24 minutes: the last full one ends a step or less before now.
  const Json& points = burn["points"];
  ASSERT_GT(points.size(), 50U);
  EXPECT_EQ(points.back()["used"], "4.000");
  const double before = std::stod(points[points.size() - 2]["used"].get<std::string>());
  EXPECT_GE(before, 3.2 - 0.001);
  EXPECT_LE(before, 4.0);
}

TEST_F(UsageServer, RefusalsSayWhatWasExpected) {
  struct Row {
    const char* target;
    int status;
    const char* says;
  };
  for (const Row& row :
       {Row{"/api/v1/burndown/none", 404, "no budget"},
        Row{"/api/v1/ledger/series?from=yesterday", 400, "from: expected an RFC 3339 time"},
        Row{"/api/v1/ledger/series?step=5", 400, "step: expected 60 to"},
        Row{"/api/v1/ledger/series?step=1h", 400, "step: expected 60 to"},
        Row{"/api/v1/ledger/series?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", 400,
            "to: expected a time after from"},
        Row{"/api/v1/ledger/series?from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", 400,
            "at most 400"},
        Row{"/api/v1/ledger/held?at=2999-01-01T00:00:00Z", 400,
            "at: expected a moment that has come"},
        Row{"/api/v1/ledger/held?at=then", 400, "at: expected an RFC 3339 time"},
        Row{"/api/v1/ledger/held?from=2020-01-02T00:00:00Z&at=2020-01-01T00:00:00Z", 400,
            "from: expected a moment not after 2020-01-01T00:00:00Z, found 2020-01-02T00:00:00Z"},
        Row{"/api/v1/ledger/bill?by=colour", 400,
            "by: expected team, namespace, class, pod, owner, node, model, pool, day or label:KEY"},
        Row{"/api/v1/ledger/bill?by=label:", 400, "day or label:KEY"},
        Row{"/api/v1/ledger/bill?by=label:a%20b", 400, "day or label:KEY"},
        Row{"/api/v1/ledger/bill?from=2020-01-02T00:00:00Z&to=2020-01-01T00:00:00Z", 400,
            "to: expected a moment after from"}}) {
    const kube::SingleAnswer reply = Call("GET", row.target);
    EXPECT_EQ(reply.status, row.status) << row.target;
    EXPECT_NE(reply.body.find(row.says), std::string::npos) << reply.body;
  }
}

TEST_F(LiveServer, WithoutALedgerThereIsNoHistory) {
  EXPECT_EQ(Call("GET", "/api/v1/ledger/series").status, 404);
  EXPECT_EQ(Call("GET", "/api/v1/ledger/bill").status, 404);
  EXPECT_EQ(Call("GET", "/api/v1/ledger/held").status, 404);
  EXPECT_EQ(Call("GET", "/api/v1/burndown/any").status, 404);
}

}  // namespace THIS_FILE
}  // namespace tranche
