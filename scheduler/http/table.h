// The open connections of a server and what happened to them.
//
// Thread rule: any thread.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "scheduler/http/server.h"

namespace tranche::http {

class Session;

// An ordinary connection holds one of Limits::connections places. A spare one came when all were
// taken by active connections: it is answered 503, or served its probe, and closed; one that shows
// a good client certificate becomes an ordinary one.
enum class Place : uint8_t { kOrdinary, kSpare };

// Why a connection is to give way: it is idle, or its address has more places than others can get.
enum class Pressure : uint8_t { kIdle, kGreed };

struct GivesWay {
  std::shared_ptr<Session> session;
  Pressure pressure = Pressure::kIdle;
};

class ConnectionTable {
 public:
  void Add(std::shared_ptr<Session> session, Place place);
  void Remove(const Session* session);

  std::size_t Count(Place place) const;
  // Finds which ordinary connection gives way to a newcomer: of those whose address has as many
  // places as the newcomer's the longest idle one; else, of the address with the most, if those are
  // at least two more than the newcomer's, the oldest that is not served. Verified ones count only
  // where all are. nullopt: nobody. Cost: one pass over the connections.
  std::optional<GivesWay> FindPlaceFor(const boost::asio::ip::address& newcomer) const;
  std::shared_ptr<Session> OldestSpare() const;
  // The oldest handshake of the address that has most of them under way; null: they are fewer than
  // `most`.
  std::shared_ptr<Session> ExcessHandshake(std::size_t most) const;
  struct Verified {
    Place place = Place::kOrdinary;
    std::shared_ptr<Session> leaves = nullptr;  // has to go for it; null: nobody
  };
  // The connection has shown a good client certificate. A spare one gets an ordinary place if one
  // is free or somebody who has shown none can leave, and stays spare else.
  Verified Verify(const Session* session, std::size_t places);
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
    bool verified = false;
  };
  using Tally = std::map<boost::asio::ip::address, std::size_t>;

  // Ordinary connections by address, those that are not verified or those that are.
  Tally CountPlaces(bool verified) const;
  // One of those whose address has at least `least` places; nullptr: none of these.
  const Entry* LongestIdle(const Tally& places, std::size_t least, bool verified) const;
  const Entry* OldestOfGreediest(const Tally& places, std::size_t least) const;
  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  std::map<const Session*, Entry> entries_;
  std::size_t spare_ = 0;
  Statistics statistics_;
};

}  // namespace tranche::http
