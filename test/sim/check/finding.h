// What a checker found wrong, and what checkers are given to find it.
//
// Plain values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"

namespace tranche::sim {

struct Finding {
  std::string checker;  // "devices", ...
  std::string about;    // the pod ("ns/name") or node it concerns; may be empty
  std::string text;     // what was expected, and what happened
  SimTime at{0};
};

// GET of the leader's JSON API, at once; nullopt: nobody leads.
using Ask = std::function<std::optional<Json>(const std::string& target)>;

struct CheckOptions {
  FaultPlan faults = {};
  // Late news: what was written less than this ago, the product may not have known.
  SimTime lag = std::chrono::seconds(2);
  bool gangs = true;    // the checker of gangs
  bool charges = true;  // the checker of charged time
  // The ledgers' disks could not harm what was synced, so that files must verify.
  bool disks_are_sound = true;
};

// What there is at the end of a run.
struct Ending {
  SimTime at{0};
  Ask ask;
  std::vector<std::string> ledgers;  // files of all replicas, each once
};

}  // namespace tranche::sim
