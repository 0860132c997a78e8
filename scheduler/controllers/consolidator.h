// Empties nodes that run little, where GPUPolicy.consolidate is On: one node at a time, of work
// that may be moved and has room elsewhere, so that an autoscaler takes the node away or a large
// gang finds it whole.
//
//   choose the node -> keep new GPU pods off it -> have the engine ask its work to leave, and look
//   every half minute whether all of it still has a place -> empty: keep it so for a while -> let
//   go
//
// The node is let go at once where somebody waits whom it could serve. What was given up, or was
// kept empty for nothing, is not tried there again for an hour. A restart forgets the node: pods
// that were not asked to leave stay.
//
// Thread rule: Tick by one thread at a time; pending from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "scheduler/advice/emptying.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/object_writes.h"

namespace tranche {

class Consolidator {
 public:
  static constexpr Millis kLookEvery{30'000};
  // Somebody who waits no longer may be a pod that was just moved.
  static constexpr Millis kPatience{60'000};
  // From the choice until the node is empty: notice, grace and budgets take their time.
  static constexpr Millis kMostEmptying{3'600'000};
  // Autoscalers take a node away that did nothing for ten minutes, as they come.
  static constexpr Millis kKeptEmpty{1'200'000};
  static constexpr Millis kNotAgain{3'600'000};

  // What it needs of the rest; all are called without locks.
  struct Hooks {
    // The cluster was heard of lately: nothing is begun or judged on old knowledge.
    std::function<bool()> fresh;
    std::function<bool()> wanted;  // GPUPolicy.consolidate
    std::function<AdviceCase()> look;
    // Engine::SetHeld; `why` empty: no longer.
    std::function<void(const NodeName& node, const std::string& why)> hold;
    // Engine::SetEmptied by rule Consolidate; and no longer.
    std::function<bool(const NodeName& node)> empty;
    std::function<void(const NodeName& node)> spare;
  };

  // All must outlive this.
  Consolidator(ObjectWrites& objects, metrics::Metrics& metrics, Hooks hooks);

  // `now` does not go back.
  void Tick(Instant now);
  // Nodes that are being emptied, or kept empty.
  int64_t pending() const { return pending_; }

 private:
  struct Change {
    NodeName node;
    Instant begun;
    std::optional<Instant> empty;  // since then
  };

  void Choose(Instant now);
  bool Begin(const EmptiedNode& chosen, Instant now);
  void Watch(Instant now);
  void GoOn(const AdviceCase& fleet, const AdviceNode& node, Instant now);
  void Settle(metrics::EmptyingOutcome outcome, const std::string& why, Instant now);
  void Tell(const NodeName& node, const std::string& note, Instant now);

  ObjectWrites& objects_;
  metrics::Metrics& metrics_;
  const Hooks hooks_;
  std::optional<Instant> looked_;
  std::map<NodeName, Instant> let_go_;  // when it was last
  std::optional<Change> change_;
  std::atomic<int64_t> pending_ = 0;
};

}  // namespace tranche
