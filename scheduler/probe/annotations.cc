#include "scheduler/probe/annotations.h"

#include <fmt/format.h>

#include "scheduler/wire/json.h"
#include "scheduler/wire/object_json.h"

namespace tranche::probe {
namespace {

using wire::AppendMember;

constexpr std::size_t kMaxBytes = 192 * 1024;

// A JSON list; `append(text, element)` writes one element.
template <typename List, typename Append>
void AppendList(std::string& text, const List& list, Append append) {
  text.push_back('[');
  for (const auto& element : list) {
    if (text.back() != '[') text.push_back(',');
    append(text, element);
  }
  text.push_back(']');
}

void AppendMig(std::string& text, const MigInstance& instance) {
  text.push_back('{');
  AppendMember(text, "profile", instance.profile);
  text += fmt::format(R"(,"start":{},"size":{})", instance.start, instance.size);
  AppendMember(text, "uuid", instance.uuid);
  text.push_back('}');
}

void AppendGpu(std::string& text, const Gpu& gpu) {
  text += fmt::format(R"({{"index":{})", gpu.index);
  AppendMember(text, "uuid", gpu.uuid);
  AppendMember(text, "bus", gpu.bus);
  text += fmt::format(R"(,"numa":{},"memoryMiB":{},"mig":)",
                      gpu.numa ? fmt::format("{}", *gpu.numa) : "null", gpu.memory_mib);
  if (gpu.mig) {
    AppendList(text, *gpu.mig, AppendMig);
  } else {
    text += "null";
  }
  text.push_back('}');
}

void AppendPod(std::string& text, const ContainerDevices& held) {
  text.push_back('{');
  AppendMember(text, "namespace", held.ns);
  AppendMember(text, "name", held.pod);
  AppendMember(text, "container", held.container);
  AppendMember(text, "resource", held.resource);
  text += R"(,"devices":)";
  AppendList(text, held.devices, wire::AppendQuoted);
  text.push_back('}');
}

std::string ProbeText(const NodeReading& reading, Instant at) {
  std::string text = R"({"v":1)";
  AppendMember(text, "at", wire::FormatTime(at));
  AppendMember(text, "driver", reading.driver);
  text += R"(,"gpus":)";
  AppendList(text, reading.gpus, AppendGpu);
  text += R"(,"pods":)";
  if (reading.pods) {
    AppendList(text, *reading.pods, AppendPod);
  } else {
    text += "null";
  }
  text.push_back('}');
  return text;
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
