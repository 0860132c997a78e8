#include "test/sim/claims/device_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tranche::sim {
namespace {

// NVML's names; GFD's labels have dashes for blanks.
std::string ProductNameOf(const Machine& machine) {
  static const std::map<std::string, std::string> kNames = {
      {"NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"},
      {"NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"},
      {"Tesla-T4", "Tesla T4"}};
  return kNames.at(machine.product);
}

Json Text(const std::string& value) { return {{"string", value}}; }

std::string Mebibytes(int64_t mib) { return std::to_string(mib) + "Mi"; }

Json DeviceObject(const Machine& machine, const DraDevice& device) {
  const std::string& card = machine.cards[static_cast<std::size_t>(device.card)];
  const auto numa = device.card * 2 >= static_cast<int>(machine.cards.size()) ? 1 : 0;
  Json attributes = {{"uuid", Text(device.uuid)},
                     {"productName", Text(ProductNameOf(machine))},
                     {"resource.kubernetes.io/numaNode", {{"int", numa}}}};
  Json capacity;
  if (device.instance < 0) {
    attributes["type"] = Text("gpu");
    capacity["memory"] = {{"value", Mebibytes(machine.mib)}};
  } else {
    const MigInstance& cut = machine.instances[static_cast<std::size_t>(device.instance)];
    attributes["type"] = Text("mig");
    attributes["profile"] = Text(cut.profile);
    attributes["parentUUID"] = Text(card);
    capacity["memory"] = {{"value", Mebibytes(cut.mib)}};
    for (int slice = cut.start; slice < cut.start + cut.size; ++slice) {
      capacity[fmt::format("memorySlice{}", slice)] = {{"value", "1"}};
    }
  }
  return {{"name", device.name}, {"attributes", attributes}, {"capacity", capacity}};
}

Json Class(const char* name, const char* type) {
  const std::string selector =
      fmt::format("device.driver == '{}' && device.attributes['{}'].type == '{}'", kDraDriver,
                  kDraDriver, type);
  return {{"apiVersion", kDraVersion},
          {"kind", "DeviceClass"},
          {"metadata", {{"name", name}}},
          {"spec", {{"selectors", Json::array({{{"cel", {{"expression", selector}}}}})}}}};
}

}  // namespace

std::vector<DraDevice> DevicesOf(const Machine& machine) {
  std::vector<DraDevice> devices;
  for (int card = 0; card < static_cast<int>(machine.cards.size()); ++card) {
    const bool cut = std::ranges::any_of(
        machine.instances, [card](const MigInstance& one) { return one.card == card; });
    if (cut) continue;
    devices.push_back(
        {fmt::format("gpu-{}", card), machine.cards[static_cast<std::size_t>(card)], card, -1});
  }
  for (int i = 0; i < static_cast<int>(machine.instances.size()); ++i) {
    const MigInstance& cut = machine.instances[static_cast<std::size_t>(i)];
    std::string profile = cut.profile;
    std::erase(profile, '.');
    devices.push_back(
        {fmt::format("gpu-{}-mig-{}-{}", cut.card, profile, cut.start),
         fmt::format("MIG-{}-{}", machine.cards[static_cast<std::size_t>(cut.card)], cut.start),
         cut.card, i});
  }
  return devices;
}

std::vector<Json> SlicesOf(const Machine& machine, int64_t generation, int slices,
                           const std::set<std::string>& away) {
  std::vector<Json> out;
  for (int i = 0; i < slices; ++i) {
    out.push_back(
        {{"apiVersion", kDraVersion},
         {"kind", "ResourceSlice"},
         {"metadata", {{"name", fmt::format("{}-{}-{}", machine.name, kDraDriver, i)}}},
         {"spec",
          {{"driver", kDraDriver},
           {"nodeName", machine.name},
           {"pool",
            {{"name", machine.name}, {"generation", generation}, {"resourceSliceCount", slices}}},
           {"devices", Json::array()}}}});
  }
  const std::vector<DraDevice> devices = DevicesOf(machine);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (away.contains(devices[i].name)) continue;
    const std::size_t at = i * static_cast<std::size_t>(slices) / devices.size();
    out[at]["spec"]["devices"].push_back(DeviceObject(machine, devices[i]));
  }
  return out;
}

std::vector<Json> DraClasses(bool serves_gpus) {
  Json whole = Class("gpu.nvidia.com", "gpu");
  if (serves_gpus) whole["spec"]["extendedResourceName"] = "nvidia.com/gpu";
  return {std::move(whole), Class("mig.nvidia.com", "mig")};
}

}  // namespace tranche::sim
