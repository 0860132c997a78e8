// A ledger that is lost, on whole servers: what statuses kept is taken over, once.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "scheduler/cli/cli_ledger.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/wire/json/json.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

using ::testing::HasSubstr;

class LostLedger : public LiveServer {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "volume");
    std::filesystem::create_directories(folder_ / "kept");
    config_.ledger = folder_ / "volume" / "ledger.db";
    Launch(config_);
    for (const char* object : {R"({"apiVersion": "v1", "kind": "Namespace",
              "metadata": {"name": "team-a", "labels": {"team": "a"}}})",
                               R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUQuota",
              "metadata": {"name": "a", "uid": "uid-a"},
              "spec": {"namespaceSelector": {"matchLabels": {"team": "a"}},
                       "lines": [{"model": "h100", "nominal": {"gpus": 8}}]}})",
                               R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUBudget",
              "metadata": {"name": "hours", "uid": "uid-hours"},
              "spec": {"quotaRef": "a", "gpuHours": 12, "onExhaustion": "Block",
                       "window": {"type": "Rolling", "duration": "48h"}}})"}) {
      Apply(Json::parse(object));
    }
    Apply(MakeNode("n", 8));
  }
  void TearDown() override {
    LiveServer::TearDown();
    std::filesystem::remove_all(folder_);
  }

  std::string Advance(int seconds) {
    return Post("/embedded/v1/clock", {{"advanceSeconds", seconds}})["now"];
  }
  void Run(const std::string& name, int gpus) {
    const Json pod = MakePod(name, {{"nvidia.com/gpu", std::to_string(gpus)}});
    Apply(pod);
    ASSERT_EQ(Schedule(pod, {"n"}), "n");
  }
  void Delete(const std::string& name) {
    Post("/embedded/v1/delete", {{"kind", "Pod"}, {"namespace", "team-a"}, {"name", name}});
  }
  Json Status(const std::string& kind, const std::string& name) {
    return Get("/embedded/v1/objects?kind=" + kind + "&name=" + name)["status"];
  }
  // Until a status was written of which that is true; time goes on by seconds, as statuses are
  // rarely written.
  template <typename Holds>
  Json Await(const std::string& kind, const std::string& name, Holds holds, int step = 0) {
    Json status;
    for (int i = 0; i < 200; ++i) {
      status = Status(kind, name);
      if (holds(status)) return status;
      if (step > 0) Advance(step);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << kind << " " << name << " has " << status.dump();
    return status;
  }
  static std::string Condition(const Json& status, const std::string& member) {
    for (const Json& condition : status.value("conditions", Json::array())) {
      if (condition["type"] == "HistoryRestored") return condition[member];
    }
    return "";
  }
  std::string Used() { return Get("/api/v1/budgets")["budgets"][0]["used"]; }
  std::string Total() { return Get("/api/v1/ledger")["total"]; }
  std::string Metric(const std::string& name) {
    std::istringstream lines(Call("GET", "/metrics").body);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + " ")) return line.substr(name.size() + 1);
    }
    return "none";
  }

  // What the API server keeps when the server stops.
  void KeepObjects() {
    config_.objects.clear();
    for (const char* kind : {"Namespace", "GPUQuota", "GPUBudget", "Node", "Pod"}) {
      const std::string path = folder_ / "kept" / kind;
      std::ofstream(path) << Call("GET", std::string("/embedded/v1/objects?kind=") + kind).body;
      config_.objects.push_back(path);
    }
    now_ = *wire::ParseTime(Advance(0));
  }
  // The volume is gone; the clock goes on, as clocks do.
  void LoseVolume() {
    runtime.reset();
    std::filesystem::remove_all(folder_ / "volume");
    std::filesystem::create_directories(folder_ / "volume");
    ledger::Options options;
    options.path = config_.ledger;
    options.now = now_;
    const auto fresh = ledger::SqliteLedger::Open(options);
    ASSERT_TRUE(fresh.ok()) << fresh.status();
    (*fresh)->Heartbeat(now_, {});
  }
  std::string Verified() {
    std::ostringstream out;
    EXPECT_EQ(LedgerVerify(config_.ledger, false, out, out), 0) << out.str();
    return out.str();
  }

  std::filesystem::path folder_;
  ServeConfig config_;
  Instant now_;
};

TEST_F(LostLedger, BudgetsAndReportsGoOnFromTheCheckpointOnceAndSaySo) {
  Run("ended", 4);
  Advance(7200);
  Delete("ended");
  Advance(60);
  Run("runs", 2);
  const std::string before =
      Advance(3600);  // 8 GPU-hours, with the grace period a little more, and 2
  Await(
      "GPUBudget", "hours",
      [&](const Json& status) {
        return status.contains("checkpoint") && status["checkpoint"]["time"] >= before;
      },
      5);
  Await(
      "GPUQuota", "a",
      [&](const Json& status) {
        return status.contains("checkpoint") && status["checkpoint"]["time"] >= before;
      },
      5);
  const std::string lost = Status("GPUBudget", "hours")["checkpoint"]["ledger"];
  Advance(20);
  KeepObjects();
  const std::string used = Used();
  const std::string total = Total();
  EXPECT_GT(std::stod(used), 10.0);
  EXPECT_EQ(Metric("tranche_ledger_restored_entries"), "0");
  runtime.reset();
  std::filesystem::copy(folder_ / "volume", folder_ / "old");

  LoseVolume();
  Launch(config_);
  // What ended before the checkpoint is in it; what runs on is counted through.
  EXPECT_EQ(Used(), used);
  const Json budget = Get("/api/v1/budgets")["budgets"][0];
  EXPECT_NE(budget["restoredFrom"], nullptr) << budget.dump();
  const Json report = Get("/api/v1/ledger");
  EXPECT_EQ(report["total"], total) << report.dump();
  ASSERT_EQ(report["rows"].size(), 1U);
  EXPECT_GE(std::stod(report["rows"][0]["restoredGpuHours"].get<std::string>()), 8.02);
  EXPECT_LE(std::stod(report["rows"][0]["restoredGpuHours"].get<std::string>()), 8.05);
  ASSERT_FALSE(report["restored"].empty());
  EXPECT_EQ(report["restored"][0]["leaf"], "a");
  // Six GPUs for a quarter of an hour are more than the 12 hours have left beside what runs.
  Json refusal;
  const Json pod = MakePod("next", {{"nvidia.com/gpu", "6"}});
  Apply(pod);
  EXPECT_EQ(Schedule(pod, {"n"}, &refusal), "") << "the budget forgot what was used";
  EXPECT_THAT(refusal.dump(), HasSubstr("budget"));
  for (const auto& [kind, name] : {std::pair{"GPUBudget", "hours"}, std::pair{"GPUQuota", "a"}}) {
    const Json status = Await(
        kind, name, [](const Json& found) { return Condition(found, "status") == "True"; }, 1);
    EXPECT_EQ(Condition(status, "reason"), "FromCheckpoint");
  }
  const std::string entries = Metric("tranche_ledger_restored_entries");
  EXPECT_NE(entries, "0");
  EXPECT_NE(entries, "none");
  EXPECT_THAT(Verified(), HasSubstr("taken over from checkpoints"));
  std::ostringstream table;
  LedgerReportOptions asked;
  asked.span.path = config_.ledger;
  EXPECT_EQ(LedgerReport(asked, table, table), 0);
  EXPECT_THAT(table.str(), HasSubstr("RESTORED"));

  // The statuses still tell of the lost ledger, as after a crash before they could be written.
  runtime.reset();
  Launch(config_);
  EXPECT_EQ(Metric("tranche_ledger_restored_entries"), entries);
  EXPECT_NEAR(std::stod(Used()), std::stod(used), 0.05);
  EXPECT_NEAR(std::stod(Total()), std::stod(total), 0.05);
  EXPECT_NE(Get("/api/v1/budgets")["budgets"][0]["restoredFrom"], nullptr);

  // The second ledger's own checkpoint is written; then the first one is found again.
  for (const auto& [kind, name] : {std::pair{"GPUBudget", "hours"}, std::pair{"GPUQuota", "a"}}) {
    Await(
        kind, name, [&lost](const Json& found) { return found["checkpoint"]["ledger"] != lost; },
        1);
  }
  const std::string latest = Used();
  const std::string sum = Total();
  KeepObjects();
  runtime.reset();
  std::filesystem::remove_all(folder_ / "volume");
  std::filesystem::copy(folder_ / "old", folder_ / "volume");
  Launch(config_);
  EXPECT_NEAR(std::stod(Used()), std::stod(latest), 0.1);
  EXPECT_NEAR(std::stod(Total()), std::stod(sum), 0.1);
  EXPECT_LE(std::stod(Total()), std::stod(sum) + 0.001) << "something was counted twice";
  Verified();
}

TEST_F(LostLedger, WithoutACheckpointItBeginsAnew) {
  Run("ended", 4);
  Advance(7200);
  Delete("ended");
  Advance(60);
  KeepObjects();
  std::string text;
  {
    std::ifstream file(folder_ / "kept" / "GPUBudget");
    std::getline(file, text, '\0');
  }
  Json budgets = Json::parse(text);
  for (Json& item : budgets["items"]) item.erase("status");
  std::ofstream(folder_ / "kept" / "GPUBudget") << budgets.dump();
  LoseVolume();
  Launch(config_);
  EXPECT_EQ(Used(), "0.000");
  const Json pod = MakePod("next", {{"nvidia.com/gpu", "6"}});
  Apply(pod);
  EXPECT_EQ(Schedule(pod, {"n"}), "n");
}

TEST_F(LostLedger, ACheckpointThatCannotBeTrueIsRefusedInWords) {
  const std::pair<const char*, const char*> wrong[] = {
      {"compute", "-5"},
      {"compute", "99999999999999999999999999999999999999999999999"},
      {"end", "2020-01-01T00:00:00Z"},
  };
  Run("ended", 4);
  Advance(7200);
  Delete("ended");
  const std::string before = Advance(60);
  Await(
      "GPUBudget", "hours",
      [&](const Json& status) {
        return status.contains("checkpoint") && status["checkpoint"]["time"] >= before;
      },
      5);
  KeepObjects();
  std::string text;
  {
    std::ifstream file(folder_ / "kept" / "GPUBudget");
    std::getline(file, text, '\0');
  }
  for (const auto& [member, value] : wrong) {
    SCOPED_TRACE(value);
    Json budgets = Json::parse(text);
    budgets["items"][0]["status"]["checkpoint"]["parts"][0][member] = value;
    std::ofstream(folder_ / "kept" / "GPUBudget") << budgets.dump();
    LoseVolume();
    Launch(config_);
    EXPECT_EQ(Used(), "0.000");
    const Json status = Await(
        "GPUBudget", "hours",
        [](const Json& found) { return Condition(found, "status") == "False"; }, 1);
    EXPECT_EQ(Condition(status, "reason"), "CheckpointRefused");
    EXPECT_THAT(Condition(status, "message"), HasSubstr("status.checkpoint.parts[0]"));
    Verified();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
