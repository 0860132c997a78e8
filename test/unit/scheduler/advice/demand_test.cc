// What was asked for, hour by hour: each row is a stream of pods of one kind and what stays of it.
#include "scheduler/advice/demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Instant kMidnight{std::chrono::sys_days{std::chrono::year{2026} / 3 / 2}};
Instant Minute(int64_t minute) { return kMidnight + std::chrono::minutes(minute); }

DemandKind Kind(const std::string& workload_class) {
  DemandKind kind;
  kind.workload_class = workload_class;
  return kind;
}

struct Pod {
  int64_t began = 0;  // minutes
  std::optional<int64_t> placed;
  std::optional<int64_t> ended;
};

struct Stream {
  const char* sentence;
  std::vector<Pod> pods;
  int64_t read;  // minute
  int64_t now, waiting, peak, mean_milli, arrivals;
};

DemandLog Record(const std::vector<Pod>& pods, int64_t until) {
  DemandLog log;
  for (int64_t minute = 0; minute <= until; ++minute) {
    for (const Pod& pod : pods) {
      if (pod.ended == minute) log.Ended(Kind("a"), pod.placed.has_value(), Minute(minute));
    }
    for (const Pod& pod : pods) {
      if (pod.began == minute) log.Began(Kind("a"), Minute(minute));
      if (pod.placed == minute) log.Placed(Kind("a"), Minute(minute));
    }
  }
  return log;
}

TEST(DemandLog, KeepsWhatAStreamOfPodsWanted) {
  constexpr int64_t kDay = 24 * 60;
  constexpr int64_t kWeek = 7 * kDay;
  const Stream streams[] = {
      {"one pod waits", {{0, {}, {}}}, 30, 1, 1, 1, 1000, 1},
      {"it was placed", {{0, 10, {}}}, 30, 1, 0, 1, 1000, 1},
      {"half the hour", {{0, 0, 30}}, 60, 0, 0, 1, 500, 1},
      {"it ended waiting", {{0, {}, 15}}, 60, 0, 0, 1, 250, 1},
      {"two beside each other", {{0, 0, 40}, {20, 20, 60}}, 60, 0, 0, 2, 1333, 2},
      {"two after each other", {{0, 0, 30}, {30, 30, 60}}, 60, 0, 0, 1, 1000, 2},
      {"across the border of an hour", {{50, 50, 70}}, 70, 0, 0, 1, 1000, 1},
      {"up to the border", {{30, 30, 60}, {60, 60, 90}}, 90, 0, 0, 1, 1000, 2},
      {"over many quiet hours", {{0, 0, {}}}, kDay, 1, 0, 1, 1000, 1},
      {"the moment it begins", {{0, {}, {}}}, 0, 1, 1, 1, 1000, 1},
      {"a peak of days ago", {{0, 0, 60}, {0, 0, 60}, {0, 0, {}}}, kDay, 1, 0, 3, 1083, 3},
      {"a peak of last week is gone",
       {{0, 0, 30}, {0, 0, 30}, {0, 0, {}}},
       kWeek + 60,
       1,
       0,
       1,
       1000,
       0},
  };
  for (const Stream& stream : streams) {
    SCOPED_TRACE(stream.sentence);
    const DemandLog log = Record(stream.pods, stream.read);
    const std::vector<DemandRow> rows = log.Rows(Minute(stream.read));
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].now, stream.now);
    EXPECT_EQ(rows[0].waiting, stream.waiting);
    EXPECT_EQ(rows[0].peak, stream.peak);
    EXPECT_EQ(rows[0].mean_milli, stream.mean_milli);
    EXPECT_EQ(rows[0].arrivals, stream.arrivals);
    EXPECT_EQ(log.since(), Minute(stream.pods.front().began));
  }
}

TEST(DemandLog, ForgetsAKindAWeekAfterItsLastPod) {
  DemandLog log;
  EXPECT_EQ(log.since(), Instant());
  EXPECT_THAT(log.Rows(Minute(0)), IsEmpty());
  log.Began(Kind("a"), Minute(0));
  log.Ended(Kind("a"), false, Minute(10));
  EXPECT_EQ(log.Rows(Minute(10 + 167 * 60 - 11)).size(), 1u);
  EXPECT_THAT(log.Rows(Minute(168 * 60)), IsEmpty());
}

TEST(DemandLog, TellsKindsInOrderAndOverTheSpanOfAll) {
  DemandLog log;
  log.Began(Kind("b"), Minute(0));
  log.Began(Kind("a"), Minute(30));
  const std::vector<DemandRow> rows = log.Rows(Minute(60));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].kind, Kind("a"));
  EXPECT_EQ(rows[0].mean_milli, 500);
  EXPECT_EQ(rows[1].kind, Kind("b"));
  EXPECT_EQ(rows[1].mean_milli, 1000);
}

TEST(DemandLog, DropsTheKindThatIsIdleLongestAndNeverOneThatIsWanted) {
  DemandLog log;
  const auto kind = [](std::size_t i) { return Kind("class-" + std::to_string(1000 + i)); };
  for (std::size_t i = 0; i < DemandLog::kMostKinds; ++i) log.Began(kind(i), Minute(0));
  log.Began(Kind("late"), Minute(1));
  EXPECT_EQ(log.Rows(Minute(2)).size(), DemandLog::kMostKinds);
  log.Ended(Kind("late"), false, Minute(2));  // it was never recorded

  log.Ended(kind(7), false, Minute(4));
  log.Ended(kind(5), false, Minute(3));
  log.Ended(kind(9), false, Minute(5));
  log.Began(Kind("late"), Minute(6));
  std::vector<std::string> names;
  for (const DemandRow& row : log.Rows(Minute(6))) names.push_back(row.kind.workload_class);
  EXPECT_THAT(names, testing::Not(testing::Contains("class-1005")));
  EXPECT_THAT(names, testing::IsSupersetOf({"class-1007", "class-1009", "late"}));
}

TEST(DemandLog, NeverCountsBelowNothing) {
  DemandLog log;
  log.Ended(Kind("a"), true, Minute(0));
  EXPECT_THAT(log.Rows(Minute(0)), IsEmpty());
  log.Began(Kind("a"), Minute(1));
  log.Placed(Kind("a"), Minute(2));
  log.Placed(Kind("a"), Minute(3));
  log.Ended(Kind("a"), false, Minute(4));
  log.Ended(Kind("a"), false, Minute(5));
  const DemandRow row = log.Rows(Minute(6)).front();
  EXPECT_EQ(row.now, 0);
  EXPECT_EQ(row.waiting, 0);
}

// ---- what a pod's request says

Ask Share(int container, int64_t count, MemoryNeed memory, int64_t compute) {
  Ask ask;
  ask.container = container;
  ask.resource = Resource::kShare;
  ask.count = count;
  ask.memory = memory;
  ask.compute = MilliGpu::Of(compute);
  return ask;
}

Ask Plain(int container, Resource resource, int64_t count, const std::string& profile = "") {
  Ask ask;
  ask.container = container;
  ask.resource = resource;
  ask.count = count;
  ask.mig = {profile, false};
  return ask;
}

struct Said {
  std::string profile;
  int64_t devices, milli, mib;
};

TEST(KindsOf, SaysWhatOneAskWants) {
  using Need = MemoryNeed::Kind;
  Ask whole_share = Share(0, 1, {Need::kNone, 0}, 500);
  whole_share.exclusive = true;
  const std::vector<std::pair<Ask, Said>> cases = {
      {Plain(0, Resource::kGpu, 4), {"", 4, 1000, 0}},
      {Plain(0, Resource::kGpuShared, 1), {"", 1, 0, 0}},
      {Plain(0, Resource::kMig, 2, "1g.10gb"), {"1g.10gb", 2, 0, 0}},
      {Share(0, 1, {Need::kNone, 0}, 250), {"", 1, 250, 0}},
      {Share(0, 2, {Need::kMib, 8192}, 100), {"", 2, 100, 8192}},
      {Share(0, 1, {Need::kMib, 8192}, 0), {"", 1, 0, 8192}},
      {Share(0, 1, {Need::kMilliOfCard, 300}, 200), {"", 1, 300, 0}},
      {Share(0, 1, {Need::kPercentOfCard, 50}, 0), {"", 1, 500, 0}},
      {Share(0, 1, {Need::kWholeCard, 0}, 0), {"", 1, 1000, 0}},
      {whole_share, {"", 1, 1000, 0}},
  };
  for (const auto& [ask, said] : cases) {
    PodRequest request;
    request.containers = {{"main", ContainerRole::kApp, 0}};
    request.asks = {ask};
    request.models_any = {"h100", "h200"};
    const DemandKind expected{"training",   "h100,h200", said.profile,
                              said.devices, said.milli,  said.mib};
    EXPECT_THAT(KindsOf(request, "training"), ElementsAre(expected));
  }
}

TEST(KindsOf, CountsAsksOfOneSizeTogetherAsTheyRunTogether) {
  PodRequest request;
  request.containers = {{"prepare", ContainerRole::kInit, 0},
                        {"log", ContainerRole::kSidecar, 0},
                        {"fetch", ContainerRole::kInit, 0},
                        {"a", ContainerRole::kApp, 0},
                        {"b", ContainerRole::kApp, 0}};
  const auto devices = [&request](std::vector<int64_t> counts) {
    request.asks.clear();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) {
        request.asks.push_back(Plain(static_cast<int>(i), Resource::kGpu, counts[i]));
      }
    }
    return KindsOf(request, "").front().devices;
  };
  EXPECT_EQ(devices({0, 0, 0, 2, 3}), 5);
  EXPECT_EQ(devices({4, 0, 0, 2, 1}), 4);
  EXPECT_EQ(devices({4, 1, 0, 2, 1}), 4);
  EXPECT_EQ(devices({4, 1, 4, 2, 1}), 5);
  EXPECT_EQ(devices({0, 1, 1, 2, 1}), 4);
}

TEST(KindsOf, GivesAKindForEachSize) {
  PodRequest request;
  request.containers = {{"a", ContainerRole::kApp, 0}, {"b", ContainerRole::kApp, 0}};
  request.asks = {Plain(0, Resource::kMig, 1, "1g.10gb"), Plain(1, Resource::kMig, 1, "2g.20gb")};
  EXPECT_THAT(KindsOf(request, ""), ElementsAre(DemandKind{"", "", "1g.10gb", 1, 0, 0},
                                                DemandKind{"", "", "2g.20gb", 1, 0, 0}));
  EXPECT_THAT(KindsOf(PodRequest(), ""), IsEmpty());
}

// At a start the pods that are there still are told of by whoever finds them.
TEST(DemandLog, WhoWasThereArrivesWhenFound) {
  DemandLog log;
  log.WasThere(Kind("a"), Minute(0));
  log.Placed(Kind("a"), Minute(0));
  log.Began(Kind("a"), Minute(10));
  log.Placed(Kind("a"), Minute(10));
  log.Ended(Kind("a"), true, Minute(30));  // it came and went before
  log.Ended(Kind("a"), true, Minute(60));  // the records end here
  log.Began(Kind("a"), Minute(60));        // and it is found
  log.Placed(Kind("a"), Minute(60));
  const std::vector<DemandRow> rows = log.Rows(Minute(60));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].now, 1);
  EXPECT_EQ(rows[0].waiting, 0);
  EXPECT_EQ(rows[0].peak, 2);
  EXPECT_EQ(rows[0].mean_milli, 1333);
  EXPECT_EQ(rows[0].arrivals, 2);
}

}  // namespace THIS_FILE
}  // namespace tranche
