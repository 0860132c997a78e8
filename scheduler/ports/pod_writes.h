// What Tranche writes to pods, and the one read that settles a write whose answer was lost.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "scheduler/facts/pod_facts.h"
#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"

namespace tranche {

struct BindingWrite {
  PodName pod;
  PodUid uid;  // a precondition of the write
  NodeName node;
  std::map<std::string, std::string> annotations;
};

// The pod as the server has it now. kMissing: no object of that name and uid.
struct PodLookup {
  enum class Kind { kFound, kMissing, kFailed };
  Kind kind = Kind::kFailed;
  std::optional<PodFacts> pod;  // kFound
  std::string message;          // kFailed
};

// Annotations of a pod, merged into those it has.
struct PodAnnotationWrite {
  PodName pod;
  PodUid uid;  // a precondition
  std::map<std::string, std::string> annotations;
};

// A pod of ours to be made on a node of its own: a placeholder (facts/placeholder.h).
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

class PodWrites {
 public:
  virtual ~PodWrites() = default;
  // One POST of a Binding whose annotations are merged into the pod together with nodeName.
  virtual void Bind(BindingWrite write, std::function<void(WriteResult)> done) = 0;
  // A fresh read; `uid` empty takes whichever pod has the name.
  virtual void GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) = 0;
  // kRejected: it was not made, also where one of that name exists.
  virtual void CreatePod(PodCreation creation, std::function<void(WriteResult)> done) = 0;
  // Only of pods made by CreatePod; `uid` empty: whichever has the name. Gone already, and another
  // of that name, count as done.
  virtual void DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) = 0;
  virtual void AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) = 0;
  // Has kube-scheduler look at a waiting pod again, by a condition of our own on it. Best effort:
  // one that fails costs the pod time, nothing else.
  virtual void Requeue(PodName pod, PodUid uid, Instant when,
                       std::function<void(WriteResult)> done) = 0;
  // Takes the gate away, others stay. Gone already counts as done.
  virtual void RemoveGate(GateWrite write, std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
