// The register of tranche-node, written by scheduler/agent/register.h.
#include <fmt/format.h>

#include "scheduler/facts/sharing_modes.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/register_fields.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr int64_t kVersion = 1;
constexpr int kAllCores = 100;
constexpr int64_t kMostSlots = 48;      // containers that an MPS server takes
constexpr int64_t kMostUnits = 32;      // memory units of a board; the catalogue's most is 12
constexpr std::size_t kMostNames = 32;  // profiles of a board, closed places of a card
constexpr std::string_view kWhere = "the register";

int ReadUnits(Object object, std::string_view key, const std::string& where, FieldReader& reader) {
  const auto value = reader.ReadInteger(object, key, where, {0, kMostUnits});
  if (!value) {
    reader.Fail(fmt::format("expected a whole number, found none, in {}.{}", where, key));
  }
  return static_cast<int>(value.value_or(0));
}

AgentMigProfile ReadMigProfile(Object object, const std::string& where, FieldReader& reader) {
  AgentMigProfile profile;
  profile.name = reader.ReadText(object, "name", where);
  profile.memory =
      Mebibytes::Of(reader.ReadInteger(object, "mib", where, {0, INT32_MAX}).value_or(0));
  const int size = ReadUnits(object, "size", where, reader);
  const std::optional<Array> starts = reader.ReadArray(object, "starts", where);
  if (!starts) return profile;
  for (const Element start : *starts) {
    const std::optional<int64_t> unit = WholeAmount(start);
    if (!unit || *unit > kMostUnits || profile.placements.size() == kMostNames) {
      reader.Fail(
          fmt::format("expected at most {} memory units from 0 to {}, found {}, in {}.starts",
                      kMostNames, kMostUnits, DescribeElement(start), where));
      break;
    }
    profile.placements.emplace_back(static_cast<int>(*unit), size);
  }
  return profile;
}

// What a card in MIG mode can be cut into, and where it is not to be.
void ReadMig(Object object, const std::string& where, FieldReader& reader, AgentDevice& device) {
  device.mode = kMigMode;
  const std::string profiles = where + ".profiles";
  for (const Object profile :
       reader.Objects(reader.ReadArray(object, "profiles", where), profiles)) {
    if (device.mig_profiles.size() == kMostNames || !reader.ok()) break;
    device.mig_profiles.push_back(ReadMigProfile(profile, profiles, reader));
  }
  const std::string closed = where + ".closed";
  for (const Object place : reader.Objects(reader.ReadArray(object, "closed", where), closed)) {
    if (device.closed.size() == kMostNames || !reader.ok()) break;
    device.closed.push_back({std::string(reader.ReadText(place, "profile", closed)),
                             ReadUnits(place, "start", closed, reader),
                             ReadUnits(place, "size", closed, reader)});
  }
}

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
  device.type = reader.ReadText(object, "type", where);
  if (const std::optional<Object> mig = reader.ReadObject(object, "mig", where)) {
    ReadMig(*mig, where + ".mig", reader, device);
  } else if (const std::optional<Object> mps = reader.ReadObject(object, "mps", where)) {
    const auto slots = reader.ReadInteger(*mps, "slots", where + ".mps", {1, kMostSlots});
    if (!slots) {
      reader.Fail(fmt::format("expected a whole number, found none, in {}.mps.slots", where));
    }
    device.mode = kMpsMode;
    device.slots = static_cast<int>(slots.value_or(1));
  }
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
