// Shows the cluster what we know: status of our objects, a GPUQuotaView per team namespace, and why
// pods wait. All of it can be rebuilt; nothing reads it back but the checkpoints of a lost ledger
// (ADR 0027).
//
// Writes are few: an object is written when its text changes, at most once a second, and for
// members that only drift with time at most every 30 s. A pod's condition is written when its
// reason changes, at most every 10 s, and cleared when it no longer waits: every such write puts
// the pod into kube-scheduler's queue again, so numbers must not cause one (quota-model section 6).
//
// Thread rule: Tick from one thread at a time; answers of writes come on any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "scheduler/controllers/checkpointer.h"
#include "scheduler/host/host.h"
#include "scheduler/ports/object_writes.h"
#include "scheduler/wire/records/object_status.h"

namespace tranche {

class StatusWriter {
 public:
  // `checkpointer` outlives this.
  StatusWriter(Host& host, ObjectWrites& objects, Checkpointer& checkpointer);
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  // Writes what has changed.
  void Tick(Instant now);
  int64_t failures() const;

 private:
  struct Snapshot;
  struct Written;
  struct Shared;  // with answers that may come later than the last call

  Snapshot Gather();
  std::vector<wire::Condition> ConditionsOf(const std::string& kind, const std::string& name,
                                            const std::vector<Finding>& findings,
                                            int64_t generation, Instant now);
  void WriteObjects(const Snapshot& snapshot, Instant now);
  bool MadeView(const std::string& ns) const;
  void WriteViews(const Snapshot& snapshot, Instant now);
  void WriteWaiting(const Snapshot& snapshot, Instant now);
  void TellHistory(const Snapshot& snapshot, Instant now);
  void Notify(const Snapshot& snapshot, Instant now);
  // `full` gives all fields, and is asked for them only where they may be written.
  void Write(ObjectWrite write, std::string urgent, const std::function<std::string()>& full,
             Instant now);

  Host& host_;
  ObjectWrites& objects_;
  Checkpointer& checkpointer_;
  bool history_told_ = false;
  std::shared_ptr<Shared> shared_;
  // kind/name/type -> status and since when.
  std::map<std::string, std::pair<bool, Instant>> condition_since_;
  std::map<std::string, int> notified_;  // budget uid and window -> highest level told
  struct Told {
    PodName pod;
    std::string reason;
    Instant at;
  };
  std::map<PodUid, Told> told_;
};

}  // namespace tranche
