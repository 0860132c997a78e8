// HAMi, and its ancestor 4paradigm k8s-vgpu-scheduler: the same lists under other keys.
// Source: request-dialects sections 4.3, 4.4, 5.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "scheduler/wire/agents/agent_grammars.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr int kFirstMinorWithInitSlots = 9;
constexpr int kFirstMinorWithMigJson = 10;
constexpr int64_t kMaxSlot = 10'000;

constexpr std::string_view kNode = "hami.io/vgpu-node";
constexpr std::string_view kTime = "hami.io/vgpu-time";
constexpr std::string_view kWork = "hami.io/vgpu-devices-to-allocate";
constexpr std::string_view kRecord = "hami.io/vgpu-devices-allocated";
constexpr std::string_view kMig = "hami.io/vgpu-mig-allocations";
constexpr std::string_view kPhase = "hami.io/bind-phase";
constexpr std::string_view kBindTime = "hami.io/bind-time";
constexpr std::array kHamiKeys = {kNode, kTime, kWork, kRecord, kMig, kPhase, kBindTime};

constexpr std::string_view kFourPdNode = "4pd.io/vgpu-node";
constexpr std::string_view kFourPdTime = "4pd.io/vgpu-time";
constexpr std::string_view kFourPdPhase = "4pd.io/bind-phase";
constexpr std::string_view kFourPdBindTime = "4pd.io/bind-time";
constexpr std::string_view kFourPdWork = "hami.sh/vgpu-devices-to-allocate";
constexpr std::string_view kFourPdRecord = "hami.sh/vgpu-devices-allocated";
constexpr std::string_view kFourPdOldRecord = "4pd.io/vgpu-ids-new";
constexpr std::string_view kFourPdOldWork = "4pd.io/devices-to-allocate";
constexpr std::array kFourPdKeys = {kFourPdNode, kFourPdTime,   kFourPdPhase,     kFourPdBindTime,
                                    kFourPdWork, kFourPdRecord, kFourPdOldRecord, kFourPdOldWork};

// What a Binding says of one pod.
struct Lists {
  std::string devices;
  std::string mig;  // inside of the JSON array; empty: no instance
};

void AppendMig(std::string& out, const Device& device, std::size_t slot, std::size_t index) {
  if (!out.empty()) out += ',';
  fmt::format_to(std::back_inserter(out),
                 "{{\"containerIndex\":{},\"deviceIndex\":{},\"gpuUUID\":", slot, index);
  AppendQuoted(out, device.uuid.str());
  out += ",\"profile\":";
  AppendQuoted(out, device.mig->profile);
  fmt::format_to(std::back_inserter(out), ",\"placement\":{{\"start\":{},\"size\":{}}}}}",
                 device.mig->start, device.mig->size);
}

// The containers that have a slot in the list, in its order: HAMi counts init containers first.
enum class Slotted { kApps, kAll };
std::vector<std::string_view> Slots(const PodRequest& request, Slotted slotted) {
  if (slotted == Slotted::kApps) return AppContainers(request);
  std::vector<std::string_view> names;
  for (const ContainerInfo& container : request.containers) names.push_back(container.name);
  return names;
}

Lists WriteLists(const PodRequest& request, const Allocation& allocation, Slotted slotted) {
  Lists lists;
  std::size_t slot = 0;
  for (const std::string_view name : Slots(request, slotted)) {
    const std::span<const Device> devices = DevicesOf(allocation, name);
    AppendHamiDevices(lists.devices, devices, Mebibytes::Of(1));
    lists.devices += ';';
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].mig) AppendMig(lists.mig, devices[i], slot, i);
    }
    ++slot;
  }
  return lists;
}

void WriteHami(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
               Annotations& out) {
  const Lists lists = WriteLists(
      request, allocation, call.minor >= kFirstMinorWithInitSlots ? Slotted::kAll : Slotted::kApps);
  const std::string seconds = UnixSeconds(call.now);
  out.emplace(kNode, call.node);
  out.emplace(kTime, seconds);
  out.emplace(kWork, lists.devices);
  out.emplace(kRecord, lists.devices);
  out.emplace(kPhase, "allocating");
  out.emplace(kBindTime, seconds);
  if (call.minor >= kFirstMinorWithMigJson && !lists.mig.empty()) {
    out.emplace(kMig, "[" + lists.mig + "]");
  }
}

void WriteFourPd(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
                 Annotations& out) {
  const Lists lists = WriteLists(request, allocation, Slotted::kApps);
  const std::string seconds = UnixSeconds(call.now);
  out.emplace(kFourPdNode, call.node);
  out.emplace(kFourPdTime, seconds);
  out.emplace(kFourPdWork, lists.devices);
  out.emplace(kFourPdRecord, lists.devices);
  out.emplace(kFourPdPhase, "allocating");
  out.emplace(kFourPdBindTime, seconds);
}

// A list with ";" behind every container. Its length tells whether init containers have slots.
// Slots without devices stay in, as MIG instances name them by position.
absl::StatusOr<std::vector<ContainerDevices>> ReadList(std::string_view text,
                                                       const PodRequest& request,
                                                       std::string_view key) {
  const auto slots = static_cast<std::size_t>(std::count(text.begin(), text.end(), ';'));
  const std::size_t apps = AppContainers(request).size();
  const std::size_t all = request.containers.size();
  if (slots != all && slots != apps) {
    return ErrorAt(apps == all ? fmt::format("the devices of {} containers", all)
                               : fmt::format("the devices of {} or {} containers", apps, all),
                   text, key);
  }
  std::vector<ContainerDevices> containers;
  for (const std::string_view name :
       Slots(request, slots == all ? Slotted::kAll : Slotted::kApps)) {
    const std::string_view part = TakeUntil(text, ';').value_or(std::string_view());
    TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> devices, ReadHamiDevices(part, key, name));
    containers.push_back({std::string(name), std::move(devices)});
  }
  if (!text.empty()) return ErrorAt("\";\" behind every container", text, key);
  return containers;
}

// Notes one instance at the device it names.
void ReadMigEntry(Element element, std::vector<ContainerDevices>& containers, FieldReader& reader) {
  const std::optional<Object> object = reader.AsObject(element, kMig);
  if (!object) return;
  const IntegerRange any{0, kMaxSlot};
  const std::optional<int64_t> slot = reader.ReadInteger(*object, "containerIndex", kMig, any);
  const std::optional<int64_t> index = reader.ReadInteger(*object, "deviceIndex", kMig, any);
  const std::string_view uuid = reader.ReadText(*object, "gpuUUID", kMig);
  const std::string_view profile = reader.ReadText(*object, "profile", kMig);
  const std::optional<Object> placement = reader.ReadObject(*object, "placement", kMig);
  if (!reader.ok()) return;
  // Go's encoder may leave members out that are zero.
  const auto container = static_cast<std::size_t>(slot.value_or(0));
  const auto device = static_cast<std::size_t>(index.value_or(0));
  if (container >= containers.size() || device >= containers[container].devices.size()) {
    reader.Fail(
        fmt::format("expected a device of {}, found containerIndex {} deviceIndex {}, in {}",
                    kRecord, container, device, kMig));
    return;
  }
  ContainerDevices& holder = containers[container];
  Device& target = holder.devices[device];
  const std::string where = DeviceAt(kMig, holder.container, device);
  if (target.uuid.str() != uuid) {
    reader.Fail(fmt::format("expected gpuUUID {}, found {}, in {}", Quoted(target.uuid.str()),
                            Quoted(uuid), where));
    return;
  }
  if (!IsMigProfileName(profile)) {
    reader.Fail(fmt::format("expected a MIG profile, found {}, in {}", Quoted(profile), where));
    return;
  }
  if (!placement) {
    reader.Fail(fmt::format("expected a placement, found none, in {}", where));
    return;
  }
  const IntegerRange units{0, kMaxAgentCard};
  const int64_t start = reader.ReadInteger(*placement, "start", where, units).value_or(0);
  const int64_t size = reader.ReadInteger(*placement, "size", where, units).value_or(0);
  target.mig = MigDevice{std::string(profile), static_cast<int>(start), static_cast<int>(size)};
}

absl::Status ReadMig(std::string_view text, std::vector<ContainerDevices>& containers) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(text);
  if (!document.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}, in {}", std::string(document.status().message()), kMig));
  }
  Array entries;
  if (document->get(entries) != simdjson::SUCCESS) return ErrorAt("an array", text, kMig);
  FieldReader reader;
  for (const Element entry : entries) {
    ReadMigEntry(entry, containers, reader);
    if (!reader.ok()) break;
  }
  return reader.status();
}

absl::StatusOr<std::vector<ContainerDevices>> ReadHami(const AgentValues& values,
                                                       const PodRequest& request) {
  const std::optional<std::string_view> record = ValueOf(values, kRecord);
  if (!record) return std::vector<ContainerDevices>();
  absl::StatusOr<std::vector<ContainerDevices>> containers = ReadList(*record, request, kRecord);
  if (!containers.ok()) return containers;
  if (const std::optional<std::string_view> mig = ValueOf(values, kMig)) {
    TRANCHE_RETURN_IF_ERROR(ReadMig(*mig, *containers));
  }
  return containers;
}

// The ancestor's own scheduler writes the devices of all containers without a mark between them
// and one ";" at the end; its first versions join the containers.
absl::StatusOr<std::vector<ContainerDevices>> ReadFourPd(const AgentValues& values,
                                                         const PodRequest& request) {
  const std::optional<std::string_view> record = ValueOf(values, kFourPdRecord);
  if (!record) {
    const std::optional<std::string_view> old = ValueOf(values, kFourPdOldRecord);
    if (!old) return std::vector<ContainerDevices>();
    return ReadJoinedList(*old, request, kFourPdOldRecord);
  }
  const bool run_together = std::count(record->begin(), record->end(), ';') == 1 &&
                            record->ends_with(';') && AppContainers(request).size() > 1;
  if (!run_together) return ReadList(*record, request, kFourPdRecord);
  TRANCHE_ASSIGN_OR_RETURN(
      std::vector<Device> devices,
      ReadHamiDevices(record->substr(0, record->size() - 1), kFourPdRecord, "all"));
  return DealOut(std::move(devices), request, kFourPdRecord);
}

AgentProgress HamiProgress(const AgentValues& values) {
  return PhaseProgress(ValueOf(values, kPhase));
}

AgentProgress FourPdProgress(const AgentValues& values) {
  return PhaseProgress(ValueOf(values, kFourPdPhase));
}

}  // namespace

constinit const AgentGrammar kHamiGrammar = {
    AgentKind::kHami, RequestStyle::kNone, kNode, kHamiKeys, {}, WriteHami, ReadHami, HamiProgress};

constinit const AgentGrammar kFourPdGrammar = {
    AgentKind::kFourPd, RequestStyle::kNone, kFourPdNode,   kFourPdKeys, {},
    WriteFourPd,        ReadFourPd,          FourPdProgress};

}  // namespace tranche::wire
