// What a claim costs its namespace's quota, in the unit every other pod is charged in.
//
// Only devices of gpu.nvidia.com cost anything. A whole GPU costs a whole GPU; a MIG instance its
// compute slices and memory units of the board, as the catalogue or else the counters it consumes
// say; a part of a device with several allocations its memory in whole MiB (compute mirrors it, as
// for everyone who asks for memory alone) or its shares. adminAccess costs nothing. A claim is
// charged once however many pods refer to it, and to its own namespace. Where nothing can be
// measured (a device in no slice, a share without an amount) a whole GPU is charged: unknown
// is busy. Pure but for Selectors; cost linear in the claim's or the node's devices.
// Source: quota-model section 1, dra facts sections 5 and 7.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "quota/tree/model_charge.h"
#include "scheduler/dra/free.h"
#include "scheduler/dra/model.h"
#include "scheduler/dra/selectors.h"

namespace tranche::dra {

// Devices and counter sets by name, of each pool's newest generation; a view of the slices. What a
// device is that this does not name, slices of older generations tell, as long as they are there:
// a pool that is published anew is told slice by slice.
class DeviceTable {
 public:
  struct Entry {
    const Device* device = nullptr;
    const std::vector<const CounterSet*>* counters = nullptr;  // of its pool; null: an older one
  };
  DeviceTable() = default;
  explicit DeviceTable(std::span<const Slice* const> slices);
  // device nullptr: it is in no slice.
  Entry Find(const DeviceId& id) const;

 private:
  struct PoolEntry {
    int64_t generation = 0;
    std::vector<const CounterSet*> counters;
    std::map<std::string, const Device*, std::less<>> devices;
    std::map<std::string, const Device*, std::less<>> older;
  };
  std::map<std::pair<std::string, std::string>, PoolEntry> pools_;
};

// By ascending model; "unknown" for devices in no slice. Requires: the claim is allocated.
std::vector<ModelCharge> ChargeOfAllocation(const Claim& claim, const DeviceTable& table);

// Before allocation: no way to meet the claim on this node is charged more. Of several choices the
// largest of each model and dimension counts; allocationMode All counts the node's matching
// devices. A device whose match is unknown counts as matching. Empty: nothing of the node matches.
std::vector<ModelCharge> ChargeAtMost(const Claim& claim, const NodeBooks& books,
                                      Selectors& selectors);

// One device alone: consumed as in an allocation result. The model it is charged as.
ModelCharge ChargeOfDevice(const AllocatedDevice& held, const DeviceTable::Entry& entry);

}  // namespace tranche::dra
