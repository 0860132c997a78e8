// Which node agent a Node object shows, and what that one registers.
//
// A node whose label tranche.dev/agent is "true" has tranche-node, whatever else it carries: until
// it has registered, nobody gives the node's GPUs as we say, and no pod may go there. Without the
// label its register is a left-over. Of other agents a node may carry signs of several, left behind
// by those it had before. In this order the first counts: HAMi, 4pd, Volcano, vgpu-manager (by
// their annotations), gpushare, Volcano's gpushare, tkestack, elastic-gpu (by what they advertise).
// Only then objects beside the Node do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/selector.h"
#include "scheduler/facts/node_facts.h"

namespace tranche::wire {

struct NodeAgent {
  std::optional<AgentRegister> agent;
  // The sign of an agent whose register cannot be read, and what is wrong with it: without it the
  // node would look like one with whole cards, so that no pod may go there. Empty: none.
  std::string unreadable;
  std::vector<std::string> problems;
};

// `facts`: amounts and labels are read.
NodeAgent ReadNodeAgent(const Labels& annotations, const NodeFacts& facts);

}  // namespace tranche::wire
