// Keepers: pods of ours that hold one card of a node with the stock device plugin each, so that
// pods with shares of a card have a card that is known and that no whole-GPU pod is given.
//
// The device plugin chooses the card when the kubelet admits the keeper; its init container says
// which one it is. A sharing pod is shown that card and asks the kubelet for none.
// (KAI calls a keeper a reservation pod.) Source: request-dialects section 11, ADR 0024.
#pragma once

#include <vector>

#include "scheduler/facts/allocation.h"
#include "topology/base/ids.h"

namespace tranche {

// What a Pod object says that is recognised as a keeper.
struct KeeperFacts {
  GpuUuid told;  // the card it was given; empty: it has not said so yet
};

// A keeper to be made.
struct KeeperOrder {
  PodName pod;
  NodeName node;
  Allocation record;  // the card of our books, for both of its containers
};

// A keeper to be deleted.
struct KeeperEnd {
  PodName pod;
  PodUid uid;  // empty: it was not seen yet
};

// The containers of a keeper.
inline constexpr const char* kKeeperTeller = "tell";
inline constexpr const char* kKeeperHolder = "hold";
inline constexpr const char* kKeeperNamespace = "tranche-reservation";

}  // namespace tranche
