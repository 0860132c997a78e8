// Open watches of two servers behind one address, each of which may lag behind the store.
//
// A watch tells all changes of its resource after a version, in order, some time after they
// happened; then a bookmark about once a minute. It ends at its timeout, when its server goes, or
// with an ERROR frame of code 410 where its server no longer has what comes next.
//
// Faults: kApiServer. A frame comes twice. A deletion is lost where the name has been taken again
// by the time it would be told, so that the namesake is all that tells of it.
//
// Source: kube-client-protocol sections 6 and 7; lost deletions: etcd-io/etcd issues 18089, 19179.
//
// Thread rule: one thread. Callbacks run as steps of the actor that opened the watch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "test/sim/base/faults.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/network.h"
#include "test/sim/cluster/resources.h"
#include "test/sim/cluster/store.h"

namespace tranche::sim {

class Watches {
 public:
  struct Opening {
    Actor from = 0;
    const ResourceType* type = nullptr;
    uint64_t version = 0;
    SimTime lasts{0};
    bool bookmarks = false;
    int server = 0;
    std::function<void(std::string_view)> bytes;
    std::function<void(int code, std::string body)> ended;
  };

  Watches(Loop& loop, Store& store, Script& script, const FaultPlan& faults, Network& network,
          uint64_t seed);

  uint64_t Open(Opening opening);
  void Close(uint64_t watch) { open_.erase(watch); }
  // Its watches end, as those of a process that stops.
  void EndAll(int server);
  void set_lag(int server, SimTime lag) { lags_[server] = lag; }
  void Quiet();
  std::size_t size() const { return open_.size(); }

 private:
  struct Watch {
    Opening opening;
    uint64_t next = 0;  // number of the change it tells next
    SimTime bookmark_at{0};
    SimTime ends_at{0};
    bool ending = false;
    SimTime step_at = SimTime::max();  // when it is looked at next
  };

  void Changed(std::string_view resource);
  void Wake(uint64_t id, Watch& watch, SimTime at);
  void Look(uint64_t id, SimTime meant_at);
  // What is due by now.
  std::string Due(Watch& watch);
  // Has another object the name, by what is due as well?
  bool IsTakenAgain(const Watch& watch, const Change& deletion) const;
  void Tell(uint64_t id, const std::string& frames);
  void End(uint64_t id);
  SimTime LagOf(const Watch& watch) const;

  Loop& loop_;
  Store& store_;
  Script& script_;
  const int rate_;
  Network& network_;
  Draws draws_;
  bool quiet_ = false;
  uint64_t ids_ = 0;
  std::map<uint64_t, Watch> open_;
  std::map<int, SimTime> lags_;
};

}  // namespace tranche::sim
