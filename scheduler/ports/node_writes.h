// What Tranche writes to nodes: the lock of a node's agent, and labels.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

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

class NodeWrites {
 public:
  virtual ~NodeWrites() = default;
  // Sets the annotation if the node has none of that key, by a write that carries the node's
  // resourceVersion. Our own value there already counts as done.
  virtual void LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) = 0;
  // Takes the annotation away if it has just this value. Gone already counts as done.
  virtual void UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) = 0;
  virtual void LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
