#include "scheduler/probe/annotations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche::probe {
namespace {

using wire::Json;

constexpr std::size_t kMaxBytes = 192 * 1024;

Json MigJson(const MigInstance& instance) {
  return {{"profile", instance.profile},
          {"start", instance.start},
          {"size", instance.size},
          {"uuid", instance.uuid}};
}

Json GpuJson(const Gpu& gpu) {
  return {{"index", gpu.index},
          {"uuid", gpu.uuid},
          {"bus", gpu.bus},
          {"numa", wire::ValueOrNull(gpu.numa)},
          {"memoryMiB", gpu.memory_mib},
          {"mig", gpu.mig ? wire::ListOf(*gpu.mig, MigJson) : Json()}};
}

Json HeldJson(const ContainerDevices& held) {
  return {{"namespace", held.ns},
          {"name", held.pod},
          {"container", held.container},
          {"resource", held.resource},
          {"devices", held.devices}};
}

std::string ProbeText(const NodeReading& reading, Instant at) {
  return wire::Dump({{"v", 1},
                     {"at", wire::FormatTime(at)},
                     {"driver", reading.driver},
                     {"gpus", wire::ListOf(reading.gpus, GpuJson)},
                     {"pods", reading.pods ? wire::ListOf(*reading.pods, HeldJson) : Json()}});
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> RenderAnnotations(const NodeReading& reading,
                                                                     Instant at) {
  std::map<std::string, std::string> annotations = {{kTopologyKey, reading.topology},
                                                    {kProbeKey, ProbeText(reading, at)}};
  const std::size_t size = annotations[kTopologyKey].size() + annotations[kProbeKey].size();
  if (size <= kMaxBytes) return annotations;
  return absl::ResourceExhaustedError(
      fmt::format("expected annotations of at most {} bytes, found {}", kMaxBytes, size));
}

}  // namespace tranche::probe
