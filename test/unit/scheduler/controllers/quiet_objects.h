// A cluster that takes every status, condition and event, and keeps none.
#pragma once

#include <functional>
#include <string>

#include "scheduler/ports/object_writes.h"

namespace tranche {

class QuietObjects : public ObjectWrites {
 public:
  void Write(ObjectWrite, std::function<void(WriteResult)> done) override { done(kDone); }
  void DeleteView(NamespacedName, std::function<void(WriteResult)> done) override { done(kDone); }
  void DeleteReclaim(std::string, std::function<void(WriteResult)> done) override { done(kDone); }
  void SetWaiting(WaitingWrite, std::function<void(WriteResult)> done) override { done(kDone); }
  void Emit(EventWrite, std::function<void(WriteResult)> done) override { done(kDone); }

 private:
  inline static const WriteResult kDone{WriteResult::Kind::kDone, 200, ""};
};

}  // namespace tranche
