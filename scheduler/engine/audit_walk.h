// How far a check of the books has come that lets others in between, and what it found: each slice
// looks at some nodes, pods or holdings, or sums what is counted over all.
//
// Thread rule: values. Between two slices the books may change; every slice holds by itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quota/tree/quota_ids.h"
#include "scheduler/index/node_names.h"
#include "topology/base/ids.h"

namespace tranche {

enum class AuditKind : uint8_t {
  // ---- sums: what they are of is trusted, and they can be summed again (Engine::Mend)
  kLoad,      // of a node, and the row decisions read
  kTally,     // counts over all nodes, the list of reservations
  kQuotaSum,  // what a team uses
  // ---- one part of the books says otherwise than another
  kHolding,  // a node holds something for nobody
  kPod,      // a pod is not where it says
  kCharge,   // quota counts what nobody holds
  kAgent,
  kGang,
  kClaim,
  kNamespaceCap,
  // ---- the books say otherwise than the cluster
  kShownPod,
  kShownNode,
  kForgottenPod,  // the API server does not have it
  // ---- set aside: Tranche goes on, and somebody should look
  kUnreadable,   // an object; what it holds is busy
  kDisputed,     // a pod's devices are not known
  kUnownedWork,  // its quota is gone
  kStuckReservation,
  kInvalidObject,  // a custom resource is not in force as written
  kCount
};

constexpr bool IsSum(AuditKind kind) { return kind <= AuditKind::kQuotaSum; }

// "load", "tally", ...: as the API tells it.
std::string_view AuditKindName(AuditKind kind);

struct AuditNote {
  AuditKind kind = AuditKind::kLoad;
  std::string where;  // the node, pod, team or object; empty: the books as a whole
  std::string text;
  bool mended = false;
};

struct AuditFindings {
  std::vector<AuditNote> faults;
  std::vector<AuditNote> set_aside;
};

struct AuditWalk {
  // Under a millisecond each.
  static constexpr int kNodesAtOnce = 128;
  static constexpr int kPodsAtOnce = 1024;
  static constexpr int kHoldingsAtOnce = 2048;

  enum class Stage : uint8_t { kNodes, kPods, kQuotas, kCharges, kGangs, kTallies, kDone };
  Stage stage = Stage::kNodes;
  // The next of each.
  NodeId node{0};
  std::size_t bucket = 0;  // of the table of pods
  std::size_t buckets = 0;
  QuotaId quota{0};
  PodUid charge;
  std::string gang;
  // What the last slice looked at.
  std::vector<NodeName> nodes;
  std::vector<PodUid> pods;
  bool done() const { return stage == Stage::kDone; }
};

// What the books have of a pod.
struct PodStand {
  bool known = false;
  bool ended = false;
  NodeName node;  // empty: none
};

}  // namespace tranche
