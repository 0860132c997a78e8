// What objects beside Node say of nodes: NodeResourceTopology and ResourceSlice.
//
// Errors: InvalidArgument naming what was expected, found and where.
// Source: gpu-topology sections 5 and 6, dra facts section 2;
// k8stopologyawareschedwg/noderesourcetopology-api (v1alpha2 types), kubernetes/api resource/v1
// types, kubernetes-sigs/dranet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/ids.h"
#include "topology/machine/machine_sources.h"

namespace tranche::wire {

// topology.node.k8s.io/v1alpha2; the object has its node's name. The policy is read from the
// attributes, else from the deprecated topologyPolicies. Zones of other types than Node (sockets,
// caches) are left out. More than 128 zones, or two of one number: an error.
absl::StatusOr<NodeZones> DecodeNodeZones(Element object);

// The devices of one driver on one node, or a part of them.
struct NodeSlice {
  NodeName node;  // empty: of no single node, nothing for us
  std::string driver;
  std::string pool;
  int64_t generation = 0;            // of the pool: only the highest one's slices count
  std::vector<SliceDevice> devices;  // whole GPUs and NICs, as listed
  friend bool operator==(const NodeSlice&, const NodeSlice&) = default;
};

// resource.k8s.io/v1, v1beta2 and v1beta1. GPUs are the whole ones of gpu.nvidia.com; what another
// driver publishes with one PCIe root counts as a NIC, unless it says that it has no RDMA. (A list
// of roots, as drivers of CPUs publish, is no NIC's.) More than 128 devices: an error.
absl::StatusOr<NodeSlice> DecodeResourceSlice(Element slice);

}  // namespace tranche::wire
