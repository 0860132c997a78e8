// What each caller sees, how often the API server is asked for it, and what becomes of it in time.
#include "scheduler/server/viewers/viewers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "test/unit/scheduler/server/viewers/tokens.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ViewersTest : public testing::Test {
 protected:
  ViewersTest() {
    reviews.users["all"] = {"ada", "1", {"staff"}, {}};
    reviews.users["prometheus"] = {"system:serviceaccount:monitoring:prometheus", "2", {}, {}};
    reviews.users["member"] = {"bob", "3", {}, {}};
    reviews.users["stranger"] = {"eve", "4", {}, {}};
    reviews.rights = {{"ada", "list gpuquotas"},
                      {"system:serviceaccount:monitoring:prometheus", "get /metrics"},
                      {"bob", "get gpuquotaviews team-a"}};
  }

  Viewers& viewers(int per_second = 2) {
    if (!made_) {
      Viewers::Clocks clocks;
      clocks.steady = [this] { return now; };
      clocks.wall = [this] {
        return std::chrono::system_clock::time_point(
            std::chrono::duration_cast<std::chrono::system_clock::duration>(
                now.time_since_epoch()));
      };
      made_ = std::make_unique<Viewers>(reviews, per_second, std::move(clocks));
    }
    return *made_;
  }
  // The status of a refusal, else 200; the last answer is in `known`.
  int Who(const std::string& token, Viewers::For what = Viewers::For::kApi) {
    int status = 0;
    viewers().Who("Bearer " + token, what, [&](Viewers::Answer answer) {
      status = answer.refusal ? answer.refusal->status : 200;
      refusal = answer.refusal.value_or(http::Response());
      known = std::move(answer.known);
    });
    return status;
  }
  std::set<std::string> Which(std::vector<std::string> namespaces) {
    std::set<std::string> found;
    viewers().Which(known.who, std::move(namespaces), [&](Viewers::Seen seen) {
      refusal = seen.refusal.value_or(http::Response());
      found = std::move(seen.namespaces);
    });
    return found;
  }

  FakeReviews reviews;
  Viewers::TimePoint now = Viewers::TimePoint(std::chrono::hours(1000));
  Viewers::Known known;
  http::Response refusal;

 private:
  std::unique_ptr<Viewers> made_;
};

TEST_F(ViewersTest, WhoSeesWhat) {
  const struct {
    const char* token;
    int status;
    bool everything, metrics;
    std::set<std::string> of_two;
  } rows[] = {
      {"all", 200, true, true, {}},
      {"prometheus", 200, false, true, {}},
      {"member", 200, false, false, {"team-a"}},
      {"stranger", 200, false, false, {}},
      {"nobody", 401, false, false, {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.token);
    EXPECT_EQ(Who(row.token, Viewers::For::kMetrics), row.status);
    EXPECT_EQ(known.everything, row.everything);
    EXPECT_EQ(known.metrics, row.metrics);
    if (row.status != 200) {
      EXPECT_EQ(refusal.headers["WWW-Authenticate"], "Bearer realm=\"kubernetes\"");
    } else if (!row.everything) {
      EXPECT_EQ(Which({"team-a", "team-b"}), row.of_two);
    }
  }
  Who("prometheus");
  EXPECT_THAT(known.likely, ElementsAre("monitoring"));
  Who("member");
  EXPECT_THAT(known.likely, ElementsAre("team-a"));
  EXPECT_FALSE(known.metrics) << "nobody asked for it";
}

TEST_F(ViewersTest, AnswersServeTheirTime) {
  Who("member");
  EXPECT_THAT(reviews.asked(), ElementsAre("token", "bob list gpuquotas"));
  Which({"team-a"});
  EXPECT_EQ(reviews.count(), 3U);
  now += seconds(59);
  EXPECT_EQ(Who("member"), 200);
  EXPECT_THAT(Which({"team-a"}), ElementsAre("team-a"));
  EXPECT_EQ(reviews.count(), 3U);
  reviews.rights.clear();
  now += seconds(1);
  EXPECT_EQ(Who("member"), 200);
  EXPECT_THAT(Which({"team-a"}), IsEmpty());
  EXPECT_EQ(reviews.count(), 6U);
  // The token is revoked.
  reviews.users.erase("member");
  now += seconds(59);
  EXPECT_EQ(Who("member"), 200);
  now += seconds(1);
  EXPECT_EQ(Who("member"), 401);
  EXPECT_EQ(reviews.count(), 7U);
  now += seconds(9);
  EXPECT_EQ(Who("member"), 401);
  EXPECT_EQ(reviews.count(), 7U);
  // And given back.
  reviews.users["member"] = {"bob", "3", {}, {}};
  now += seconds(1);
  EXPECT_EQ(Who("member"), 200);
}

TEST_F(ViewersTest, AnotherUserOfTheSameTokenHasNothingOfTheFirst) {
  Who("all");
  EXPECT_TRUE(known.everything);
  reviews.users["all"].groups = {"left"};
  reviews.rights.clear();
  now += seconds(60);
  // The right is asked for again though its minute may not be over.
  EXPECT_EQ(Who("all"), 200);
  EXPECT_FALSE(known.everything);
}

TEST_F(ViewersTest, ATokenEndsWhenItSays) {
  const auto epoch = std::chrono::duration_cast<seconds>(now.time_since_epoch()).count();
  const std::string token = Jwt("{\"exp\":" + std::to_string(epoch + 30) + "}");
  reviews.users[token] = {"ada", "1", {}, {}};
  EXPECT_EQ(Who(token), 200);
  const std::size_t asked = reviews.count();
  now += seconds(29);
  EXPECT_EQ(Who(token), 200);
  now += seconds(1);
  EXPECT_EQ(Who(token), 401);
  EXPECT_EQ(Who(Jwt("{\"exp\":1}")), 401);
  EXPECT_EQ(Who(Jwt("{\"exp\":1}") + "."), 401);
  EXPECT_EQ(Who(std::string(100'000, 'x')), 401);
  EXPECT_EQ(Who(""), 401);
  EXPECT_EQ(reviews.count(), asked) << "what is surely wrong is not asked about";
}

TEST_F(ViewersTest, OneReviewForAllWhoWait) {
  reviews.holds = true;
  int answered = 0;
  for (int i = 0; i < 100; ++i) {
    viewers().Who("Bearer member", Viewers::For::kApi, [&answered](const Viewers::Answer& answer) {
      answered += answer.refusal ? 0 : 1;
    });
  }
  EXPECT_EQ(reviews.count(), 1U);
  reviews.Answer();
  EXPECT_EQ(answered, 100);
  EXPECT_THAT(reviews.asked(), ElementsAre("token", "bob list gpuquotas"));
}

TEST_F(ViewersTest, OnlySoManyWait) {
  reviews.holds = true;
  std::map<int, int> statuses;
  for (std::size_t i = 0; i < Viewers::kMostWaiting + 5; ++i) {
    viewers().Who("Bearer member", Viewers::For::kApi, [&statuses](const Viewers::Answer& answer) {
      ++statuses[answer.refusal ? answer.refusal->status : 200];
    });
  }
  EXPECT_EQ(statuses[503], 5);
  reviews.Answer();
  EXPECT_EQ(statuses[200], static_cast<int>(Viewers::kMostWaiting));
}

TEST_F(ViewersTest, WithoutTheApiServerWhatIsKnownServesItsMinute) {
  Who("member");
  Which({"team-a"});
  reviews.away = true;
  EXPECT_EQ(Who("all"), 503);
  EXPECT_FALSE(refusal.headers["Retry-After"].empty());
  EXPECT_NE(refusal.body.find("\"error\""), std::string::npos);
  now += seconds(59);
  EXPECT_EQ(Who("member"), 200);
  EXPECT_THAT(Which({"team-a"}), ElementsAre("team-a"));
  // All that may be asked in a rush is used up: it serves no longer for that.
  for (int i = 0; i < 500; ++i) Who("token-" + std::to_string(i));
  now += seconds(1);
  EXPECT_EQ(Who("member"), 503);
  now += minutes(1);
  EXPECT_EQ(Who("member"), 503);
  reviews.away = false;
  EXPECT_EQ(Who("member"), 200);
}

TEST_F(ViewersTest, StrangersCannotMakeManyReviews) {
  EXPECT_EQ(Who("member"), 200);
  const std::size_t before = reviews.count();
  std::map<int, int> statuses;
  for (int second = 0; second < 100; ++second) {
    for (int i = 0; i < 100; ++i) {
      ++statuses[Who("hostile-" + std::to_string(second) + "-" + std::to_string(i))];
    }
    // A member is asked about again all the while, after its minute.
    ASSERT_EQ(Who("member"), 200) << second;
    now += seconds(1);
  }
  // Half the rush and two a second.
  EXPECT_LE(reviews.count() - before, 60U + 200U + 2U);
  EXPECT_EQ(statuses[401] + statuses[429], 10'000);
  EXPECT_GT(statuses[429], 9'700);
  for (int i = 0; i < 5; ++i) Who("more-" + std::to_string(i));
  EXPECT_EQ(Who("hostile"), 429);
  EXPECT_GE(std::stoi(refusal.headers["Retry-After"]), 1);
  const auto asked = reviews.asked();
  EXPECT_GE(std::ranges::count(asked, "bob list gpuquotas"), 2);
}

TEST_F(ViewersTest, OneMemberCannotUseUpWhatIsForAll) {
  EXPECT_EQ(Who("member"), 200);
  const Viewers::Known member = known;
  for (int i = 0; i < 200; ++i) Which({"made-up-" + std::to_string(i)});
  EXPECT_EQ(refusal.status, 429);
  EXPECT_LE(reviews.count(), 2U + 60U);
  now += seconds(60);
  known = member;
  EXPECT_EQ(Who("member"), 200);
  EXPECT_EQ(Which({"team-a"}), std::set<std::string>{"team-a"});
}

TEST_F(ViewersTest, AThousandMembersAreTwoReviewsASecond) {
  constexpr int kMembers = 1'000;
  for (int i = 0; i < kMembers; ++i) {
    const std::string name = "member-" + std::to_string(i);
    reviews.users[name] = {name, name, {}, {}};
    reviews.rights.insert({name, "get gpuquotaviews team-a"});
  }
  std::mt19937 random(7);
  std::vector<int> order(kMembers);
  std::iota(order.begin(), order.end(), 0);
  std::map<int, int> statuses;
  // Everybody asks every twenty seconds.
  const auto live = [&](minutes time) {
    statuses.clear();
    for (const auto end = now + time; now < end; now += seconds(20)) {
      std::ranges::shuffle(order, random);
      for (const int i : order) {
        const int status = Who("member-" + std::to_string(i));
        if (status != 200) {
          ++statuses[status];
          continue;
        }
        Which({"team-a"});
        ++statuses[refusal.status];
      }
    }
  };
  live(minutes(60));
  const std::size_t before = reviews.count();
  live(minutes(60));
  EXPECT_LE(reviews.count() - before, 2U * 3'600U + 120U);
  EXPECT_EQ(statuses[200], kMembers * 180) << statuses[429] << " were told to come back";
}

TEST_F(ViewersTest, MemoryIsBounded) {
  // Many more than are kept, over a long time; the newest is known still, the oldest is not.
  const auto count = static_cast<int>(Viewers::kMostMembers) + 10;
  for (int i = 0; i < count; ++i) {
    const std::string name = "m" + std::to_string(i);
    reviews.users[name] = {name, name, {}, {}};
    ASSERT_EQ(Who(name), 200);
    now += seconds(2);
  }
  const std::size_t before = reviews.count();
  EXPECT_EQ(Who("m" + std::to_string(count - 1)), 200);
  EXPECT_EQ(reviews.count(), before);
  EXPECT_EQ(Who("m0"), 200);
  EXPECT_EQ(reviews.count(), before + 2);
  // Namespaces of one: those beyond are asked for again, and every question ends.
  EXPECT_EQ(Who("member"), 200);
  std::vector<std::string> many;
  for (int i = 0; i < 200; ++i) many.push_back("n" + std::to_string(i));
  many.front() = "team-a";
  EXPECT_THAT(Which(many), ElementsAre("team-a"));
}

TEST_F(ViewersTest, TokensAreInNoLog) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  spdlog::default_logger()->set_level(spdlog::level::trace);
  const std::string secret = Jwt(R"({"sub":"SECRET"})");
  reviews.away = true;
  Who(secret);
  reviews.away = false;
  Who(secret);
  Who(secret + "!");
  spdlog::set_default_logger(before);
  EXPECT_THAT(log.str(), testing::HasSubstr("pages.auth")) << "the log was heard";
  EXPECT_THAT(log.str(), testing::Not(testing::HasSubstr(secret.substr(0, 12))));
  EXPECT_THAT(refusal.body, testing::Not(testing::HasSubstr(secret.substr(0, 12))));
}

}  // namespace THIS_FILE
}  // namespace tranche
