#include "scheduler/server/question_desk.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace tranche {
namespace THIS_FILE {

http::Request For(const char* path) {
  http::Request request;
  request.method = "GET";
  request.path = path;
  return request;
}

TEST(QuestionDeskTest, AQuestionThatFailsStopsNoOther) {
  Router router;
  router.AddAnswer("GET", "/fails", [](const http::Request&) -> http::Response {
    throw std::out_of_range("no such pod");
  });
  router.AddAnswer("GET", "/works", [](const http::Request&) { return JsonResponse("{}"); });
  QuestionDesk desk;
  std::atomic<int> answered = 0;
  const auto count = [&answered](const http::Response&) { ++answered; };
  desk.Ask(router, For("/fails"), count);
  desk.Ask(router, For("/works"), count);
  desk.Join();
  EXPECT_EQ(answered, 1) << "the server answers 500 for what is dropped";
}

TEST(QuestionDeskTest, WhoComesToAFullDeskIsToldSoAtOnce) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  Router router;
  router.AddAnswer("GET", "/slow", [gone](const http::Request&) {
    gone.wait();
    return JsonResponse("{}");
  });
  QuestionDesk desk;
  std::atomic<int> answered = 0;
  std::atomic<int> refused = 0;
  const auto ask = [&] {
    desk.Ask(router, For("/slow"), [&](const http::Response& response) {
      ++(response.status == 503 ? refused : answered);
      EXPECT_EQ(response.headers.contains("Retry-After"), response.status == 503);
    });
  };
  for (int i = 0; i < QuestionDesk::kMostWaiting; ++i) ask();
  EXPECT_EQ(refused, 0);
  ask();
  EXPECT_EQ(refused, 1);
  go.set_value();
  desk.Join();
  EXPECT_EQ(answered, QuestionDesk::kMostWaiting);
}

}  // namespace THIS_FILE
}  // namespace tranche
