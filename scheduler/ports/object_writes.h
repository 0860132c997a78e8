// What Tranche shows the cluster of itself: its own objects and their statuses, why a pod waits,
// events. All of it is best effort.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
#pragma once

#include <functional>
#include <string>

#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// Fields of one object that are ours: written with server-side apply under our field manager, which
// creates the object where `create` allows it.
struct ObjectWrite {
  std::string kind;  // GPUQuota, GPUBudget, GPUClass, GPUPolicy, GPUPool, ...
  std::string ns;    // empty: cluster scope
  std::string name;
  bool status = false;  // the status subresource; else the object itself
  std::string fields;   // JSON members beside apiVersion, kind and metadata: "\"status\":{...}"
};

// Why a pod waits, for the pod's condition tranche.dev/Waiting.
struct WaitingWrite {
  PodName pod;
  PodUid uid;
  bool waiting = true;  // false: cleared (status False)
  std::string reason;   // a stable code, "WaitingForQuota"
  std::string message;  // fixed for a code, or with numbers where the writer limits the rate
  Instant when;
};

// An event people see with kubectl describe (events.k8s.io/v1).
struct EventWrite {
  std::string kind;  // of the object it is about: "Pod", "GPUQuota"
  std::string ns;    // of that object; empty: cluster scope, the event goes to "default"
  std::string name;
  std::string uid;
  bool warning = false;
  std::string reason;
  std::string action;  // "Scheduling"
  std::string note;    // cut at 1 KiB
  Instant when;
};

class ObjectWrites {
 public:
  virtual ~ObjectWrites() = default;
  // An object that is not there is kRejected with 404 where `status` is set.
  virtual void Write(ObjectWrite write, std::function<void(WriteResult)> done) = 0;
  // A GPUQuotaView of ours that is no longer wanted. Gone already counts as done.
  virtual void DeleteView(NamespacedName view, std::function<void(WriteResult)> done) = 0;
  // A GPUReclaim of ours whose time is over. Gone already counts as done.
  virtual void DeleteReclaim(std::string name, std::function<void(WriteResult)> done) = 0;
  virtual void SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) = 0;
  virtual void Emit(EventWrite event, std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
