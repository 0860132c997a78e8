// What happened in the cluster, as the ledger keeps it so that it can be lived through again: pods
// as they came, started and ended, what they did, and what nodes and policies said from when on.
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/facts/gpu_use.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// How a pod ended. As stored in past_pod.how.
enum class PastEnd : uint8_t {
  kNot = 0,    // it has not
  kByItself,   // its containers ended
  kDeleted,    // somebody deleted it
  kDisrupted,  // it was evicted, by whomever, or its node was lost
  kUnseen,     // it was gone when we looked again; when it went is not known
};

// What is new of a pod. What is unset is not new.
struct PastPod {
  PodUid uid;
  PodName name;
  std::string owner;  // uid of the controller that made it; empty: nobody, or not new
  std::optional<Instant> created;
  std::string object;  // what its object says that decides where it goes, as JSON; empty: not new
  NodeName node;       // where it went; empty: nowhere yet, or not new
  std::optional<Instant> started;
  std::string devices;  // its record (tranche.dev/allocation); empty: none, or not new
  std::optional<Instant> ended;
  PastEnd how = PastEnd::kNot;
};

// What an object says from a moment on.
struct PastChange {
  Instant at;
  std::string kind;  // "Node", "GPUQuota", ...; kGangSize
  std::string name;
  std::string object;  // JSON; empty: it is gone
};
// The size of a gang as objects tell it: `name` is namespace/gang, `object` a number.
inline constexpr const char* kGangSizeKind = "gang-size";

// What the server's own settings say where no GPUPolicy does, as one.
inline constexpr const char* kServerPolicyKind = "server-policy";

struct PastNews {
  Instant at;
  std::vector<PastPod> pods;
  std::vector<PastChange> changes;
  // What else there is, ascending; nullopt: nothing is said of that. Whatever the ledger has
  // beside it is gone since nobody knows when.
  struct Rest {
    std::vector<PodUid> pods;
    std::vector<std::pair<std::string, std::string>> objects;  // kind, name
  };
  std::optional<Rest> rest = std::nullopt;
  // Each takes the place of what was told of its pod before; of a span, of one with its `since`.
  std::vector<PodWork> work = {};
  std::vector<IdleSpan> idle = {};
  bool empty() const {
    return pods.empty() && changes.empty() && work.empty() && idle.empty() && !rest;
  }
};

}  // namespace tranche
