// GpuConfig, MigDeviceConfig and VfioDeviceConfig of resource.nvidia.com.
// Source: dra facts section 5; api/nvidia.com/resource/v1beta1 of the driver.
#include <string_view>

#include "scheduler/wire/claims/claim_fields.h"
#include "topology/base/units.h"

namespace tranche::wire {
namespace {

constexpr IntegerRange kPercent = {0, 100};
constexpr int64_t kMebibyte = 1024 * 1024;

std::optional<Mebibytes> ReadMemory(Object parent, std::string_view key, FieldReader& reader) {
  const std::optional<dra::Quantity> bytes = ReadQuantity(parent, key, "mpsConfig", reader);
  if (!bytes) return std::nullopt;
  if (*bytes < dra::Quantity()) reader.Fail("expected an amount of memory, found less than none");
  return Mebibytes::Of(bytes->whole() / kMebibyte);
}

void ReadMps(Object sharing, FieldReader& reader, dra::Sharing& read) {
  const std::optional<Object> mps = reader.ReadObject(sharing, "mpsConfig", "sharing");
  if (!mps) return;
  if (const auto percent =
          reader.ReadInteger(*mps, "defaultActiveThreadPercentage", "mpsConfig", kPercent)) {
    read.thread_percent = static_cast<int>(*percent);
  }
  read.pinned_memory = ReadMemory(*mps, "defaultPinnedDeviceMemoryLimit", reader);
  read.multi_user = reader.ReadBool(*mps, "multiUser", "mpsConfig").value_or(false);
  const std::optional<Object> by_device =
      reader.ReadObject(*mps, "defaultPerDevicePinnedMemoryLimit", "mpsConfig");
  if (!by_device) return;
  for (const auto field : *by_device) {
    const std::optional<Mebibytes> memory = ReadMemory(*by_device, field.key, reader);
    if (memory) read.pinned_memory_of[std::string(field.key)] = *memory;
  }
}

bool ReadStrategy(Object sharing, FieldReader& reader, dra::Sharing& read) {
  const std::string_view strategy = reader.ReadText(sharing, "strategy", "sharing");
  if (strategy == "MPS") {
    read.strategy = dra::Sharing::Strategy::kMps;
    ReadMps(sharing, reader, read);
    return true;
  }
  if (strategy != "TimeSlicing") return false;
  read.strategy = dra::Sharing::Strategy::kTimeSlicing;
  const std::optional<Object> slicing = reader.ReadObject(sharing, "timeSlicingConfig", "sharing");
  if (slicing) read.interval = reader.ReadText(*slicing, "interval", "timeSlicingConfig");
  return true;
}

}  // namespace

std::optional<dra::Sharing> ReadSharing(Object parameters) {
  FieldReader reader;
  dra::Sharing read;
  const std::string_view group = reader.ReadText(parameters, "apiVersion", "parameters");
  const std::string_view kind = reader.ReadText(parameters, "kind", "parameters");
  if (!group.starts_with("resource.nvidia.com/")) return std::nullopt;
  if (kind == "VfioDeviceConfig") {
    read.target = dra::Sharing::Target::kVfio;
    return read;
  }
  if (kind != "GpuConfig" && kind != "MigDeviceConfig") return std::nullopt;
  if (kind == "MigDeviceConfig") read.target = dra::Sharing::Target::kMig;
  const std::optional<Object> sharing = reader.ReadObject(parameters, "sharing", "parameters");
  const bool known = !sharing || ReadStrategy(*sharing, reader, read);
  if (!known || !reader.ok()) return std::nullopt;
  return read;
}

}  // namespace tranche::wire
