// How many bytes may be in memory at one time for something that peers make us keep: bodies that
// are being read, answers that are being sent. A budget is shared by connections, also of several
// servers, so that their number does not multiply what the process needs.
//
// Thread rule: any thread. A budget outlives what holds of it. Cost: one uncontended lock.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tranche::http {

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t most) : most_(most) {}

  // False: they are too many now. What is larger than the whole budget goes as long as nothing else
  // holds of it, so that no size is refused for ever.
  bool Take(std::size_t bytes);
  void Give(std::size_t bytes);
  // A text that is sent to several peers at the same time counts once.
  bool TakeText(const std::shared_ptr<const std::string>& text);
  void GiveText(const std::string* text, std::size_t bytes);
  std::size_t used() const;

 private:
  bool TakeLocked(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t most_;
  mutable absl::Mutex mutex_;
  std::size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<const std::string*, int> readers_ ABSL_GUARDED_BY(mutex_);  // of texts in use
};

// What one body holds; grows with it and is given back at the end. One thread at a time.
class HeldBody {
 public:
  HeldBody() = default;
  ~HeldBody() { End(); }
  HeldBody(const HeldBody&) = delete;
  HeldBody& operator=(const HeldBody&) = delete;

  // Null: what follows is not counted.
  void Begin(ByteBudget* budget);
  // False: nothing has changed.
  bool GrowTo(std::size_t bytes);
  void End();

 private:
  ByteBudget* budget_ = nullptr;
  std::size_t held_ = 0;
};

// An answer while it is sent. One thread at a time.
class HeldText {
 public:
  // Not counted: a connection's own buffers are larger.
  static constexpr std::size_t kSmall = 4 * 1024;

  HeldText() = default;
  ~HeldText() { End(); }
  HeldText(const HeldText&) = delete;
  HeldText& operator=(const HeldText&) = delete;

  // False, and nothing is held: there is no room in the budget. Null: it is not counted.
  bool Take(ByteBudget* budget, std::shared_ptr<const std::string> text);
  void End();
  // Empty where nothing is held.
  const std::string& text() const;

 private:
  ByteBudget* budget_ = nullptr;
  std::shared_ptr<const std::string> text_;
};

}  // namespace tranche::http
