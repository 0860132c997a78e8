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

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/advice/right_size.h"
#include "scheduler/controllers/checkpointer.h"
#include "scheduler/controllers/status_snapshot.h"
#include "scheduler/foresight/forecast.h"
#include "scheduler/host/host.h"
#include "scheduler/ports/object_writes.h"
#include "scheduler/wire/records/object_status.h"

namespace tranche {

class StatusWriter {
 public:
  // What is known beside what the engine says, as it was found last; null: nothing.
  struct Sources {
    // What running work could ask for instead.
    std::function<std::shared_ptr<const std::vector<RightSize>>()> right_sizes;
    std::function<std::shared_ptr<const Forecasts>()> forecasts;
  };
  // `checkpointer` outlives this. Of `sources` there need be none.
  StatusWriter(Host& host, ObjectWrites& objects, Checkpointer& checkpointer, Sources sources);
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  // Writes what has changed.
  void Tick(Instant now);
  // The same by the clock, four times a second: where there was nothing to write, three are left
  // out, so that what changes then is written within a second.
  void Turn(Instant now);
  // How many looks at the engine that made; to be asked between two ticks.
  int64_t rounds() const { return rounds_; }
  int64_t failures() const { return *failures_; }
  // How often a status was rendered; to be asked between two ticks.
  int64_t renderings() const { return renderings_; }

 private:
  // Raised by answers, which may come later than the last call.
  using Flag = std::shared_ptr<std::atomic<bool>>;
  static Flag Lowered() { return std::make_shared<std::atomic<bool>>(); }
  // A text, and the values it is made of: it is made anew when they change.
  struct Made {
    std::string values;
    std::string text;
  };
  struct Written {
    Made prompt;
    Made all;
    Instant at;
    Instant looked;         // when what only drifts was last compared
    Flag lost = Lowered();  // it could not be written
  };
  struct Object {
    std::string uid;
    Written status;
    std::map<std::string, std::pair<bool, Instant>> since;  // condition -> what it is, since when
  };
  struct View {
    Written object;
    Written status;
    Flag made = Lowered();
    Instant deleted;  // when we asked for it last
  };

  StatusSnapshot::Parts Gather();
  void ForgetGone(const PolicyIntake::Objects& there);
  static wire::StatusHead HeadOf(Object& object, const std::string& kind, const std::string& name,
                                 int64_t generation, const StatusSnapshot& snapshot, Instant now);
  void WriteObjects(const StatusSnapshot& snapshot, Instant now);
  void WriteViews(const StatusSnapshot& snapshot, Instant now);
  void DeleteViews(const PolicyIntake::Objects& there, const std::set<std::string>& wanted,
                   Instant now);
  void WriteWaiting(const StatusSnapshot& snapshot, Instant now);
  void TellHistory(const StatusSnapshot& snapshot, Instant now);
  void Notify(const StatusSnapshot& snapshot, Instant now);
  // Whether the status has another text than `made`, which it has from now on.
  bool Renews(Made& made, const wire::ObjectStatus& status, wire::StatusMembers members);
  // `view`: the one that is written; nullptr: another object.
  void Write(Written& written, ObjectWrite write, const wire::ObjectStatus& status, Instant now,
             const View* view);

  Host& host_;
  ObjectWrites& objects_;
  Checkpointer& checkpointer_;
  const Sources sources_;
  bool history_told_ = false;
  const std::shared_ptr<std::atomic<int64_t>> failures_;  // answers count them
  int64_t renderings_ = 0;
  int64_t rounds_ = 0;
  bool idle_ = false;  // the last round had nothing to write, now or soon
  int left_out_ = 0;   // turns since then
  std::shared_ptr<const PolicyIntake::Objects> seen_;            // those of the last round
  std::map<std::pair<std::string, std::string>, Object> known_;  // by kind and name
  std::map<std::string, View> views_;                            // by namespace
  std::map<std::string, int> notified_;  // budget uid and window -> highest level told
  struct Told {
    PodName pod;
    std::string reason;
    Instant at;
  };
  std::map<PodUid, Told> told_;
};

}  // namespace tranche
