#include "scheduler/http/table.h"

#include <utility>

#include "scheduler/http/session.h"

namespace tranche::http {

void ConnectionTable::Add(std::shared_ptr<Session> session, Place place) {
  const std::lock_guard lock(mutex_);
  const Session* const key = session.get();
  ++statistics_.connections_total;
  if (place == Place::kSpare) ++spare_;
  entries_.emplace(key, Entry{std::move(session), place, statistics_.connections_total, false});
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

ConnectionTable::Tally ConnectionTable::CountPlaces(bool verified) const {
  Tally places;
  for (const auto& [key, entry] : entries_) {
    if (entry.place == Place::kOrdinary && entry.verified == verified) ++places[key->address()];
  }
  return places;
}

const ConnectionTable::Entry* ConnectionTable::LongestIdle(const Tally& places, std::size_t least,
                                                           bool verified) const {
  const Entry* longest = nullptr;
  int64_t since = Session::kActive;
  for (const auto& [key, entry] : entries_) {
    if (entry.place == Place::kSpare || entry.verified != verified) continue;
    const int64_t idle_since = key->idle_since();
    if (idle_since >= since || places.at(key->address()) < least) continue;
    since = idle_since;
    longest = &entry;
  }
  return longest;
}

const ConnectionTable::Entry* ConnectionTable::OldestOfGreediest(const Tally& places,
                                                                 std::size_t least) const {
  const Entry* oldest = nullptr;
  std::size_t most = least;
  for (const auto& [key, entry] : entries_) {
    if (entry.place == Place::kSpare || entry.verified || key->is_served()) continue;
    const std::size_t held = places.at(key->address());
    if (held < most || (oldest != nullptr && held == most && entry.number > oldest->number)) {
      continue;
    }
    most = held;
    oldest = &entry;
  }
  return oldest;
}

std::optional<GivesWay> ConnectionTable::FindPlaceFor(
    const boost::asio::ip::address& newcomer) const {
  const std::lock_guard lock(mutex_);
  Tally places = CountPlaces(/*verified=*/false);
  const Entry* found = nullptr;
  if (places.empty()) {
    found = LongestIdle(CountPlaces(/*verified=*/true), 0, /*verified=*/true);
    if (found == nullptr) return std::nullopt;
    return GivesWay{found->session, Pressure::kIdle};
  }
  const std::size_t own = places[newcomer];
  found = LongestIdle(places, own, /*verified=*/false);
  if (found != nullptr) return GivesWay{found->session, Pressure::kIdle};
  found = OldestOfGreediest(places, own + 2);
  if (found != nullptr) return GivesWay{found->session, Pressure::kGreed};
  return std::nullopt;
}

ConnectionTable::Verified ConnectionTable::Verify(const Session* session, std::size_t places) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(session);
  if (found == entries_.end()) return {};
  Entry& entry = found->second;
  entry.verified = true;
  if (entry.place == Place::kOrdinary) return {};
  const Entry* leaves = nullptr;
  if (entries_.size() - spare_ >= places) {
    const Tally others = CountPlaces(/*verified=*/false);
    leaves = LongestIdle(others, 0, /*verified=*/false);
    if (leaves == nullptr) leaves = OldestOfGreediest(others, 0);
    if (leaves == nullptr) return {Place::kSpare, nullptr};
  }
  entry.place = Place::kOrdinary;
  --spare_;
  return {Place::kOrdinary, leaves == nullptr ? nullptr : leaves->session};
}

std::shared_ptr<Session> ConnectionTable::ExcessHandshake(std::size_t most) const {
  const std::lock_guard lock(mutex_);
  Tally handshakes;
  std::size_t all = 0;
  for (const auto& [key, entry] : entries_) {
    if (!key->in_handshake()) continue;
    ++all;
    ++handshakes[key->address()];
  }
  if (all < most) return nullptr;
  const Entry* oldest = nullptr;
  std::size_t highest = 0;
  for (const auto& [key, entry] : entries_) {
    if (!key->in_handshake()) continue;
    const auto at = handshakes.find(key->address());
    if (at == handshakes.end() || at->second < highest) continue;
    if (oldest != nullptr && at->second == highest && entry.number > oldest->number) continue;
    highest = at->second;
    oldest = &entry;
  }
  return oldest == nullptr ? nullptr : oldest->session;
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
