#include "scheduler/server/question_desk.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "scheduler/server/log.h"

namespace tranche {

void QuestionDesk::Ask(const Router& router, http::Request request, http::Responder respond) {
  Do(std::move(request), std::move(respond),
     [&router](http::Request asked, http::Responder answer) {
       router.Route(std::move(asked), std::move(answer));
     });
}

void QuestionDesk::Do(http::Request request, http::Responder respond, Work work) {
  if (++waiting_ > kMostWaiting) {
    --waiting_;
    http::Response busy = ErrorResponse(503, "too many questions are waiting, ask again later");
    busy.headers["Retry-After"] = "2";
    return respond(std::move(busy));
  }
  boost::asio::post(pool_, [this, work = std::move(work), asked = std::move(request),
                            answer = std::move(respond)]() mutable {
    const std::string path = asked.path;
    // What is dropped unanswered answers 500 by itself.
    Guarded(path, [&] { work(std::move(asked), std::move(answer)); });
    --waiting_;
  });
}

}  // namespace tranche
