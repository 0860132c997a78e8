// Placeholders: pods of ours that hold one card of a node with the stock device plugin each, so
// that pods with shares of a card have a card that is known and that no whole-GPU pod is given.
//
// The device plugin chooses the card when the kubelet admits the placeholder; its init container
// says which one it is. A sharing pod is shown that card and asks the kubelet for none. (KAI calls
// a placeholder a reservation pod.) Source: request-dialects section 11, ADR 0024.
#pragma once

#include <vector>

#include "scheduler/facts/allocation.h"
#include "topology/base/ids.h"

namespace tranche {

// What a Pod object says that is recognised as a placeholder.
struct PlaceholderFacts {
  GpuUuid told;  // the card it was given; empty: it has not said so yet
};

// A placeholder to be made.
struct PlaceholderOrder {
  PodName pod;
  NodeName node;
  Allocation record;  // the card of our books, for both of its containers
};

// A placeholder to be deleted.
struct PlaceholderEnd {
  PodName pod;
  PodUid uid;  // empty: it was not seen yet
};

// The containers of a placeholder.
inline constexpr const char* kPlaceholderTeller = "tell";
inline constexpr const char* kPlaceholderHolder = "hold";
inline constexpr const char* kPlaceholderNamespace = "tranche-reservation";

}  // namespace tranche
