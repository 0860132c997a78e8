// What all ResourceSlices say of each node's devices together: several drivers, pools and slices
// make one answer.
//
// Of a pool only the slices of its highest generation count, as the API rules; a pool that is being
// published may be incomplete for a moment. Devices are ordered: GPUs before NICs, then by driver,
// pool and name.
//
// Thread rule: one thread at a time. Cost of a change: the devices of its node.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/wire/nodes/node_topology.h"

namespace tranche::wire {

class NodeSlices {
 public:
  struct Change {
    NodeName node;
    std::vector<SliceDevice> devices;  // all of them; empty: nothing is said any more
  };

  // `name` is the slice's own.
  void Put(const std::string& name, NodeSlice slice);
  void Remove(const std::string& name);
  // Nodes whose devices are others than last told; ascending node.
  std::vector<Change> TakeChanges();

 private:
  struct Node {
    std::map<std::string, NodeSlice> slices;  // by name
    std::vector<SliceDevice> told;
  };

  std::map<NodeName, Node> nodes_;
  std::map<std::string, NodeName> node_of_;  // by the slice's name
  std::set<NodeName> touched_;
};

}  // namespace tranche::wire
