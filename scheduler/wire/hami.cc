#include "scheduler/wire/hami.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "scheduler/wire/json.h"
#include "scheduler/wire/text_fields.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kVendorWord = "NVIDIA";
constexpr std::size_t kMaxDevicesPerContainer = 64;
constexpr int64_t kMilliPerPercent = 10;
constexpr int kFirstMinorWithInitSlots = 9;
constexpr int kFirstMinorWithMigJson = 10;

absl::Status Expected(std::string_view what, std::string_view found, std::string_view where) {
  return absl::InvalidArgumentError(
      fmt::format("expected {}, found {}, in {}", what, Quoted(found), where));
}

// "GPU-a,NVIDIA,8000,30"
absl::StatusOr<Device> ParseDevice(std::string_view text, const std::string& where) {
  const std::vector<std::string_view> fields = SplitList(text);
  if (fields.size() != 4) {
    return Expected("uuid,NVIDIA,<MiB>,<percent of cores>", text, where);
  }
  if (fields[0].empty()) return Expected("a uuid", fields[0], where);
  // A template and slot behind the uuid (HAMi 2.5 to 2.9 on MIG cards) names an instance whose
  // place only the agent's configuration tells.
  if (fields[0].find('[') != std::string_view::npos) {
    return Expected("a uuid without MIG template", fields[0], where);
  }
  if (fields[1] != kVendorWord) return Expected("the device type NVIDIA", fields[1], where);
  const std::optional<int64_t> mib = ParsePlainInteger(fields[2]);
  if (!mib || *mib < 0 || *mib > INT32_MAX) return Expected("memory in MiB", fields[2], where);
  const std::optional<int64_t> cores = ParsePlainInteger(fields[3]);
  if (!cores || *cores < 0 || *cores > 100) {
    return Expected("cores from 0 to 100 percent", fields[3], where);
  }
  Device device;
  device.uuid = GpuUuid(fields[0]);
  device.memory = Mebibytes::Of(*mib);
  device.milli = MilliGpu::Of(*cores * kMilliPerPercent);
  return device;
}

absl::StatusOr<ContainerDevices> ParseContainer(std::string_view text, const std::string& name) {
  ContainerDevices container{name, {}};
  while (const std::optional<std::string_view> entry = TakeUntil(text, ':')) {
    const std::string where =
        fmt::format("device {} of container {}", container.devices.size(), Quoted(name));
    if (container.devices.size() == kMaxDevicesPerContainer) {
      return Expected("at most 64 devices", *entry, where);
    }
    absl::StatusOr<Device> device = ParseDevice(*entry, where);
    if (!device.ok()) return device.status();
    container.devices.push_back(*std::move(device));
  }
  if (!text.empty()) {
    return Expected("\":\" behind every device", text, fmt::format("container {}", Quoted(name)));
  }
  return container;
}

// Below 1 percent HAMi would read "no limit", so a share keeps at least 1; above, shares of one
// card must not add up to more than the card, so the percentage is rounded down.
int64_t CoresPercent(MilliGpu milli) {
  if (milli == MilliGpu::Zero()) return 0;
  return std::max<int64_t>(1, milli.count() / kMilliPerPercent);
}

// What the binding says of one pod: the device list and the MIG instances in it.
struct DeviceLists {
  std::string devices;
  std::string mig;  // JSON array; "[" when there is no instance
};

void AppendMig(std::string& out, const Device& device, std::size_t slot, std::size_t index) {
  if (out.size() > 1) out += ',';
  fmt::format_to(std::back_inserter(out),
                 "{{\"containerIndex\":{},\"deviceIndex\":{},\"gpuUUID\":", slot, index);
  AppendQuoted(out, device.uuid.str());
  out += ",\"profile\":";
  AppendQuoted(out, device.mig->profile);
  fmt::format_to(std::back_inserter(out), ",\"placement\":{{\"start\":{},\"size\":{}}}}}",
                 device.mig->start, device.mig->size);
}

DeviceLists WriteLists(const PodRequest& request, const Allocation& allocation, bool init_slots) {
  std::unordered_map<std::string_view, const ContainerDevices*> by_name;
  for (const ContainerDevices& container : allocation.containers) {
    by_name.emplace(container.container, &container);
  }
  DeviceLists lists{"", "["};
  std::size_t slot = 0;
  for (const ContainerInfo& info : request.containers) {
    if (info.role != ContainerRole::kApp && !init_slots) continue;
    const auto found = by_name.find(info.name);
    if (found != by_name.end()) {
      const std::vector<Device>& devices = found->second->devices;
      for (std::size_t i = 0; i < devices.size(); ++i) {
        fmt::format_to(std::back_inserter(lists.devices), "{},{},{},{}:", devices[i].uuid.str(),
                       kVendorWord, devices[i].memory.count(), CoresPercent(devices[i].milli));
        if (devices[i].mig) AppendMig(lists.mig, devices[i], slot, i);
      }
    }
    lists.devices += ';';
    ++slot;
  }
  return lists;
}

}  // namespace

std::map<std::string, std::string> HamiBindingAnnotations(const PodRequest& request,
                                                          const Allocation& allocation,
                                                          std::string_view node, int hami_minor,
                                                          Instant now) {
  const DeviceLists lists = WriteLists(request, allocation, hami_minor >= kFirstMinorWithInitSlots);
  const std::string seconds =
      std::to_string(std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
  std::map<std::string, std::string> annotations = {
      {"hami.io/vgpu-node", std::string(node)},
      {"hami.io/vgpu-time", seconds},
      {"hami.io/vgpu-devices-to-allocate", lists.devices},
      {"hami.io/vgpu-devices-allocated", lists.devices},
      {"hami.io/bind-phase", "allocating"},
      {"hami.io/bind-time", seconds},
  };
  if (hami_minor >= kFirstMinorWithMigJson && lists.mig.size() > 1) {
    annotations.emplace("hami.io/vgpu-mig-allocations", lists.mig + "]");
  }
  return annotations;
}

absl::StatusOr<Allocation> ParseHamiDevices(std::string_view text,
                                            const std::vector<ContainerInfo>& containers) {
  const auto slots = static_cast<std::size_t>(std::count(text.begin(), text.end(), ';'));
  const auto apps = static_cast<std::size_t>(std::count_if(
      containers.begin(), containers.end(),
      [](const ContainerInfo& container) { return container.role == ContainerRole::kApp; }));
  if (slots != containers.size() && slots != apps) {
    return absl::InvalidArgumentError(
        fmt::format("expected devices of {} or {} containers, found {}, in {}", apps,
                    containers.size(), slots, Quoted(text)));
  }
  const bool init_slots = slots == containers.size();
  Allocation allocation;
  allocation.knowledge = Knowledge::kExact;
  for (const ContainerInfo& info : containers) {
    if (info.role != ContainerRole::kApp && !init_slots) continue;
    const std::optional<std::string_view> part = TakeUntil(text, ';');
    absl::StatusOr<ContainerDevices> container =
        ParseContainer(part.value_or(std::string_view()), info.name);
    if (!container.ok()) return container.status();
    if (!container->devices.empty()) allocation.containers.push_back(*std::move(container));
  }
  if (!text.empty()) return Expected("\";\" behind every container", text, "the device list");
  return allocation;
}

}  // namespace tranche::wire
