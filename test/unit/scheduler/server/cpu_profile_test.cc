// GET /api/v1/profile: the form that pprof reads, and where the stacks point.
#include "scheduler/server/cpu_profile.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

namespace tranche {
namespace THIS_FILE {

using ::testing::HasSubstr;

std::atomic<bool> enough = false;

// Computes where a profile has to find it.
__attribute__((noinline)) uint64_t Burn() {
  uint64_t sum = 1;
  while (!enough) {
    for (int i = 0; i < 1000; ++i) sum = sum * 6364136223846793005ULL + static_cast<uint64_t>(i);
  }
  return sum;
}

http::Request Asking(const char* seconds, const char* method = "GET") {
  http::Request request;
  request.method = method;
  request.path = "/api/v1/profile";
  if (*seconds != '\0') request.query["seconds"] = seconds;
  return request;
}

std::future<http::Response> Ask(CpuProfile& profile, const http::Request& request) {
  const auto answer = std::make_shared<std::promise<http::Response>>();
  profile.Answer(request,
                 [answer](http::Response response) { answer->set_value(std::move(response)); });
  return answer->get_future();
}

std::vector<uint64_t> WordsOf(const std::string& text) {
  std::vector<uint64_t> words(text.size() / sizeof(uint64_t));
  std::memcpy(words.data(), text.data(), words.size() * sizeof(uint64_t));
  return words;
}

TEST(CpuProfileTest, SaysWhichFunctionsCompute) {
  enough = false;
  std::thread burner([] { Burn(); });
  CpuProfile profile;
  const http::Response answer = Ask(profile, Asking("1")).get();
  enough = true;
  burner.join();
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.content_type, "application/octet-stream");
  const std::vector<uint64_t> words = WordsOf(answer.body);
  ASSERT_GT(words.size(), 8U);
  EXPECT_EQ(std::vector<uint64_t>(words.begin(), words.begin() + 5),
            (std::vector<uint64_t>{0, 3, 0, 10'000, 0}));
  uint64_t samples = 0;
  uint64_t burning = 0;
  std::size_t at = 5;
  const auto start = reinterpret_cast<uint64_t>(&Burn);
  while (words[at] != 0) {
    const uint64_t count = words[at];
    const uint64_t depth = words[at + 1];
    ASSERT_GT(depth, 0U);
    ASSERT_LT(at + 2 + depth, words.size());
    samples += count;
    const uint64_t leaf = words[at + 2];
    if (leaf >= start && leaf < start + 256) burning += count;
    at += 2 + depth;
  }
  EXPECT_EQ(words[at + 1], 1U) << "the end of the stacks";
  EXPECT_EQ(words[at + 2], 0U);
  EXPECT_GT(samples, 0U);
  EXPECT_GT(burning * 2, samples) << burning << " of " << samples;
  EXPECT_THAT(answer.body.substr((at + 3) * sizeof(uint64_t)), HasSubstr(" r-xp "));
}

TEST(CpuProfileTest, RefusesWhatItCannotDo) {
  CpuProfile profile;
  for (const char* const seconds : {"0", "61", "-1", "ten", "100"}) {
    const http::Response answer = Ask(profile, Asking(seconds)).get();
    EXPECT_EQ(answer.status, 400) << seconds;
    EXPECT_THAT(answer.body, HasSubstr("seconds: expected a number from 1 to 60, found"));
  }
  EXPECT_EQ(Ask(profile, Asking("", "POST")).get().status, 405);
}

TEST(CpuProfileTest, OneAtATimeUntilItIsStopped) {
  CpuProfile profile;
  std::future<http::Response> first = Ask(profile, Asking("60"));
  const http::Response second = Ask(profile, Asking("1")).get();
  EXPECT_EQ(second.status, 503);
  EXPECT_EQ(second.headers.at("Retry-After"), "60");
  profile.Stop();
  EXPECT_EQ(first.get().status, 200) << "with what it has";
  EXPECT_EQ(Ask(profile, Asking("1")).get().status, 503) << "the process is being stopped";
  CpuProfile again;
  EXPECT_EQ(Ask(again, Asking("1")).get().status, 200);
  EXPECT_EQ(Ask(again, Asking("1")).get().status, 200);
}

}  // namespace THIS_FILE
}  // namespace tranche
