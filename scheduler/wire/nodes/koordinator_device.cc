// Koordinator's Device object. Source: request-dialects section 12.
#include <fmt/format.h>

#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/register_fields.h"
#include "topology/base/quantity.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kCoreKey = "koordinator.sh/gpu-core";
constexpr std::string_view kMemoryKey = "koordinator.sh/gpu-memory";
constexpr int64_t kBytesPerMib = int64_t{1} << 20;
constexpr int64_t kMaxMemory = int64_t{INT32_MAX} * kBytesPerMib;

// A quantity member; 0 when absent.
int64_t ReadQuantity(Object parent, std::string_view key, const std::string& where, int64_t most,
                     FieldReader& reader) {
  const std::optional<Element> value = Find(parent, key);
  if (!value) return 0;
  const absl::StatusOr<int64_t> amount = ParseWholeQuantity(AmountText(*value));
  if (amount.ok() && *amount >= 0 && *amount <= most) return *amount;
  reader.Fail(fmt::format("expected whole quantity from 0 to {}, found {}, in {}.resources {}",
                          most, DescribeElement(*value), where, key));
  return 0;
}

AgentDevice ReadGpu(Object object, const std::string& where, FieldReader& reader) {
  AgentDevice device;
  // Records of old versions name the minor number only, and so may the object.
  device.uuid = GpuUuid(reader.ReadText(object, "id", where));
  const std::optional<int64_t> minor =
      reader.ReadInteger(object, "minor", where, {0, kMaxRegisterIndex});
  if (!minor) reader.Fail(fmt::format("expected a number, found none, in {}.minor", where));
  device.index = static_cast<int>(minor.value_or(0));
  device.healthy = reader.ReadBool(object, "health", where).value_or(false);
  if (const auto resources = reader.ReadObject(object, "resources", where)) {
    device.cores_percent =
        static_cast<int>(ReadQuantity(*resources, kCoreKey, where, kMaxRegisterCores, reader));
    device.memory = Mebibytes::Of(ReadQuantity(*resources, kMemoryKey, where, kMaxMemory, reader) /
                                  kBytesPerMib);
  }
  if (const auto topology = reader.ReadObject(object, "topology", where)) {
    const int64_t node =
        reader.ReadInteger(*topology, "nodeID", where, {-1, kMaxRegisterNuma}).value_or(-1);
    if (node >= 0) device.numa = static_cast<int>(node);
  }
  return device;
}

}  // namespace

absl::StatusOr<KoordinatorDevices> DecodeKoordinatorDevice(Element element) {
  FieldReader reader;
  const std::optional<Object> object = reader.AsObject(element, "object");
  if (!object) return reader.status();
  const std::optional<Object> metadata = reader.ReadObject(*object, "metadata", "object");
  KoordinatorDevices found;
  if (metadata) found.node = NodeName(reader.ReadText(*metadata, "name", "metadata"));
  if (found.node.empty()) reader.Fail("expected a name, found none, in metadata.name");
  const std::optional<Object> spec = reader.ReadObject(*object, "spec", "object");
  if (!spec) reader.Fail("expected object, found nothing, in object.spec");
  if (!reader.ok()) return reader.status();
  AgentRegister agent;
  agent.kind = AgentKind::kKoordinator;
  if (const std::optional<Array> devices = reader.ReadArray(*spec, "devices", "spec")) {
    std::size_t position = 0;
    for (const Element entry : *devices) {
      const std::string where = fmt::format("spec.devices {}", position++);
      const std::optional<Object> device = reader.AsObject(entry, where);
      if (!device || agent.devices.size() > kMaxRegisterDevices) break;
      if (reader.ReadText(*device, "type", where) != "gpu") continue;
      agent.devices.push_back(ReadGpu(*device, where, reader));
    }
  }
  if (!reader.ok()) return reader.status();
  TRANCHE_RETURN_IF_ERROR(OrderDevices(agent.devices));
  if (!agent.devices.empty()) found.agent = std::move(agent);
  return found;
}

}  // namespace tranche::wire
