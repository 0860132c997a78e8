// Registers of the Volcano vGPU plugin and of vgpu-manager. HAMi's are in hami_register.cc.
#include "scheduler/wire/nodes/agent_registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/nodes/register_fields.h"
#include "topology/base/status.h"
#include "topology/gpu_model.h"

namespace tranche::wire {
namespace {

constexpr int kAllCores = 100;
constexpr int64_t kMaxFactor = 1 << 20;

// "<uuid>,<slots>,<memory>,<type>,<health>,<mode>"; older plugins leave the mode out. Devices are
// listed in the driver's order. The memory stays in the plugin's units.
absl::StatusOr<AgentDevice> ReadVolcanoDevice(std::string_view text, std::size_t position) {
  DeviceFields fields(text, position);
  if (fields.size() != 5 && fields.size() != 6) {
    fields.Fail("5 or 6 fields", text, "the fields");
    return fields.status();
  }
  AgentDevice device;
  device.index = static_cast<int>(position);
  device.uuid = GpuUuid(fields.Text(0, "uuid"));
  device.slots = static_cast<int>(fields.Integer(1, "count", {0, kMaxRegisterSlots}));
  device.memory = Mebibytes::Of(fields.Integer(2, "memory", {0, INT32_MAX}));
  device.type = fields.Text(3, "type");
  device.healthy = fields.Bool(4, "health");
  device.mode = fields.size() == 6 ? fields.Text(5, "mode") : "hami-core";
  device.cores_percent = kAllCores;
  if (!fields.status().ok()) return fields.status();
  return device;
}

AgentDevice ReadVgpuDevice(Object object, const std::string& where, FieldReader& reader) {
  const auto read = [&](std::string_view key, IntegerRange range) {
    return reader.ReadInteger(object, key, where, range).value_or(0);
  };
  AgentDevice device;
  device.uuid = GpuUuid(reader.ReadText(object, "uuid", where));
  if (device.uuid.empty()) {
    reader.Fail(fmt::format("expected a uuid, found none, in {}.uuid", where));
  }
  device.index = static_cast<int>(read("id", {0, kMaxRegisterIndex}));
  device.slots = static_cast<int>(read("number", {0, kMaxRegisterSlots}));
  device.memory = Mebibytes::Of(read("memory", {0, INT32_MAX}));
  device.cores_percent = static_cast<int>(read("core", {0, kMaxRegisterCores}));
  device.type = reader.ReadText(object, "type", where);
  const int64_t numa = read("numa", {-1, kMaxRegisterNuma});
  if (numa >= 0) device.numa = static_cast<int>(numa);
  // vgpu-manager divides no card in MIG mode.
  if (reader.ReadBool(object, "mig", where).value_or(false)) device.mode = "mig";
  device.healthy = reader.ReadBool(object, "healthy", where).value_or(false);
  return device;
}

// The document as `Wanted`; `what` for the error text.
template <typename Wanted>
absl::StatusOr<Wanted> ParseAs(std::string_view text, Parser& parser, std::string_view expected,
                               std::string_view what) {
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(text));
  Wanted found;
  if (document.get(found) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("expected {}, found {}, in {}", expected, DescribeElement(document), what));
  }
  return found;
}

absl::StatusOr<Mebibytes> ReadMemoryFactor(std::string_view config) {
  if (Trimmed(config).empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "expected annotation {} beside the register, found none", kVgpuManagerConfigKey));
  }
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Object object,
                           ParseAs<Object>(config, parser, "object", kVgpuManagerConfigKey));
  FieldReader reader;
  const int64_t factor =
      reader.ReadInteger(object, "memoryFactor", kVgpuManagerConfigKey, {0, kMaxFactor})
          .value_or(1);
  if (!reader.ok()) return reader.status();
  return Mebibytes::Of(std::max<int64_t>(factor, 1));
}

}  // namespace

absl::StatusOr<AgentRegister> ParseVolcanoRegister(std::string_view text,
                                                   std::optional<Mebibytes> card_memory) {
  TRANCHE_ASSIGN_OR_RETURN(std::vector<AgentDevice> devices,
                           ReadDeviceList(Trimmed(text), ReadVolcanoDevice));
  AgentRegister found;
  found.kind = AgentKind::kVolcano;
  found.devices = std::move(devices);
  TRANCHE_RETURN_IF_ERROR(OrderDevices(found.devices));
  if (found.devices.empty()) return found;
  const AgentDevice& first = found.devices.front();
  const Mebibytes known = CatalogueMemory(first.type);
  if (!card_memory && known > Mebibytes::Zero()) card_memory = known;
  found.memory_unit = UnitOf(first.memory.count(), card_memory);
  for (AgentDevice& device : found.devices) {
    device.memory = found.memory_unit * device.memory.count();
  }
  return found;
}

absl::StatusOr<AgentRegister> ParseVgpuManagerRegister(std::string_view devices,
                                                       std::string_view config) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Array list,
                           ParseAs<Array>(devices, parser, "array", "the register"));
  FieldReader reader;
  AgentRegister found;
  found.kind = AgentKind::kVgpuManager;
  for (const Element element : list) {
    if (found.devices.size() > kMaxRegisterDevices || !reader.ok()) break;
    const std::string where = fmt::format("device {}", found.devices.size());
    const std::optional<Object> object = reader.AsObject(element, where);
    if (!object) break;
    found.devices.push_back(ReadVgpuDevice(*object, where, reader));
  }
  if (!reader.ok()) return reader.status();
  TRANCHE_RETURN_IF_ERROR(OrderDevices(found.devices));
  TRANCHE_ASSIGN_OR_RETURN(found.memory_unit, ReadMemoryFactor(config));
  return found;
}

}  // namespace tranche::wire
