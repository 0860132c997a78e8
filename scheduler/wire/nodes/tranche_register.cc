// The register of tranche-node, written by scheduler/agent/register.h.
#include <fmt/format.h>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/register_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr int64_t kVersion = 1;
constexpr int kAllCores = 100;
constexpr std::string_view kWhere = "the register";

AgentDevice ReadCard(Object object, const std::string& where, FieldReader& reader) {
  AgentDevice device;
  device.uuid = GpuUuid(reader.ReadText(object, "uuid", where));
  if (device.uuid.empty()) {
    reader.Fail(fmt::format("expected a uuid, found none, in {}.uuid", where));
  }
  const auto read = [&](std::string_view key, IntegerRange range) {
    const auto value = reader.ReadInteger(object, key, where, range);
    if (!value) {
      reader.Fail(fmt::format("expected a whole number, found none, in {}.{}", where, key));
    }
    return value.value_or(0);
  };
  device.index = static_cast<int>(read("index", {0, kMaxRegisterIndex}));
  device.memory = Mebibytes::Of(read("mib", {0, INT32_MAX}));
  device.healthy = reader.ReadBool(object, "healthy", where).value_or(false);
  device.slots = 1;
  device.cores_percent = kAllCores;
  return device;
}

void NoteProblem(Object object, const std::string& where, const AgentDevice& device,
                 FieldReader& reader, std::string& problems) {
  const std::string_view problem = reader.ReadText(object, "problem", where);
  if (problem.empty()) return;
  problems += fmt::format("{}GPU {} ({}): {}", problems.empty() ? "" : "; ", device.index,
                          device.uuid.str(), problem);
}

}  // namespace

absl::StatusOr<DerivedRegister> ParseTrancheRegister(std::string_view text) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(text));
  FieldReader reader;
  DerivedRegister told;
  AgentRegister& found = told.agent;
  found.kind = AgentKind::kTranche;
  const std::optional<Object> object = reader.AsObject(document, kWhere);
  if (!object) return reader.status();
  if (reader.ReadInteger(*object, "v", kWhere, {kVersion, kVersion}) != kVersion) {
    reader.Fail("expected 1, found nothing, in the register.v");
  }
  for (const Object device : reader.Objects(reader.ReadArray(*object, "devices", kWhere), kWhere)) {
    if (found.devices.size() > kMaxRegisterDevices || !reader.ok()) break;
    const std::string where = fmt::format("device {}", found.devices.size());
    found.devices.push_back(ReadCard(device, where, reader));
    NoteProblem(device, where, found.devices.back(), reader, told.problem);
  }
  if (!reader.ok()) return reader.status();
  TRANCHE_RETURN_IF_ERROR(OrderDevices(found.devices));
  return told;
}

}  // namespace tranche::wire
