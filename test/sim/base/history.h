// What happened in a simulated world, told by those who did it and kept for those who check.
// Checkers see this and the cluster's own objects, never what Tranche thinks.
//
// Thread rule: one thread. Listeners are called in the step in which it happens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/sim/base/document.h"
#include "test/sim/base/loop.h"

namespace tranche::sim {

struct Happening {
  enum class Kind : uint8_t {
    kWritten,   // the API server stored, changed or removed an object: `resource`, `key`, `before`
                // (null: made), `after` (null: removed), `who`
    kRefused,   // the API server refused a write: `text`
    kGranted,   // a kubelet or agent gave devices to a pod: `key` of the pod, `after` what it gave:
                // {"node","devices":[{"uuid" or "index","milli","mib","mig":{"profile","start",
                // "size"}}]}
    kReleased,  // it took them back
    kAsked,     // kube-scheduler asked an extender verb: `text` the verb, `key` the pod, `before`
                // {"uid"} its uid (null: that of the one there is), `after` the answer (null: none
                // came)
    kStarted,   // a process began: `who`; `text` what kind of start
    kEnded,     // it crashed or stopped
    kLeads,     // a replica began to lead, `number` its epoch; `text` why it has no ledger
    kLost,      // it no longer may write
    kPromised,  // the ledger said that an entry is on disk: `after` the entry: {"uid","interval",
                // "kind": "open", "running", "close", "void" or "refund", "at": Unix ms}
    kDoubted,   // a replica had found its own books wrong when its life ended: `text` how, `number`
                // how often
    kFault,     // the world did something bad: `text`
    kQuiet,     // faults and arrivals have stopped: from now on liveness counts
  };
  Kind kind;
  SimTime at{0};
  uint64_t number = 0;   // of its kind's own
  std::string who = {};  // "tranche-0/3" (replica/life), "scheduler-0/1", "user", "kubelet/node-7"
  std::string resource = {};  // "pods"
  std::string key = {};       // "ns/name" or "name"
  std::string text = {};
  Document before = {};
  Document after = {};
};
const char* NameOf(Happening::Kind kind);

class History {
 public:
  using Listener = std::function<void(const Happening&)>;
  explicit History(const Loop& loop) : loop_(loop) {}
  void Add(Happening happening);
  void Listen(Listener listener) { listeners_.push_back(std::move(listener)); }
  // Over all that happened, in order: equal for equal runs.
  uint64_t digest() const { return digest_; }
  int64_t size() const { return size_; }

 private:
  const Loop& loop_;
  std::vector<Listener> listeners_;
  uint64_t digest_ = 14695981039346656037ULL;
  int64_t size_ = 0;
};

}  // namespace tranche::sim
