// HAMi's device register: text up to 2.7.1 (and of its ancestor), JSON from 2.8 on.
// Source: request-dialects sections 4.2, 5.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/register_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr int kTextMinor = 4;
constexpr int kJsonMinor = 9;
constexpr int kMigProfilesMinor = 10;
constexpr int64_t kMaxMigUnits = 63;
constexpr std::string_view kDefaultMode = "hami-core";

// "<uuid>,<slots>,<MiB>,<cores>,<type>,<numa>,<health>[,<index>,<mode>]"
absl::StatusOr<AgentDevice> ReadTextDevice(std::string_view text, std::size_t position) {
  DeviceFields entry(text, position);
  if (entry.size() != 7 && entry.size() != 9) {
    entry.Fail("7 or 9 fields", text, "the fields");
    return entry.status();
  }
  AgentDevice device;
  device.uuid = GpuUuid(entry.Text(0, "uuid"));
  device.slots = static_cast<int>(entry.Integer(1, "count", {0, kMaxRegisterSlots}));
  device.memory = Mebibytes::Of(entry.Integer(2, "devmem", {0, INT32_MAX}));
  device.cores_percent = static_cast<int>(entry.Integer(3, "devcore", {0, kMaxRegisterCores}));
  device.type = entry.Text(4, "type");
  device.numa = static_cast<int>(entry.Integer(5, "numa", {-1, kMaxRegisterNuma}));
  device.healthy = entry.Bool(6, "health");
  // The short form has no index; devices are listed in the driver's order.
  device.index = static_cast<int>(position);
  device.mode = kDefaultMode;
  if (entry.size() == 9) {
    device.index = static_cast<int>(entry.Integer(7, "index", {0, kMaxRegisterIndex}));
    device.mode = entry.Text(8, "mode");
  }
  if (!entry.status().ok()) return entry.status();
  return device;
}

absl::StatusOr<AgentRegister> ReadText(std::string_view text) {
  TRANCHE_ASSIGN_OR_RETURN(std::vector<AgentDevice> devices, ReadDeviceList(text, ReadTextDevice));
  AgentRegister found;
  found.minor = kTextMinor;
  found.devices = std::move(devices);
  return found;
}

AgentMigProfile ReadProfile(Object object, std::string_view where, FieldReader& reader) {
  AgentMigProfile profile;
  profile.name = reader.ReadText(object, "name", where);
  if (profile.name.empty()) reader.Fail(fmt::format("expected a name, found none, in {}", where));
  profile.memory =
      Mebibytes::Of(reader.ReadInteger(object, "memoryMB", where, {0, INT32_MAX}).value_or(0));
  profile.cores_percent = static_cast<int>(
      reader.ReadInteger(object, "core", where, {0, kMaxRegisterCores}).value_or(0));
  for (const Object placement :
       reader.Objects(reader.ReadArray(object, "placements", where), where)) {
    const auto read = [&](std::string_view key) {
      return static_cast<int>(
          reader.ReadInteger(placement, key, where, {0, kMaxMigUnits}).value_or(0));
    };
    profile.placements.emplace_back(read("start"), read("size"));
  }
  return profile;
}

// Go leaves out zero values, so an absent member is zero, "" or false.
AgentDevice ReadJsonDevice(Object object, const std::string& where, FieldReader& reader) {
  const auto read = [&](std::string_view key, IntegerRange range) {
    return reader.ReadInteger(object, key, where, range).value_or(0);
  };
  AgentDevice device;
  device.uuid = GpuUuid(reader.ReadText(object, "id", where));
  if (device.uuid.empty()) reader.Fail(fmt::format("expected a uuid, found none, in {}.id", where));
  device.index = static_cast<int>(read("index", {0, kMaxRegisterIndex}));
  device.slots = static_cast<int>(read("count", {0, kMaxRegisterSlots}));
  device.memory = Mebibytes::Of(read("devmem", {0, INT32_MAX}));
  device.cores_percent = static_cast<int>(read("devcore", {0, kMaxRegisterCores}));
  device.type = reader.ReadText(object, "type", where);
  device.numa = static_cast<int>(read("numa", {-1, kMaxRegisterNuma}));
  const std::string_view mode = reader.ReadText(object, "mode", where);
  device.mode = mode.empty() ? kDefaultMode : mode;
  device.healthy = reader.ReadBool(object, "health", where).value_or(false);
  const std::string profile_where = where + ".migProfiles";
  for (const Object profile :
       reader.Objects(reader.ReadArray(object, "migProfiles", where), profile_where)) {
    device.mig_profiles.push_back(ReadProfile(profile, profile_where, reader));
  }
  return device;
}

absl::StatusOr<AgentRegister> ReadJson(std::string_view text) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(text));
  Array devices;
  if (document.get(devices) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("expected array, found {}, in the register", DescribeElement(document)));
  }
  FieldReader reader;
  AgentRegister found;
  found.minor = kJsonMinor;
  for (const Element element : devices) {
    if (found.devices.size() > kMaxRegisterDevices || !reader.ok()) break;
    const std::string where = fmt::format("device {}", found.devices.size());
    const std::optional<Object> object = reader.AsObject(element, where);
    if (!object) break;
    found.devices.push_back(ReadJsonDevice(*object, where, reader));
    if (Find(*object, "migProfiles")) found.minor = kMigProfilesMinor;
  }
  if (!reader.ok()) return reader.status();
  return found;
}

}  // namespace

absl::StatusOr<AgentRegister> ParseHamiRegister(std::string_view text) {
  text = Trimmed(text);
  absl::StatusOr<AgentRegister> found = text.starts_with('[') ? ReadJson(text) : ReadText(text);
  if (!found.ok()) return found;
  TRANCHE_RETURN_IF_ERROR(OrderDevices(found->devices));
  return found;
}

absl::StatusOr<AgentRegister> ParseFourPdRegister(std::string_view text) {
  absl::StatusOr<AgentRegister> found = ReadText(Trimmed(text));
  if (!found.ok()) return found;
  found->kind = AgentKind::kFourPd;
  found->minor = 0;
  TRANCHE_RETURN_IF_ERROR(OrderDevices(found->devices));
  return found;
}

}  // namespace tranche::wire
