// How the GPUs of a node are connected, for GET /api/v1/nodes.
//
// "nvlink": {"text","groups":[[0,1],[2,3]],"verified"}, or null where nobody says. Groups hold
// positions in "gpus": the GPUs that reach each other over NVLink, directly or through others of
// the group; GPUs without NVLink are in none. Thread rule: any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/engine/engine.h"

namespace tranche {

// Groups of at least two GPUs, each ascending, by their first.
std::vector<std::vector<int>> NvlinkGroups(const Machine& machine);

// Appends the member; remembers each machine's text, since nodes share machines.
class LinksJson {
 public:
  void Append(std::string& out, const NodeView& node);

 private:
  std::map<const MachineTable*, std::string> known_;  // "text" and "groups"
};

}  // namespace tranche
