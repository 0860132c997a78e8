// Devices, slices and claims as tests of the dra room write them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/dra/model.h"

namespace tranche::dra {

inline void Sort(Device& device) {
  const auto by_name = [](const auto& left, const auto& right) { return left.name < right.name; };
  std::sort(device.attributes.begin(), device.attributes.end(), by_name);
  std::sort(device.capacities.begin(), device.capacities.end(), by_name);
}

inline Quantity Mib(int64_t count) { return Quantity::Whole(count * 1024 * 1024); }

inline Device GpuDevice(std::string name, std::string uuid, std::string product, int64_t mib) {
  Device device;
  device.name = std::move(name);
  const std::string domain(kGpuDriver);
  device.attributes = {{{domain, "type"}, std::string("gpu")},
                       {{domain, "uuid"}, std::move(uuid)},
                       {{domain, "productName"}, std::move(product)}};
  device.capacities = {{{domain, "memory"}, Mib(mib), {}}};
  Sort(device);
  return device;
}

inline Device MigDevice(std::string name, std::string profile, std::string parent,
                        std::string product, int64_t mib) {
  Device device = GpuDevice(name, "MIG-" + name, std::move(product), mib);
  const std::string domain(kGpuDriver);
  for (Attribute& attribute : device.attributes) {
    if (attribute.name.name == "type") attribute.value = std::string("mig");
  }
  device.attributes.push_back({{domain, "profile"}, std::move(profile)});
  device.attributes.push_back({{domain, "parentUUID"}, std::move(parent)});
  Sort(device);
  return device;
}

// One pool named as its node, in one slice.
inline Slice NodeSlice(const std::string& node, std::vector<Device> devices) {
  Slice slice;
  slice.name = node + "-slice";
  slice.driver = std::string(kGpuDriver);
  slice.pool = node;
  slice.generation = 1;
  slice.slice_count = 1;
  slice.node.kind = NodeChoice::Kind::kName;
  slice.node.name = NodeName(node);
  slice.devices = std::move(devices);
  return slice;
}

inline RequestChoice Choice(std::string device_class, std::vector<std::string> selectors = {},
                            int64_t count = 1) {
  RequestChoice choice;
  choice.device_class = std::move(device_class);
  choice.selectors = std::move(selectors);
  choice.count = count;
  return choice;
}

inline Claim ClaimOf(std::string name, std::vector<Request> requests) {
  Claim claim;
  claim.ns = "team";
  claim.name = std::move(name);
  claim.uid = claim.name + "-uid";
  claim.requests = std::move(requests);
  return claim;
}

inline AllocatedDevice Held(std::string request, const std::string& node, std::string device) {
  AllocatedDevice held;
  held.request = std::move(request);
  held.id = {std::string(kGpuDriver), node, std::move(device)};
  return held;
}

inline Claim Holding(Claim claim, std::vector<AllocatedDevice> devices) {
  claim.allocation.emplace();
  claim.allocation->devices = std::move(devices);
  return claim;
}

inline DeviceClass ClassOf(std::string name, std::vector<std::string> selectors) {
  DeviceClass result;
  result.name = std::move(name);
  result.selectors = std::move(selectors);
  return result;
}

inline std::vector<DeviceClass> NvidiaClasses() {
  return {ClassOf("gpu.nvidia.com", {"device.driver == 'gpu.nvidia.com' && "
                                     "device.attributes['gpu.nvidia.com'].type == 'gpu'"}),
          ClassOf("mig.nvidia.com", {"device.driver == 'gpu.nvidia.com' && "
                                     "device.attributes['gpu.nvidia.com'].type == 'mig'"})};
}

}  // namespace tranche::dra
