// Devices and quota kept for a pod whose victims leave (ADR 0013).
//
// An earmark is a holding like any other, so that nobody else is given its room by filter or bind.
// While victims leave it lies over their holdings. For questions on the pod's own behalf it is
// taken out for the length of the question: ScopedRemoval. Externally synchronised, as the state
// is.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "scheduler/engine/state/cluster_state.h"

namespace tranche {

class Earmarks {
 public:
  explicit Earmarks(ClusterState& state) : state_(state) {}

  void PutEarmark(const PodUid& uid, PodRecord& record, Earmark earmark, Instant now);
  // Also one that is lifted just now: it does not come back.
  void DropEarmark(const PodUid& uid, PodRecord& record, Instant now);
  // These devices of the node, for the pod, with what they are charged.
  Earmark EarmarkOf(NodeId id, const PodRequest& request, const QuotaMembership& membership,
                    const Picks& devices, Instant now) const;

 private:
  ClusterState& state_;
};

// Pods that devices are kept for, and where.
using RoomShares = std::vector<std::pair<PodUid, NodeName>>;

// Takes the pod's earmark out of the state while it lives, and what is kept for others who count on
// the same room. The version of the state is then as it was: no plan needs another look.
class ScopedRemoval {
 public:
  // Others: what counts on the same room and must not count twice.
  ScopedRemoval(ClusterState& state, const PodUid& uid, Instant now, const RoomShares& others);
  ~ScopedRemoval();
  ScopedRemoval(const ScopedRemoval&) = delete;
  ScopedRemoval& operator=(const ScopedRemoval&) = delete;
  // The pod has its devices: the earmark does not come back.
  void Discard();
  // The pod's own; null: none, or discarded.
  const Earmark* earmark() const { return earmark_.get(); }

 private:
  void RemoveOthers(const RoomShares& others);
  void PutBack(const PodUid& uid, const Earmark& earmark);

  ClusterState& state_;
  PodUid uid_;
  Instant now_;
  std::unique_ptr<Earmark> earmark_;
  std::vector<std::pair<PodUid, Earmark>> others_;
  uint64_t version_ = 0;
};

}  // namespace tranche
