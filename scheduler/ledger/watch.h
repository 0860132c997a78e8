// Checks the whole file now and then while it is being written.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tranche::ledger {

// integrity_check and foreign_key_check of `path`, at once if asked to and then once a day, on a
// thread and a read-only connection of its own.
class IntegrityWatch {
 public:
  // `report` gets the first fault, from the thread; none for a sound file.
  IntegrityWatch(std::string path, bool at_once, std::function<void(std::string)> report);
  ~IntegrityWatch();
  // Ends the thread, in the middle of a check if need be. Idempotent.
  void Stop();

 private:
  void Loop();
  void Check();
  bool Stopping() const;

  const std::string path_;
  const bool at_once_;
  const std::function<void(std::string)> report_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tranche::ledger
