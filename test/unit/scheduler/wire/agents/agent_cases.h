// Pods, allocations and calls in few words, for the tests of the agents' grammars.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/wire/agents/agents.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

using Texts = std::map<std::string, std::string>;

inline ContainerInfo App(std::string name) { return {std::move(name), ContainerRole::kApp, 1, {}}; }
inline ContainerInfo Sidecar(std::string name) {
  return {std::move(name), ContainerRole::kSidecar, 1, {}};
}
inline ContainerInfo Init(std::string name) {
  return {std::move(name), ContainerRole::kInit, 1, {}};
}

// `counts`: how many cards each container asks for, a share of each.
inline PodRequest Asking(RequestStyle style, std::vector<ContainerInfo> containers,
                         const std::vector<int64_t>& counts) {
  PodRequest request;
  request.style = style;
  request.containers = std::move(containers);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    request.containers[i].plugin_count = counts[i];
    if (counts[i] == 0) continue;
    Ask ask;
    ask.container = static_cast<int>(i);
    ask.resource = Resource::kShare;
    ask.count = counts[i];
    request.asks.push_back(ask);
  }
  return request;
}

inline Device Share(int card, std::string_view uuid, int64_t milli, int64_t mib) {
  Device device;
  device.card = card;
  device.uuid = GpuUuid(uuid);
  device.milli = MilliGpu::Of(milli);
  device.memory = Mebibytes::Of(mib);
  return device;
}

// A card whose amounts a text does not tell.
inline Device Bare(int card) { return Share(card, "", 0, 0); }

inline Allocation Exact(std::vector<ContainerDevices> containers) {
  Allocation allocation;
  allocation.knowledge = Knowledge::kExact;
  allocation.containers = std::move(containers);
  return allocation;
}

// A call on node "n1" with four cards of 16,384 MiB, at 1767323045.999 s; stamp
// 1767323045000000007.
inline AgentCall CallOf(AgentKind agent, int minor = 0) {
  AgentCall call;
  call.agent = agent;
  call.minor = minor;
  call.node = "n1";
  call.card_memory.assign(4, Mebibytes::Of(16'384));
  call.now = ParseTime("2026-01-02T03:04:05.999Z").value();
  call.stamp = 1'767'323'045'000'000'007;
  return call;
}

// Views into `texts`.
inline AgentText TextOf(const Texts& texts) {
  AgentText text;
  for (const auto& [key, value] : texts) text.Set(key, value);
  return text;
}

// What the texts say of a pod on n1: "main: 0 GPU-a 500m 4096Mi, 1 GPU-b ...; side: ...",
// "nothing", or the error. MIG instances add " 1g.10gb@3+1".
inline std::string Read(const Texts& texts, const PodRequest& request) {
  const absl::StatusOr<std::optional<Allocation>> read =
      TextOf(texts).Devices(request, NodeName("n1"));
  if (!read.ok()) return std::string(read.status().message());
  if (!read->has_value()) return "nothing";
  if ((*read)->knowledge != Knowledge::kExact || (*read)->epoch != 0) return "not exact, epoch 0";
  std::string out;
  for (const ContainerDevices& container : (*read)->containers) {
    if (!out.empty()) out += "; ";
    out += container.container + ":";
    bool first = true;
    for (const Device& device : container.devices) {
      out += fmt::format("{} {} {} {}m {}Mi", first ? "" : ",", device.card,
                         device.uuid.empty() ? "-" : device.uuid.str(), device.milli.count(),
                         device.memory.count());
      if (device.mig) {
        out += fmt::format(" {}@{}+{}", device.mig->profile, device.mig->start, device.mig->size);
      }
      first = false;
    }
  }
  return out;
}

}  // namespace tranche::wire
