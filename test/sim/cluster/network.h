// The wires between processes: how long a message takes, whether it is lost, and which processes
// are cut off, one way at a time.
//
// Faults: kNetwork. Bytes of a stream are never lost singly, they wait or the stream ends. A
// request whose sender has given up may arrive all the same.
//
// Source: RFC 9293 section 3.6 (what was sent before a close is delivered), and proxies, which hold
// what they have taken.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/net.h"
#include "test/sim/base/script.h"

namespace tranche::sim {

class Network {
 public:
  // What becomes of a request and its answer.
  struct Fate {
    SimTime there{0};
    SimTime back{0};
    bool lost_before = false;  // on its way there
    bool lost_after = false;   // on its way back
    bool is_held = false;      // it arrives, also when its sender has given up
  };

  Network(Loop& loop, History& history, Script& script, const FaultPlan& faults, uint64_t seed);

  // Of a message without faults: 0.1 to 2 ms.
  SimTime Delay();
  Fate FateOf(Actor client);
  // When bytes of a stream to that client move again: now where it is not cut off.
  SimTime StreamMoves(Actor client) const;
  void Start();
  void Quiet();

  // Sends by way of these wires; `done` hears within `timeout`, once.
  using Sender = std::function<void(Actor from, Request request, SimTime timeout,
                                    std::function<void(Reply)> done)>;
  void Carry(Actor from, Request request, SimTime timeout, std::function<void(Reply)> done,
             const Sender& to);

 private:
  struct Cut {
    SimTime there_until{0};  // requests do not arrive
    SimTime back_until{0};   // answers do not
  };
  void Disturb();

  Loop& loop_;
  History& history_;
  Script& script_;
  const int rate_;
  Draws draws_;
  const Actor self_;
  bool quiet_ = false;
  std::map<Actor, SimTime> clients_;  // when it last sent something
  std::map<Actor, Cut> cuts_;
};

}  // namespace tranche::sim
