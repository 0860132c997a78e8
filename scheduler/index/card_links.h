// How the cards of a node are connected: from what is published to the tables placement uses.
#pragma once

#include <string>
#include <string_view>

#include "scheduler/facts/node_facts.h"
#include "scheduler/index/inventory.h"
#include "topology/machine/machine_table.h"

namespace tranche {

// Fills what an inventory knows of links, NUMA nodes and the kubelet's rules. Requires: its cards
// are in place.
void ConnectCards(const NodeFacts& facts, MachineTables* tables, Inventory& inventory);

// Does the value of a label name a domain of nodes? A cluster UUID of zeros stands for a fabric
// that was never formed, and would join nodes that share nothing.
bool NamesDomain(std::string_view value);

// Adds to a node's signature all of that which decides where requests fit.
void AppendLinks(const Inventory& inventory, std::string& signature);

}  // namespace tranche
