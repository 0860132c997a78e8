// tranche replay: what it prints of a file, and how it ends.
#include "scheduler/cli/replay/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

#include "scheduler/cli/output/json.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::replay {
namespace THIS_FILE {

using ledger::Minute;
using ::testing::HasSubstr;

// One node of eight GPUs, at two dollars an hour. Team a has eight, team b none of its own.
// 10:01 b's job of eight GPUs comes and borrows; 10:21 a's job comes, b's is evicted and made anew;
// a's runs from 10:22 to 11:22, b's then from 11:23 for an hour.
class ReplayCommandTest : public ledger::LedgerTest {
 protected:
  void SetUp() override {
    const auto ledger = MustOpen();
    PastNews news{Minute(0), {}, {}, PastNews::Rest()};
    const auto says = [&news](const char* kind, const std::string& name, std::string object) {
      news.changes.push_back({Minute(0), kind, name, std::move(object)});
      news.rest->objects.emplace_back(kind, name);
    };
    says("GPUClass", "train",
         R"({"metadata":{"name":"train"},"spec":{"priorityClassNames":["train"],"rank":2}})");
    says("GPUPrice", "all",
         R"({"metadata":{"name":"all"},"spec":{"perGpuHour":"2","currency":"USD"}})");
    says("GPUQuota", "org", R"({"metadata":{"name":"org"},"spec":{}})");
    says("GPUQuota", "team-a", Quota("a", 8));
    says("GPUQuota", "team-b", Quota("b", 0));
    says("Namespace", "a", R"({"metadata":{"name":"a"}})");
    says("Namespace", "b", R"({"metadata":{"name":"b"}})");
    says("Node", "n1", kNode);
    says("PriorityClass", "train", R"({"metadata":{"name":"train"},"value":10})");
    std::ranges::sort(news.rest->objects);
    news.pods = {Pod("b-1", "b", 1),  Ran("b-1", 1, 22, PastEnd::kDisrupted),
                 Pod("b-2", "b", 21), Ran("b-2", 83, 143),
                 Pod("a-1", "a", 21), Ran("a-1", 22, 82)};
    ledger->NotePast(std::move(news));
    ledger->Heartbeat(Minute(180), {});
    EXPECT_TRUE(Committed(*ledger)) << ledger->health().problem;
    options_of_replay_.path = options_.path;
  }

  static std::string Quota(const std::string& ns, int gpus) {
    return fmt::format(
        R"({{"kind":"GPUQuota","metadata":{{"name":"team-{0}"}},"spec":{{"parent":"org",
        "namespaceSelector":{{"matchLabels":{{"kubernetes.io/metadata.name":"{0}"}}}},
        "lines":[{{"model":"h100","nominal":{{"gpus":{1}}}}}]}}}})",
        ns, gpus);
  }
  static PastPod Pod(const std::string& uid, const std::string& ns, int64_t created) {
    PastPod pod;
    pod.uid = PodUid(uid);
    pod.name = {ns, uid};
    pod.owner = "job-of-" + ns;
    pod.created = Minute(created);
    pod.object = R"({"metadata":{"name":"pod"},"spec":{"priority":10,"priorityClassName":"train",
        "containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"8"}}}]}})";
    return pod;
  }
  static PastPod Ran(const std::string& uid, int64_t from, int64_t until,
                     PastEnd how = PastEnd::kByItself) {
    PastPod pod;
    pod.uid = PodUid(uid);
    pod.node = NodeName("n1");
    pod.started = Minute(from);
    pod.ended = Minute(until);
    pod.how = how;
    return pod;
  }
  int Run() {
    out_.str("");
    err_.str("");
    return Replay(options_of_replay_, out_, err_);
  }
  Json Answer() {
    options_of_replay_.json = true;
    EXPECT_EQ(Run(), 0) << err_.str();
    return Json::parse(out_.str());
  }

  static constexpr const char* kNode =
      R"({"kind":"Node","metadata":{"name":"n1","labels":{
      "nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/gpu.count":"8",
      "nvidia.com/gpu.memory":"81559"}},"status":{"allocatable":{"nvidia.com/gpu":"8"},
      "capacity":{"nvidia.com/gpu":"8"}}})";
  ReplayOptions options_of_replay_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(ReplayCommandTest, WhatHappenedAndWhatHappensAgain) {
  EXPECT_EQ(Run(), 0) << err_.str();
  EXPECT_EQ(out_.str(),
            "2026-03-01T10:00:00Z to 2026-03-01T13:00:00Z\n"
            "\n"
            "                   HAPPENED  REPLAYED\n"
            "pods that came     2         2\n"
            "started            2         2\n"
            "wait, mean         30 s      15 s\n"
            "wait, median       0 s       0 s\n"
            "wait, 90 %         0 s       0 s\n"
            "evictions          1         1\n"
            "GPU-hours lost     2.8       2.7\n"
            "GPU-hours held     18.8      18.7\n"
            "GPU-hours offered  24.0      24.0\n"
            "cost of use, USD   37.60     37.47\n"
            "\n"
            "TEAM    HAPPENED: GPU-HOURS  WAIT  EVICTED    USD  REPLAYED: GPU-HOURS  WAIT  EVICTED"
            "    USD\n"
            "team-a                  8.0  60 s        0  16.00                  8.0  30 s        0"
            "  16.00\n"
            "team-b                 10.8  0 s         1  21.60                 10.7  0 s         1"
            "  21.47\n"
            "\n"
            "lived again without edits, 2 of 2 pods start within a minute of when they did, 2 on "
            "the same node\n");
}

TEST_F(ReplayCommandTest, WithASecondNodeAndAQuotaForItNobodyIsEvicted) {
  std::string second = kNode;
  second.replace(second.find("\"n1\""), 4, "\"n2\"");
  options_of_replay_.edits =
      fmt::format(R"({{"objects":[{},{}]}})", second, Quota("b", 8));
  const Json answer = Answer();
  EXPECT_EQ(answer.at("happened").at("evictions"), 1);
  EXPECT_EQ(answer.at("replayed").at("evictions"), 1);
  EXPECT_EQ(answer.at("edited").at("evictions"), 0);
  EXPECT_EQ(answer.at("edited").at("offeredGpuHours"), "48.000");
  EXPECT_EQ(answer.at("edited").at("gpuHours"), "16.000");
  EXPECT_EQ(answer.at("edited").at("waitMeanSeconds"), 0);
  EXPECT_EQ(answer.at("edited").at("cost"), "32.00");
}

TEST_F(ReplayCommandTest, WithAnotherQuotaOthersWait) {
  options_of_replay_.edits = fmt::format(
      R"({{"objects":[{}],"delete":[{{"kind":"GPUPrice","name":"all"}}]}})", Quota("b", 8));
  const Json answer = Answer();
  EXPECT_EQ(answer.at("edited").at("evictions"), 0) << "it is b's own now";
  EXPECT_EQ(answer.at("edited").at("cost"), nullptr);
  EXPECT_EQ(answer.at("teams").at(0).at("team"), "team-a");
  EXPECT_EQ(answer.at("teams").at(0).at("edited").at("waitMeanSeconds"), 40 * 60);
}

TEST_F(ReplayCommandTest, BadQuestionsAreAnsweredInOneLine) {
  const auto expect = [this](const char* what) {
    EXPECT_EQ(Run(), 2);
    EXPECT_THAT(err_.str(), HasSubstr(what));
    options_of_replay_ = {};
    options_of_replay_.path = options_.path;
  };
  options_of_replay_.since = "soon";
  expect("--since: expected a time of RFC 3339, or how long ago as 30d or 12h, found \"soon\"");
  options_of_replay_.until = "now";
  expect("--until: expected a time of RFC 3339, found \"now\"");
  options_of_replay_.until = "2020-01-01T00:00:00Z";
  expect("expected a span in which something was recorded");
  options_of_replay_.strategy = "Best";
  expect("--strategy: expected Fragmentation, BestFit or Spread");
  options_of_replay_.edits = R"({"objects":[{"kind":"Pod","metadata":{"name":"p"}}]})";
  expect("objects[0].kind: expected GPUQuota");
  options_of_replay_.edits = fmt::format(R"({{"objects":[{}]}})", Quota("c", -1));
  expect("GPUQuota team-c would not be in force");
  options_of_replay_.path = "/nowhere";
  expect("expected a ledger, found no file /nowhere");
}

TEST_F(ReplayCommandTest, AFileWithoutAPastSaysHowToGetOne) {
  options_.path += "-empty";
  MustOpen();
  options_of_replay_.path = options_.path;
  EXPECT_EQ(Run(), 2);
  EXPECT_THAT(err_.str(), HasSubstr("found nothing (ledger.pastDays)"));
}

TEST_F(ReplayCommandTest, ATextThatCannotBeReadIsTheLedgersFault) {
  Sql("UPDATE past_text SET text = '{' WHERE text LIKE '%priorityClassName%main%'");
  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("as the ledger recorded it"));
}

}  // namespace THIS_FILE
}  // namespace tranche::replay
