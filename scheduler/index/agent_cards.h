// The cards of a node that an agent divides, and how agents differ in what fits on them.
//
// Source: request-dialects sections 4.5, 6-12, 15.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/facts/node_facts.h"
#include "scheduler/index/inventory.h"
#include "topology/base/units.h"

namespace tranche {

// Cards, knowledge and units as the register says. A card is ill where the register says so, or
// the agent's plugin advertises nothing.
// Requires: facts.agent.
void AddAgentCards(const NodeFacts& facts, Inventory& inventory);

// Those that the register calls ill, of an agent that gives the devices of the record. The kubelet
// counts what an agent advertised as capacity until five minutes after it has gone; then there are
// none.
std::vector<GpuUuid> IllDevices(const NodeFacts& facts);

// How many clients an MPS server takes on one card of this product. Source: node-inventory
// section 3.
int64_t MpsClients(std::string_view product);

// With no core left on a card, containers that name no cores find no room there either.
bool NeedsFreeCore(AgentKind agent);

// Nobody gives a part of a card there as it was told. tkestack takes the card it likes best, by
// what is free at that moment, and fails the pod if that is not the one it was told: what another
// pod's end would change cannot be foretold. tranche-node gives parts of cards by MPS alone.
bool ServesWholeCardsOnly(const Inventory& inventory);

// Name of what holds a container to its part of the card: "mps", "mig", ...; empty: nothing does.
std::string_view EnforcementOf(const Inventory& inventory, const Card& card);

}  // namespace tranche
