// Our clock against the API server's.
#include "scheduler/kube/transport/server_clock.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using std::chrono::milliseconds;

constexpr std::chrono::sys_seconds kDate =
    std::chrono::sys_days(std::chrono::year(2026) / std::chrono::November / 23) +
    std::chrono::hours(16) + std::chrono::minutes(46) + std::chrono::seconds(5);

TEST(ServerClock, ReadsADateAsAnswersHaveIt) {
  struct Row {
    std::string text;
    std::optional<std::chrono::sys_seconds> date;
  };
  const Row rows[] = {
      {"Mon, 23 Nov 2026 16:46:05 GMT", kDate},
      {"Thu, 29 Feb 2024 00:00:00 GMT",
       std::chrono::sys_days(std::chrono::year(2024) / std::chrono::February / 29)},
      {"Thu, 01 Jan 1970 00:00:60 GMT", std::chrono::sys_seconds(std::chrono::seconds(60))},
      {"", {}},
      {"Mon, 23 Nov 2026 16:46:05 UTC", {}},
      {"Mon, 23 nov 2026 16:46:05 GMT", {}},
      {"Fri, 31 Dec 9999 23:59:59 GMT", {}},
      {"Wed, 31 Dec 1969 23:59:59 GMT", {}},
      {"Mon, -3 Nov 2026 16:46:05 GMT", {}},
      {"Mon, 23 Nov 2026 16:46: 5 GMT", {}},
      {"Mon, 23 Nov 2026 24:46:05 GMT", {}},
      {"Mon, 23 Nov 2026 16:60:05 GMT", {}},
      {"Mon, 31 Nov 2026 16:46:05 GMT", {}},
      {"Sunday, 06-Nov-94 08:49:37 GMT", {}},
      {"Mon, 23 Nov 2026 16:46:05 GMT ", {}},
  };
  for (const Row& row : rows) EXPECT_EQ(ParseDate(row.text), row.date) << row.text;
}

constexpr BootTime kBoot = std::chrono::hours(100);

// So many milliseconds after the Date by both our clocks, which agree with each other.
ServerClock::Moment After(int passed) {
  return {kDate + milliseconds(passed), kBoot + milliseconds(passed)};
}

TEST(ServerClock, TellsWhatTheClocksAreApartAtLeast) {
  struct Row {
    int asked;     // of our clock, milliseconds after the Date
    int answered;  // likewise
    int ahead;
  };
  const Row rows[] = {
      {0, 0, 0},
      {200, 900, 0},
      {-300, 300, 0},            // the answer took its time
      {-20'000, 400, 0},         // much of it
      {900, 1'100, 0},           // it was written in the same second
      {7'000, 7'200, 6'000},     // ahead
      {-8'200, -8'000, -8'000},  // behind
  };
  for (const Row& row : rows) {
    ServerClock clock;
    EXPECT_EQ(clock.AheadAt(After(0)), std::nullopt);
    clock.Note(After(row.asked).boot, After(row.answered), kDate);
    EXPECT_EQ(clock.AheadAt(After(9'999)), milliseconds(row.ahead))
        << row.asked << " to " << row.answered;
  }
}

TEST(ServerClock, AnswersThatAgreeTellMoreTogether) {
  struct Answer {
    int asked, answered;  // by our clock
    int date;             // seconds after kDate
  };
  struct Row {
    std::string what;
    std::vector<Answer> answers;
    int earliest, latest;  // of theirs when our clock says 10,000, milliseconds after kDate
  };
  // They are 2,300 ms behind us where nothing else is said.
  const Row rows[] = {
      {"one answer", {{2'400, 2'410, 0}}, 7'590, 8'600},
      {"and one late in its second", {{2'400, 2'410, 0}, {3'200, 3'210, 0}}, 7'590, 7'800},
      {"and one early", {{2'400, 2'410, 0}, {3'200, 3'210, 0}, {3'310, 3'320, 1}}, 7'680, 7'800},
      {"one that took long takes nothing back",
       {{3'200, 3'210, 0}, {4'000, 9'000, 3}},
       6'790,
       7'800},
      {"theirs was set", {{2'400, 2'410, 0}, {3'200, 3'210, 60}}, 66'790, 67'800},
      {"theirs was set, seen twice",
       {{2'400, 2'410, 0}, {3'200, 3'210, 60}, {3'310, 3'320, 61}},
       67'680,
       67'800},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    ServerClock clock;
    for (const Answer& answer : row.answers) {
      clock.Note(After(answer.asked).boot, After(answer.answered),
                 kDate + std::chrono::seconds(answer.date));
    }
    const std::optional<ClusterTime> theirs = clock.At(After(10'000).boot);
    ASSERT_TRUE(theirs);
    EXPECT_EQ(theirs->earliest, kDate + milliseconds(row.earliest));
    EXPECT_EQ(theirs->latest, kDate + milliseconds(row.latest));
  }
}

TEST(ServerClock, OldAnswersAreForgottenAsClocksDrift) {
  ServerClock clock;
  clock.Note(After(0).boot, After(0), kDate);
  for (int i = 0; i < 15; ++i) clock.Note(After(500).boot, After(500), kDate);
  EXPECT_EQ(clock.At(After(500).boot)->latest, kDate + milliseconds(1'000));
  EXPECT_EQ(clock.At(After(500).boot)->earliest, kDate + milliseconds(500));
  clock.Note(After(500).boot, After(500), kDate);
  EXPECT_EQ(clock.At(After(500).boot)->earliest, kDate);
}

// Nobody asks the server anew: the boot-time clock knows.
TEST(ServerClock, OurWallMaySet) {
  ServerClock clock;
  clock.Note(After(200).boot, After(210), kDate);
  ServerClock::Moment set = After(300);
  set.wall += std::chrono::minutes(5);
  const milliseconds ahead = *clock.AheadAt(set);
  EXPECT_GE(ahead, std::chrono::minutes(5) - milliseconds(1'000));
  EXPECT_LE(ahead, std::chrono::minutes(5));
}

TEST(ServerClock, HearsOfEveryAnswerOfTheServer) {
  fakes::ApiServer server;
  RecordingEvents events;
  Options options = PlainOptions(server.port());
  options.server_clock = std::make_shared<ServerClock>();
  Cluster cluster(options, events);
  cluster.Start();
  GetAndWait(cluster, {"team", "pod"}, PodUid("uid"));
  EXPECT_EQ(options.server_clock->ahead(), std::nullopt) << "an answer without a Date";
  server.OnNext("GET", "/api/v1/namespaces/team/pods/pod", [](const auto&, auto& exchange) {
    exchange.Answer(404, "{}", {{"Date", "Mon, 23 Nov 2020 16:46:05 GMT"}});
  });
  GetAndWait(cluster, {"team", "pod"}, PodUid("uid"));
  ASSERT_NE(options.server_clock->ahead(), std::nullopt);
  EXPECT_GT(*options.server_clock->ahead(), std::chrono::hours(24));
  cluster.Stop();
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
