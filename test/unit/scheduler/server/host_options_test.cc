// What a leader that begins reads of what the ledger recorded before.
#include "scheduler/server/host_options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche {
namespace THIS_FILE {

using ledger::Minute;
using testing::ElementsAre;
using testing::IsEmpty;

class RememberTest : public ledger::LedgerTest {
 protected:
  RememberTest() {
    config_.ledger = options_.path;
    config_.use.prometheus = "http://prometheus";
  }
  static std::string PodText(int gpus, const std::string& priority_class = "") {
    constexpr const char* kPod =
        R"({{"metadata":{{"name":"p","namespace":"a","uid":"u"}},"spec":{{)"
        R"("priorityClassName":"{}","containers":[{{"name":"main","resources":{{)"
        R"("limits":{{"nvidia.com/gpu":"{}"}}}}}}]}}}})";
    return fmt::format(kPod, priority_class, gpus);
  }
  static PastPod Pod(const std::string& uid, int64_t came, std::string text) {
    PastPod pod;
    pod.uid = PodUid(uid);
    pod.name = {"a", uid};
    pod.created = Minute(came);
    pod.object = std::move(text);
    return pod;
  }
  static PastPod Ran(const std::string& uid, std::optional<int64_t> started,
                     std::optional<int64_t> ended) {
    PastPod pod;
    pod.uid = PodUid(uid);
    pod.node = NodeName("n");
    if (started) pod.started = Minute(*started);
    if (ended) pod.ended = Minute(*ended);
    pod.how = ended ? PastEnd::kByItself : PastEnd::kNot;
    return pod;
  }
  void Write(PastNews news) {
    auto file = MustOpen();
    file->NotePast(std::move(news));
    EXPECT_TRUE(Committed(*file)) << file->health().problem;
  }
  // "2 GPUs of training 0-5-9", minutes; "?" where there is none.
  std::vector<std::string> Asked(int64_t now) {
    const auto minute = [](const std::optional<Instant>& at) {
      return at ? std::to_string((*at - Minute(0)) / std::chrono::minutes(1)) : "?";
    };
    std::vector<std::string> lines;
    for (const AskedBefore& pod : Remember(config_, Minute(now)).asked) {
      lines.push_back(fmt::format("{} GPUs of {} {}-{}-{}", pod.request->asks.at(0).count,
                                  pod.workload_class, minute(pod.created), minute(pod.placed),
                                  minute(pod.ended)));
    }
    return lines;
  }

  ServeConfig config_;
};

TEST_F(RememberTest, PodsThatCameWithTheirClasses) {
  PastNews news;
  news.at = Minute(20);
  news.pods = {
      Pod("a", 0, PodText(2, "urgent")), Pod("b", 1, PodText(4)), Pod("c", 2, PodText(2, "urgent")),
      Pod("odd", 3, "no JSON"),          Ran("a", 5, 9),          Ran("b", {}, {})};
  news.changes = {{Minute(0), "GPUClass", "training",
                   R"({"metadata":{"name":"training"},"spec":{"priorityClassNames":["urgent"]}})"}};
  news.rest = PastNews::Rest{{PodUid("b"), PodUid("c"), PodUid("odd")}, {{"GPUClass", "training"}}};
  Write(std::move(news));
  EXPECT_THAT(Asked(20), ElementsAre("2 GPUs of training 0-5-9", "4 GPUs of  1-1-?",
                                     "2 GPUs of training 2-?-?"));
  EXPECT_THAT(Asked(20 + 7 * 24 * 60), ElementsAre("4 GPUs of  1-1-?", "2 GPUs of training 2-?-?"))
      << "of what ended, the last week";
  config_.past_days = 0;
  EXPECT_THAT(Asked(20), IsEmpty());
}

TEST_F(RememberTest, WhatRunningPodsDidWhereUseIsRead) {
  PastNews news;
  news.at = Minute(20);
  news.work = {{PodUid("a"), {3, {{"G1", 500, std::nullopt}}}}};
  news.rest.emplace();
  const std::vector<PodWork> work = news.work;
  Write(std::move(news));
  EXPECT_EQ(Remember(config_, Minute(20)).work, work);
  config_.use.prometheus = "";
  EXPECT_THAT(Remember(config_, Minute(20)).work, IsEmpty());
}

TEST_F(RememberTest, AFileThatIsNotThereIsNothing) {
  EXPECT_THAT(Remember(config_, Minute(0)).asked, IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
