// What Tranche writes to the cluster. Implemented by scheduler/kube (a real API server) and
// scheduler/embedded (in process); tests have a failing one.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "scheduler/facts/pod_facts.h"
#include "topology/base/ids.h"

namespace tranche {

struct BindingWrite {
  PodName pod;
  PodUid uid;  // a precondition of the write
  NodeName node;
  std::map<std::string, std::string> annotations;
};

struct WriteResult {
  enum class Kind {
    kDone,      // the server said yes
    kRejected,  // the server said no, and nothing was written: 400, 403, 404, 409, 422
    kNotSent,   // nothing reached the server (connection refused)
    kUnknown,   // sent, and the answer was lost or a 5xx: read the object to find out
  };
  Kind kind = Kind::kUnknown;
  int http_code = 0;    // 0: no answer
  std::string message;  // the server's, cut at 2 KiB
};

// The pod as the server has it now. kMissing: no object of that name and uid.
struct PodLookup {
  enum class Kind { kFound, kMissing, kFailed };
  Kind kind = Kind::kFailed;
  std::optional<PodFacts> pod;  // kFound
  std::string message;          // kFailed
};

// Fields of one object that are ours: written with server-side apply under our field manager, which
// creates the object where `create` allows it.
struct ObjectWrite {
  std::string kind;  // GPUQuota, GPUBudget, GPUClass, GPUPolicy, GPUQuotaView, GPUReclaim
  std::string ns;    // empty: cluster scope
  std::string name;
  bool status = false;  // the status subresource; else the object itself
  std::string fields;   // JSON members beside apiVersion, kind and metadata: "\"status\":{...}"
};

// An eviction through the Eviction API, which keeps PodDisruptionBudgets.
struct EvictionWrite {
  PodName pod;
  PodUid uid;                   // a precondition
  std::optional<Millis> grace;  // nullopt: the pod's own
};

struct EvictionResult {
  WriteResult write;  // 429: refused by a PodDisruptionBudget (kRejected); 404, 409: no such pod
  std::optional<Millis> retry_after;
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

// A label of a node, by which its executor changes its MIG layout (nvidia.com/mig.config).
struct NodeLabelWrite {
  NodeName node;
  std::string key;
  std::string value;  // empty: the label is removed
};

// The lock some node agents go by: an annotation of the node that says which pod they are called
// for next (HAMi 2.9 and later). The agent takes it away when it has served the pod.
struct NodeLockWrite {
  NodeName node;
  std::string key;    // "hami.io/mutex.lock"
  std::string value;  // "<RFC 3339>,<namespace>,<pod>"
  // A lock of another owner is taken over where its time is older than this; nullopt: never.
  std::optional<Millis> stale_after;
  Instant now;
};
struct NodeLockResult {
  enum class Kind {
    kDone,    // the annotation has our value (Lock), or no longer has (Unlock)
    kHeld,    // somebody else's is there, or came first; `value` is theirs
    kFailed,  // no node, no answer, no permission: `message`
  };
  Kind kind = Kind::kFailed;
  std::string value;
  std::string message;
};

// Annotations of a pod, merged into those it has.
struct PodAnnotationWrite {
  PodName pod;
  PodUid uid;  // a precondition
  std::map<std::string, std::string> annotations;
};

// A pod of ours to be made on a node of its own: a keeper (facts/keeper.h).
struct PodCreation {
  PodName pod;
  NodeName node;
  std::string json;  // the whole object
};

// A scheduling gate of ours on a pod (spec.schedulingGates).
struct GateWrite {
  PodName pod;
  PodUid uid;  // a precondition
  std::string gate;
};

// One key of a ConfigMap. Other keys stay.
struct ConfigMapWrite {
  std::string ns;
  std::string name;
  std::string key;
  std::string text;
  // As ReadConfigMap gave it, a precondition of the write; empty: there is none yet and it is made.
  // Somebody else wrote between: kRejected with 409.
  std::string version;
};

// One key of a ConfigMap as the server has it now.
struct ConfigMapLookup {
  enum class Kind { kFound, kMissing, kFailed };
  Kind kind = Kind::kFailed;
  std::string text;     // kFound; empty where the key is not there
  std::string version;  // kFound
  std::string message;  // kFailed
};

class ClusterApi {
 public:
  virtual ~ClusterApi() = default;
  // One POST of a Binding whose annotations are merged into the pod together with nodeName.
  virtual void Bind(BindingWrite write, std::function<void(WriteResult)> done) = 0;
  // Has kube-scheduler look at a waiting pod again, by a condition of our own on it. Best effort:
  // a poke that fails costs the pod time, nothing else.
  virtual void Poke(PodName pod, PodUid uid, Instant when,
                    std::function<void(WriteResult)> done) = 0;
  // A fresh read; `uid` empty takes whichever pod has the name.
  virtual void GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) = 0;
  // Best effort; an object that is not there is kRejected with 404 where `status` is set.
  virtual void Write(ObjectWrite write, std::function<void(WriteResult)> done) = 0;
  // A GPUQuotaView of ours that is no longer wanted. Gone already counts as done.
  virtual void DeleteView(std::string ns, std::string name,
                          std::function<void(WriteResult)> done) = 0;
  // A GPUReclaim of ours whose time is over. Gone already counts as done.
  virtual void DeleteReclaim(std::string name, std::function<void(WriteResult)> done) = 0;
  virtual void Evict(EvictionWrite write, std::function<void(EvictionResult)> done) = 0;
  // Sets status.nominatedNodeName, so that kube-scheduler keeps lower priorities from the room too.
  // Best effort: our own reservation does not rest on it.
  virtual void Nominate(PodName pod, PodUid uid, NodeName node,
                        std::function<void(WriteResult)> done) = 0;
  virtual void SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) = 0;
  // Sets the annotation if the node has none of that key, by a write that carries the node's
  // resourceVersion. Our own value there already counts as done.
  virtual void LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) = 0;
  // Takes the annotation away if it has just this value. Gone already counts as done.
  virtual void UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) = 0;
  // Takes the gate away, others stay. Gone already counts as done.
  virtual void RemoveGate(GateWrite write, std::function<void(WriteResult)> done) = 0;
  virtual void AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) = 0;
  // kRejected: it was not made, also where one of that name exists.
  virtual void CreatePod(PodCreation creation, std::function<void(WriteResult)> done) = 0;
  // Only of pods made by CreatePod; `uid` empty: whichever has the name. Gone already, and another
  // of that name, count as done.
  virtual void DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) = 0;
  virtual void LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) = 0;
  virtual void ReadConfigMap(std::string ns, std::string name, std::string key,
                             std::function<void(ConfigMapLookup)> done) = 0;
  virtual void PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) = 0;
  virtual void Emit(EventWrite event, std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
