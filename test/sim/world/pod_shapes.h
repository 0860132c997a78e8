// The pods that users of the simulation make: what they ask for, in whose words, how important they
// are and how long they last.
//
// Source: request-dialects sections 4.1 and 14, scheduler/docs/request-styles.md.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/sim/base/draws.h"
#include "test/sim/base/history.h"
#include "test/sim/world/fleet.h"

namespace tranche::sim {

struct PodShape {
  Json limits = Json::object();
  Json annotations = Json::object();
  std::string priority_class;  // empty: none
  int64_t grace_seconds = 30;
  int64_t runtime_ms = 10'000;
  bool fails = false;
};

// What can be asked for where machines of these kinds are.
struct ShapeRules {
  bool stock = false;
  bool hami = false;
  bool parts = false;                 // tranche-node gives them
  std::vector<std::string> profiles;  // of MIG
  int64_t most_cards = 8;
  int64_t mean_runtime_ms = 15'000;
};
ShapeRules RulesFor(const std::vector<Machine>& machines);

PodShape DrawShape(Draws& draws, const ShapeRules& rules);
// Whole cards, as members of gangs have.
PodShape DrawWholeCards(Draws& draws, const ShapeRules& rules, int64_t cards);

Json PodObject(const std::string& ns, const std::string& name, const std::string& scheduler,
               const PodShape& shape);

}  // namespace tranche::sim
