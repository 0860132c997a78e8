#include "scheduler/http/table.h"

#include <utility>

#include "scheduler/http/session.h"

namespace tranche::http {

void ConnectionTable::Add(std::shared_ptr<Session> session, Place place) {
  const std::lock_guard lock(mutex_);
  const Session* const key = session.get();
  ++statistics_.connections_total;
  if (place == Place::kSpare) ++spare_;
  entries_.emplace(key, Entry{std::move(session), place, statistics_.connections_total});
}

void ConnectionTable::Remove(const Session* session) {
  Entry removed;  // destroyed behind the lock: it may be the last owner of the session
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(session);
  if (found == entries_.end()) return;
  removed = std::move(found->second);
  if (removed.place == Place::kSpare) --spare_;
  entries_.erase(found);
  if (entries_.empty()) emptied_.notify_all();
}

std::size_t ConnectionTable::Count(Place place) const {
  const std::lock_guard lock(mutex_);
  return place == Place::kSpare ? spare_ : entries_.size() - spare_;
}

std::shared_ptr<Session> ConnectionTable::LongestIdle() const {
  const std::lock_guard lock(mutex_);
  const Entry* longest = nullptr;
  int64_t since = Session::kActive;
  for (const auto& [key, entry] : entries_) {
    if (entry.place == Place::kSpare) continue;
    const int64_t idle_since = key->idle_since();
    if (idle_since < since) {
      since = idle_since;
      longest = &entry;
    }
  }
  return longest == nullptr ? nullptr : longest->session;
}

std::shared_ptr<Session> ConnectionTable::OldestSpare() const {
  const std::lock_guard lock(mutex_);
  const Entry* oldest = nullptr;
  for (const auto& [key, entry] : entries_) {
    if (entry.place == Place::kOrdinary) continue;
    if (oldest == nullptr || entry.number < oldest->number) oldest = &entry;
  }
  return oldest == nullptr ? nullptr : oldest->session;
}

std::vector<std::shared_ptr<Session>> ConnectionTable::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Session>> all;
  all.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) all.push_back(entry.session);
  return all;
}

bool ConnectionTable::WaitUntilEmpty(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, patience, [&] { return entries_.empty(); });
}

void ConnectionTable::CountEviction() {
  const std::lock_guard lock(mutex_);
  ++statistics_.connections_evicted;
}

void ConnectionTable::CountFailedHandshake() {
  const std::lock_guard lock(mutex_);
  ++statistics_.handshakes_failed;
}

void ConnectionTable::CountRefusal(int status) {
  const std::lock_guard lock(mutex_);
  ++statistics_.refusals_by_status[status];
}

Statistics ConnectionTable::Snapshot() const {
  const std::lock_guard lock(mutex_);
  Statistics snapshot = statistics_;
  snapshot.connections_open = static_cast<int64_t>(entries_.size());
  return snapshot;
}

}  // namespace tranche::http
