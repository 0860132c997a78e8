// The open connections of a server and what happened to them.
//
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/http/server.h"

namespace tranche::http {

class Session;

// An ordinary connection holds one of Limits::connections places. A spare one came when all were
// taken by active connections: it is answered 503, or served /healthz, and closed.
enum class Place : uint8_t { kOrdinary, kSpare };

class ConnectionTable {
 public:
  void Add(std::shared_ptr<Session> session, Place place);
  void Remove(const Session* session);

  std::size_t Count(Place place) const;
  // The ordinary connection that waits for a request since the longest time; null: all are active.
  std::shared_ptr<Session> LongestIdle() const;
  std::shared_ptr<Session> OldestSpare() const;
  std::vector<std::shared_ptr<Session>> All() const;
  // False when connections are still open after `patience`.
  bool WaitUntilEmpty(std::chrono::milliseconds patience);

  void CountEviction();
  void CountFailedHandshake();
  void CountRefusal(int status);
  Statistics Snapshot() const;

 private:
  struct Entry {
    std::shared_ptr<Session> session;
    Place place = Place::kOrdinary;
    int64_t number = 0;  // in order of arrival
  };
  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  std::map<const Session*, Entry> entries_;
  std::size_t spare_ = 0;
  Statistics statistics_;
};

}  // namespace tranche::http
