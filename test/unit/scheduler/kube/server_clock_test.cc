// Our clock against the API server's.
#include "scheduler/kube/transport/server_clock.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

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
    EXPECT_EQ(clock.ahead(), std::nullopt);
    clock.Note(kDate + milliseconds(row.asked), kDate + milliseconds(row.answered), kDate);
    EXPECT_EQ(clock.ahead(), milliseconds(row.ahead)) << row.asked << " to " << row.answered;
  }
}

TEST(ServerClock, LearnsNothingWhileOursIsSetBack) {
  ServerClock clock;
  clock.Note(kDate + std::chrono::seconds(8), kDate, kDate);
  EXPECT_EQ(clock.ahead(), std::nullopt);
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
