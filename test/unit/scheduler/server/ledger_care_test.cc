// A server whose ledger cannot be taken up: it starts, places pods as the policy says, and tells.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "scheduler/ledger/sqlite_ledger.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

using ::testing::HasSubstr;

class LedgerCareTest : public LiveServer {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    config_.ledger = folder_ / "ledger.db";
  }
  void TearDown() override {
    LiveServer::TearDown();
    std::filesystem::remove_all(folder_);
  }

  // One team with a quota, one namespace without.
  void Fill() {
    for (const char* object : {R"({"apiVersion": "v1", "kind": "Namespace",
              "metadata": {"name": "team-a", "labels": {"team": "a"}}})",
                               R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUQuota",
              "metadata": {"name": "a", "uid": "uid-a"},
              "spec": {"namespaceSelector": {"matchLabels": {"team": "a"}},
                       "lines": [{"model": "h100", "nominal": {"gpus": 8}}]}})"}) {
      Apply(Json::parse(object));
    }
    Apply(MakeNode("n", 8));
  }
  std::string PlaceIn(const std::string& ns, const std::string& name) {
    Json pod = MakePod(name, {{"nvidia.com/gpu", "1"}});
    pod["metadata"]["namespace"] = ns;
    Apply(pod);
    return Schedule(pod, {"n"});
  }
  bool Exports(const std::string& line) {
    return ("\n" + Call("GET", "/metrics").body).find("\n" + line + "\n") != std::string::npos;
  }

  ServeConfig config_;
  std::filesystem::path folder_;
};

TEST_F(LedgerCareTest, WhateverIsWrongWithTheFilePlacementGoesOnAndItIsTold) {
  struct Case {
    const char* name;
    std::function<void(const std::string& path)> damage;
  };
  const Case cases[] = {
      {"no database",
       [](const std::string& path) { std::ofstream(path) << std::string(9'000, 'x'); }},
      {"gone", [](const std::string& path) { std::filesystem::remove(path); }},
      {"empty", [](const std::string& path) { std::filesystem::resize_file(path, 0); }},
      {"cut", [](const std::string& path) { std::filesystem::resize_file(path, 8'192); }},
      {"older",
       [](const std::string& path) {
         std::ofstream(path + ".head") << "9 " << std::string(64, '0') << '\n';
       }},
  };
  for (const Case& c : cases) {
    for (const LedgerFailure failure : {LedgerFailure::kClosed, LedgerFailure::kOpen}) {
      SCOPED_TRACE(c.name);
      std::filesystem::remove_all(folder_);
      std::filesystem::create_directories(folder_);
      config_.ledger_failure = failure;
      Launch(config_);
      Fill();
      EXPECT_EQ(PlaceIn("team-a", "before"), "n");
      EXPECT_EQ(Call("GET", "/readyz").body, "ok");
      EXPECT_TRUE(Exports("tranche_ledger_faults{kind=\"unopened\"} 0"));
      runtime.reset();
      c.damage(config_.ledger);
      Launch(config_);
      Fill();
      EXPECT_EQ(PlaceIn("other", "free"), "n");
      EXPECT_EQ(PlaceIn("team-a", "counted"), failure == LedgerFailure::kOpen ? "n" : "");
      const kube::SingleAnswer ready = Call("GET", "/readyz");
      EXPECT_EQ(ready.status, 200);
      EXPECT_THAT(ready.body, HasSubstr("unopened"));
      EXPECT_TRUE(Exports("tranche_ledger_writable 0"));
      EXPECT_TRUE(Exports("tranche_ledger_faults{kind=\"unopened\"} 1"));
      runtime.reset();
    }
  }
}

TEST_F(LedgerCareTest, AWrongPathOrAnotherProcessEndsTheStart) {
  const auto start = [](const ServeConfig& config) {
    ServeConfig own = config;
    own.port = 0;
    own.manual_clock = true;
    return Runtime(own).Start();
  };
  ServeConfig folder = config_;
  folder.ledger = folder_;
  EXPECT_TRUE(absl::IsInvalidArgument(start(folder))) << start(folder);
  ServeConfig nowhere = config_;
  nowhere.ledger = folder_ / "none" / "ledger.db";
  EXPECT_TRUE(absl::IsNotFound(start(nowhere))) << start(nowhere);
  ledger::Options options;
  options.path = config_.ledger;
  const auto other = ledger::SqliteLedger::Open(options);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(start(config_))) << start(config_);
}

}  // namespace THIS_FILE
}  // namespace tranche
