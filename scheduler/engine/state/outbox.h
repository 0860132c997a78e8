// What the engine wants done in the world: it decides and does nothing itself. Every part of the
// engine adds to one value, and whoever called the engine takes it out and carries it out.
//
// Within one list the order is that of the decisions. Externally synchronised, as the engine is.
#pragma once

#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "quota/book_fault.h"
#include "scheduler/engine/state/agent_queues.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/metering.h"
#include "scheduler/facts/reclaim.h"
#include "topology/base/ids.h"

namespace tranche {

// A scheduling gate of ours to be taken away: the gang is complete, or quota would let the pod in.
// One that is still seen ten seconds later comes again.
struct GateRemoval {
  PodName pod;
  PodUid uid;
  Gate gate = Gate::kQuota;
};

struct Effects {
  // Of the ledger: what is to be written, in order, and windows of budgets that have closed.
  std::vector<MeterEvent> metering;
  std::vector<WindowClosing> closings;
  // Pods to have scheduled again, at once and each only once: filter refused them a moment before
  // room appeared that they fit in, so that the event which would bring them back may have passed
  // kube-scheduler already; or room appeared by time alone, which is no event to it.
  std::vector<std::pair<PodName, PodUid>> requeue;
  std::vector<GateRemoval> ungate;
  // Binds that waited for their turn at an agent and may go on now, or need not; pods that agents
  // must be told to pass over.
  AgentWork agents;
  // Evictions of one reclaim come one by one, see SettleEviction.
  ReclaimWork reclaims;
  // To be told to an administrator.
  std::vector<BookFault> faults;

  bool empty() const {
    return metering.empty() && closings.empty() && requeue.empty() && ungate.empty() &&
           agents.empty() && reclaims.empty() && faults.empty();
  }
};

// Where the parts of the engine put their effects.
class Outbox {
 public:
  // Gives the event its place in the journal.
  void Journal(MeterEvent event) {
    event.sequence = ++journaled_;
    effects_.metering.push_back(std::move(event));
  }
  std::vector<WindowClosing>& closings() { return effects_.closings; }
  void Requeue(const PodName& pod, const PodUid& uid) { effects_.requeue.emplace_back(pod, uid); }
  void Ungate(const PodName& pod, const PodUid& uid, Gate gate) {
    effects_.ungate.push_back({pod, uid, gate});
  }
  void Tell(BookFault fault) {
    ++faults_[static_cast<std::size_t>(fault.kind)];
    effects_.faults.push_back(std::move(fault));
  }
  // How many of each kind there were ever.
  const std::array<int64_t, kBookFaultKinds>& faults() const { return faults_; }
  AgentWork& agents() { return effects_.agents; }
  ReclaimWork& reclaims() { return effects_.reclaims; }
  Effects& effects() { return effects_; }

 private:
  Effects effects_;
  uint64_t journaled_ = 0;
  std::array<int64_t, kBookFaultKinds> faults_{};
};

}  // namespace tranche
