// The machines of the simulated cluster: what hardware they have, how the software on them hands
// it out, and the Node object that shows it.
//
// Sources: node-inventory sections 1, 2 and 8; request-dialects section 4.2 (HAMi's register).
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/sim/base/draws.h"
#include "test/sim/base/history.h"

namespace tranche::sim {

enum class NodeKind : uint8_t {
  kPlain,  // no GPU
  kStock,  // NVIDIA's device plugin, whole cards
  kHami,   // HAMi's agent, shares of cards
  kMig,    // NVIDIA's device plugin, all cards cut alike
  kDra,    // NVIDIA's DRA driver (claims/), some cards cut; no device plugin
  kAgent,  // tranche-node, whole cards or parts of them
};

struct MigInstance {
  int card = 0;
  std::string profile;  // "1g.10gb"
  int start = 0;
  int size = 0;
  int64_t mib = 0;
};

struct Machine {
  std::string name;
  NodeKind kind = NodeKind::kPlain;
  std::string product;             // "NVIDIA-H100-80GB-HBM3"
  std::string model;               // as GPUQuota lines name it
  int64_t mib = 0;                 // of each card
  std::vector<std::string> cards;  // UUIDs
  std::vector<MigInstance> instances;
  int slots = 0;          // containers that may share a card by tranche-node; 0: given whole
  std::string pool = {};  // the GPUPool it is in for good; empty: in none
};

inline constexpr int kHamiSlots = 10;  // pods that may share one card

// `life` tells machines of one name apart: their cards are others.
Machine DrawMachine(Draws& draws, std::string name, NodeKind kind, int life);
Json NodeObject(const Machine& machine);
// hami.io/node-nvidia-register. `lie` more or fewer MiB than a card has; cards `dead` are
// unhealthy.
std::string HamiRegister(const Machine& machine, int64_t lie, int dead);
// tranche.dev/agent-register; the first `dead` cards are closed.
std::string TrancheRegister(const Machine& machine, int dead);
// What the node advertises of extended resources: {"nvidia.com/gpu": "8"}.
Json ExtendedResources(const Machine& machine);

}  // namespace tranche::sim
