// The one answer a request is owed, behind the Responder that a handler was given.
//
// A Responder may be called from any thread, also when its connection or the whole server is gone:
// the gate says whether the server's I/O context may still be touched. Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/http/server.h"

namespace tranche::http {

class Session;

struct Gate {
  absl::Mutex mutex;
  bool open ABSL_GUARDED_BY(mutex) = true;  // closed once the server's threads have ended
};

// The handler dropped its Responder when the server had to make the answer up.
enum class AnswerBy : uint8_t { kHandler, kServer };

class ReplySlot {
 public:
  ReplySlot(std::shared_ptr<Gate> gate, std::weak_ptr<Session> session);
  // Answers 500 when nobody has answered.
  ~ReplySlot();
  ReplySlot(const ReplySlot&) = delete;
  ReplySlot& operator=(const ReplySlot&) = delete;

  // The first call answers; later ones do nothing.
  void Answer(Response response);

 private:
  void Deliver(Response response, AnswerBy by);

  std::shared_ptr<Gate> gate_;
  std::weak_ptr<Session> session_;
  std::atomic<bool> answered_{false};
};

}  // namespace tranche::http
