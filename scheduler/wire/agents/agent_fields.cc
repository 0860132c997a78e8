// What the agents' grammars share: fields, lists of cards, and HAMi's device text.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "scheduler/wire/agents/agent_grammars.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kVendorWord = "NVIDIA";

// "GPU-a,NVIDIA,8000,30"
absl::StatusOr<Device> ReadHamiDevice(std::string_view text, std::string_view where) {
  const std::vector<std::string_view> fields = SplitList(text);
  if (fields.size() != 4) {
    return ErrorAt("uuid,NVIDIA,<memory>,<percent of cores>", text, where);
  }
  // A template and slot behind the uuid (HAMi 2.5 to 2.9 and Volcano on MIG cards) names an
  // instance whose place only the agent's configuration tells.
  if (fields[0].find('[') != std::string_view::npos) {
    return ErrorAt("a uuid without MIG template", fields[0], where);
  }
  TRANCHE_ASSIGN_OR_RETURN(const GpuUuid uuid, ReadUuid(fields[0], where));
  if (fields[1] != kVendorWord) return ErrorAt("the device type NVIDIA", fields[1], where);
  TRANCHE_ASSIGN_OR_RETURN(const Mebibytes memory, ReadMebibytes(fields[2], where));
  TRANCHE_ASSIGN_OR_RETURN(const MilliGpu milli, ReadCoresPercent(fields[3], where));
  return Device{0, uuid, milli, memory, std::nullopt};
}

int64_t AskedOf(const PodRequest& request, std::size_t container) {
  int64_t sum = 0;
  for (const Ask& ask : request.asks) {
    if (ask.container == static_cast<int>(container)) sum += ask.count;
  }
  return sum;
}

bool IsApp(const ContainerInfo& container) { return container.role == ContainerRole::kApp; }

}  // namespace

std::string ContainerAt(std::string_view key, std::string_view container) {
  return fmt::format("container {} of {}", Quoted(container), key);
}

std::string DeviceAt(std::string_view key, std::string_view container, std::size_t device) {
  return fmt::format("device {} of {}", device, ContainerAt(key, container));
}

absl::Status ErrorAt(std::string_view expected, std::string_view found, std::string_view where) {
  return absl::InvalidArgumentError(
      fmt::format("expected {}, found {}, in {}", expected, Quoted(found), where));
}

std::optional<std::string_view> ValueOf(const AgentValues& values, std::string_view key) {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::span<const Device> DevicesOf(const Allocation& allocation, std::string_view container) {
  for (const ContainerDevices& entry : allocation.containers) {
    if (entry.container == container) return entry.devices;
  }
  return {};
}

std::vector<std::string_view> AppContainers(const PodRequest& request) {
  std::vector<std::string_view> names;
  for (const ContainerInfo& container : request.containers) {
    if (IsApp(container)) names.push_back(container.name);
  }
  return names;
}

int64_t CoresPercent(MilliGpu milli) {
  if (milli == MilliGpu::Zero()) return 0;
  return std::max<int64_t>(1, milli.count() / kMilliPerPercent);
}

std::string UnixSeconds(Instant now) {
  return std::to_string(std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
}

std::string WriteCards(std::span<const Device> devices, char separator) {
  std::string out;
  for (const Device& device : devices) {
    if (!out.empty()) out += separator;
    out += std::to_string(device.card);
  }
  return out;
}

absl::StatusOr<std::vector<Device>> ReadCards(std::string_view text, CardList form,
                                              std::string_view where) {
  std::vector<Device> devices;
  while (true) {
    const std::optional<std::string_view> before = TakeUntil(text, form.separator);
    TRANCHE_ASSIGN_OR_RETURN(const int card, ReadCard(before.value_or(text), where));
    if (devices.size() == kMaxAgentDevices) {
      return ErrorAt(fmt::format("at most {} cards", kMaxAgentDevices), text, where);
    }
    const bool seen = std::any_of(devices.begin(), devices.end(),
                                  [&](const Device& other) { return other.card == card; });
    if (seen && !form.repeats) {
      return ErrorAt("different cards", before.value_or(text), where);
    }
    devices.emplace_back().card = card;
    if (!before) return devices;
  }
}

std::vector<Device> CardsOfPod(const Allocation& allocation) {
  std::vector<Device> cards;
  for (const ContainerDevices& container : allocation.containers) {
    cards.insert(cards.end(), container.devices.begin(), container.devices.end());
  }
  const auto by_card = [](const Device& left, const Device& right) {
    return left.card < right.card;
  };
  std::stable_sort(cards.begin(), cards.end(), by_card);
  const auto same = [](const Device& left, const Device& right) { return left.card == right.card; };
  cards.erase(std::unique(cards.begin(), cards.end(), same), cards.end());
  return cards;
}

absl::StatusOr<GpuUuid> ReadUuid(std::string_view text, std::string_view where) {
  if (text.empty()) return ErrorAt("a uuid", text, where);
  if (text.size() > kMaxUuidBytes) {
    return ErrorAt(fmt::format("a uuid of at most {} bytes", kMaxUuidBytes), text, where);
  }
  return GpuUuid(text);
}

absl::StatusOr<int> ReadCard(std::string_view text, std::string_view where) {
  const std::optional<int64_t> card = ParsePlainInteger(text);
  if (!card || *card < 0 || *card > kMaxAgentCard) {
    return ErrorAt(fmt::format("a card from 0 to {}", kMaxAgentCard), text, where);
  }
  return static_cast<int>(*card);
}

absl::StatusOr<Mebibytes> ReadMebibytes(std::string_view text, std::string_view where) {
  const std::optional<int64_t> mib = ParsePlainInteger(text);
  if (!mib || *mib < 0 || *mib > INT32_MAX) return ErrorAt("memory in MiB", text, where);
  return Mebibytes::Of(*mib);
}

absl::StatusOr<MilliGpu> ReadCoresPercent(std::string_view text, std::string_view where) {
  const std::optional<int64_t> percent = ParsePlainInteger(text);
  if (!percent || *percent < 0 || *percent > 100) {
    return ErrorAt("cores from 0 to 100 percent", text, where);
  }
  return MilliGpu::Of(*percent * kMilliPerPercent);
}

absl::StatusOr<std::vector<ContainerDevices>> DealOut(std::vector<Device> devices,
                                                      const PodRequest& request,
                                                      std::string_view key) {
  std::vector<std::pair<std::size_t, int64_t>> asking;  // container, how many
  int64_t all = 0;
  for (std::size_t c = 0; c < request.containers.size(); ++c) {
    const int64_t count = AskedOf(request, c);
    if (count > 0) asking.emplace_back(c, count);
    all += count;
  }
  const auto size = static_cast<int64_t>(devices.size());
  if (asking.empty()) {
    const auto first = std::find_if(request.containers.begin(), request.containers.end(), IsApp);
    if (first == request.containers.end()) {
      return absl::InvalidArgumentError(
          fmt::format("expected a container to hold devices, found none, in {}", key));
    }
    return std::vector<ContainerDevices>{{first->name, std::move(devices)}};
  }
  const bool to_everyone =
      all != size && std::all_of(asking.begin(), asking.end(),
                                 [&](const auto& entry) { return entry.second == size; });
  if (all != size && !to_everyone) {
    return absl::InvalidArgumentError(
        fmt::format("expected {} devices as asked for, found {}, in {}", all, size, key));
  }
  if (to_everyone) {
    for (Device& device : devices) {
      device.milli = MilliGpu::Zero();
      device.memory = Mebibytes::Zero();
    }
  }
  std::vector<ContainerDevices> containers;
  auto next = devices.begin();
  for (const auto& [container, count] : asking) {
    if (to_everyone) next = devices.begin();
    containers.push_back({request.containers[container].name, {next, next + count}});
    next += count;
  }
  return containers;
}

void AppendHamiDevices(std::string& out, std::span<const Device> devices, Mebibytes unit) {
  for (const Device& device : devices) {
    // No memory at all would mean "no limit" to the agent.
    const int64_t memory = device.memory == Mebibytes::Zero()
                               ? 0
                               : std::max<int64_t>(1, device.memory.count() / unit.count());
    fmt::format_to(std::back_inserter(out), "{},{},{},{}:", device.uuid.str(), kVendorWord, memory,
                   CoresPercent(device.milli));
  }
}

absl::StatusOr<std::vector<Device>> ReadHamiDevices(std::string_view text, std::string_view key,
                                                    std::string_view container) {
  std::vector<Device> devices;
  while (const std::optional<std::string_view> entry = TakeUntil(text, ':')) {
    const std::string where = DeviceAt(key, container, devices.size());
    if (devices.size() == kMaxAgentDevices) {
      return ErrorAt(fmt::format("at most {} devices", kMaxAgentDevices), *entry, where);
    }
    TRANCHE_ASSIGN_OR_RETURN(Device device, ReadHamiDevice(*entry, where));
    devices.push_back(std::move(device));
  }
  if (!text.empty()) {
    return ErrorAt("\":\" behind every device", text, ContainerAt(key, container));
  }
  return devices;
}

absl::StatusOr<std::vector<ContainerDevices>> ReadJoinedList(std::string_view text,
                                                             const PodRequest& request,
                                                             std::string_view key) {
  const std::vector<std::string_view> apps = AppContainers(request);
  std::vector<std::string_view> asking;
  for (std::size_t c = 0; c < request.containers.size(); ++c) {
    if (IsApp(request.containers[c]) && AskedOf(request, c) > 0) {
      asking.push_back(request.containers[c].name);
    }
  }
  const auto parts = static_cast<std::size_t>(std::count(text.begin(), text.end(), ';')) + 1;
  if (parts != apps.size() && parts != asking.size()) {
    return ErrorAt(fmt::format("the devices of {} containers", apps.size()), text, key);
  }
  std::vector<ContainerDevices> containers;
  for (const std::string_view name : parts == apps.size() ? apps : asking) {
    const std::string_view part = TakeUntil(text, ';').value_or(text);
    TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> devices, ReadHamiDevices(part, key, name));
    containers.push_back({std::string(name), std::move(devices)});
  }
  return containers;
}

AgentProgress PhaseProgress(std::optional<std::string_view> phase) {
  if (phase == "allocating") return AgentProgress::kWaiting;
  if (phase == "success") return AgentProgress::kServed;
  if (phase == "failed") return AgentProgress::kFailed;
  return AgentProgress::kUnknown;
}

}  // namespace tranche::wire
