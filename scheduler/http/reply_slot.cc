#include "scheduler/http/reply_slot.h"

#include <utility>

#include "scheduler/http/session.h"

namespace tranche::http {

ReplySlot::ReplySlot(std::shared_ptr<Gate> gate, std::weak_ptr<Session> session)
    : gate_(std::move(gate)), session_(std::move(session)) {}

ReplySlot::~ReplySlot() {
  if (!answered_.exchange(true)) {
    Deliver(Response{500, "text/plain; charset=utf-8", "the request was dropped unanswered", {}},
            AnswerBy::kServer);
  }
}

void ReplySlot::Answer(Response response) {
  if (!answered_.exchange(true)) Deliver(std::move(response), AnswerBy::kHandler);
}

void ReplySlot::Deliver(Response response, AnswerBy by) {
  // The session is let go before the gate is: its end touches the I/O context too.
  const absl::ReaderMutexLock lock(&gate_->mutex);
  if (!gate_->open) return;
  if (const std::shared_ptr<Session> session = session_.lock()) {
    session->Answer(std::move(response), by);
  }
}

}  // namespace tranche::http
