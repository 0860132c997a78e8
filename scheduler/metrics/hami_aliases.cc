#include "scheduler/metrics/hami_aliases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "scheduler/metrics/page.h"

namespace tranche::metrics {
namespace {

constexpr Series kMemoryLimit = {"GPUDeviceMemoryLimit",
                                 "Memory of a GPU, as HAMi's scheduler names it (bytes)"};
constexpr Series kMemoryAllocated = {"GPUDeviceMemoryAllocated",
                                     "Memory taken of a GPU, as HAMi's scheduler names it (bytes)"};
constexpr Series kSharedNum = {
    "GPUDeviceSharedNum", "Containers that share a GPU, as HAMi's scheduler names it (containers)"};
constexpr Series kCoreAllocated = {"GPUDeviceCoreAllocated",
                                   "Cores taken of a GPU, as HAMi's scheduler names it (percent)"};
constexpr Series kCoreLimit = {"GPUDeviceCoreLimit",
                               "Cores of a GPU, as HAMi's scheduler names it (percent)"};
constexpr Series kOverview = {"nodeGPUOverview",
                              "Memory taken of a GPU, with its other numbers as labels (bytes)"};
constexpr Series kMemoryPercentage = {"nodeGPUMemoryPercentage",
                                      "Memory taken of a GPU, as HAMi's scheduler names it (0..1)"};
constexpr Series kPodMemory = {"vGPUMemoryAllocated",
                               "Memory of a GPU given to a container, as HAMi names it (bytes)"};
constexpr Series kPodCores = {"vGPUCoreAllocated",
                              "Cores of a GPU given to a container, as HAMi names it (percent)"};
constexpr Series kQuotaUse = {
    "QuotaUsed",
    "What a namespace holds of a ResourceQuota's key, as HAMi names it (MiB, percent)"};

constexpr const char* kZone = "vGPU";  // of every series of HAMi's scheduler
constexpr int64_t kCoresOfCard = 100;

int64_t Percent(int64_t milli) { return (milli + 9) / 10; }

// Containers on a card, and the compute they were given.
struct CardUse {
  int64_t containers = 0;
  int64_t milli = 0;
};

// Node and card's index in the node's list.
using CardKey = std::pair<std::string, int>;
// Namespace, node, pod, container, UUID.
using ShareKey = std::tuple<std::string, std::string, std::string, int, std::string>;

struct ShareUse {
  Mebibytes memory;
  int64_t milli = 0;
};

int PlaceOf(const PodView& pod, const std::string& container) {
  const auto at = std::find(pod.containers.begin(), pod.containers.end(), container);
  return at == pod.containers.end() ? 0 : static_cast<int>(at - pod.containers.begin());
}

bool Holds(const PodView& pod) {
  return pod.allocation && (pod.state == PodState::kBound || pod.state == PodState::kReserved);
}

std::map<CardKey, CardUse> UseOfCards(const HamiRows& rows) {
  // A record of another scheduler names cards by UUID alone.
  std::map<std::pair<std::string, std::string>, int> by_uuid;
  for (const NodeView& node : rows.nodes) {
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
      by_uuid[{node.name.str(), node.gpus[i].uuid.str()}] = static_cast<int>(i);
    }
  }
  std::map<CardKey, CardUse> out;
  for (const PodView& pod : rows.pods) {
    if (!Holds(pod)) continue;
    for (const ContainerDevices& container : pod.allocation->containers) {
      for (const Device& device : container.devices) {
        const auto named =
            device.uuid.empty() ? by_uuid.end() : by_uuid.find({pod.node.str(), device.uuid.str()});
        const int card = named == by_uuid.end() ? device.card : named->second;
        CardUse& use = out[{pod.node.str(), card}];
        ++use.containers;
        use.milli += device.milli.count();
      }
    }
  }
  return out;
}

void AddCard(const NodeView& node, const GpuView& gpu, int place, const CardUse& use, Page& page) {
  const Mebibytes taken = gpu.memory - gpu.free_memory;
  const Labels labels = {{"zone", kZone},
                         {"nodeid", node.name.str()},
                         {"deviceuuid", gpu.uuid.str()},
                         {"deviceidx", fmt::format("{}", place)},
                         {"devicetype", node.model}};
  const auto with = [&labels](Labels more) {
    more.insert(more.begin(), labels.begin(), labels.end());
    return more;
  };
  const std::string cores = fmt::format("{}", kCoresOfCard);
  page.Gauge(kMemoryLimit, Bytes(gpu.memory), labels);
  page.Gauge(kMemoryAllocated, Bytes(taken), with({{"devicecores", cores}}));
  page.Gauge(kSharedNum, static_cast<double>(use.containers), labels);
  page.Gauge(kCoreAllocated, static_cast<double>(Percent(use.milli)), labels);
  page.Gauge(kCoreLimit, static_cast<double>(kCoresOfCard), labels);
  page.Gauge(kOverview, Bytes(taken),
             with({{"devicecores", cores},
                   {"sharedcontainers", fmt::format("{}", use.containers)},
                   {"devicememorylimit", fmt::format("{}", gpu.memory.count())}}));
  if (gpu.memory > Mebibytes::Zero()) {
    page.Gauge(kMemoryPercentage, Bytes(taken) / Bytes(gpu.memory), labels);
  }
}

void AddNodes(const HamiRows& rows, Page& page) {
  const std::map<CardKey, CardUse> uses = UseOfCards(rows);
  for (const NodeView& node : rows.nodes) {
    // Where an index is unknown, positions distinguish the cards.
    const bool told = std::all_of(node.gpus.begin(), node.gpus.end(),
                                  [](const GpuView& gpu) { return gpu.index.has_value(); });
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
      const int card = static_cast<int>(i);
      const auto found = uses.find({node.name.str(), card});
      AddCard(node, node.gpus[i], told ? *node.gpus[i].index : card,
              found == uses.end() ? CardUse{} : found->second, page);
    }
  }
}

void AddShares(const std::vector<PodView>& pods, Page& page) {
  std::map<ShareKey, ShareUse> shares;  // instances of one card count as one
  for (const PodView& pod : pods) {
    if (!Holds(pod)) continue;
    for (const ContainerDevices& container : pod.allocation->containers) {
      for (const Device& device : container.devices) {
        if (device.uuid.empty()) continue;  // as HAMi does: a series for each, but which?
        ShareUse& share = shares[{pod.name.ns, pod.node.str(), pod.name.name,
                                  PlaceOf(pod, container.container), device.uuid.str()}];
        share.memory = share.memory + device.memory;
        share.milli += device.milli.count();
      }
    }
  }
  for (const auto& [key, share] : shares) {
    const auto& [ns, node, pod, container, uuid] = key;
    const Labels labels = {{"zone", kZone},
                           {"podnamespace", ns},
                           {"nodename", node},
                           {"podname", pod},
                           {"containeridx", fmt::format("{}", container)},
                           {"deviceuuid", uuid}};
    page.Gauge(kPodMemory, Bytes(share.memory), labels);
    page.Gauge(kPodCores, static_cast<double>(Percent(share.milli)), labels);
  }
}

// HAMi keeps one limit for a key of a namespace; of several ResourceQuotas the smallest holds.
void AddCaps(const std::vector<CapRow>& rows, Page& page) {
  struct Row {
    int64_t limit = 0;
    int64_t used = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> out;
  const auto note = [&out](const std::string& ns, const char* key, int64_t limit, int64_t used) {
    const auto [at, fresh] = out.try_emplace({ns, key}, Row{limit, used});
    at->second.limit = std::min(at->second.limit, limit);
  };
  for (const auto& [cap, used] : rows) {
    if (cap.memory) note(cap.ns, "nvidia.com/gpumem", cap.memory->count(), used.memory.count());
    if (cap.cores) note(cap.ns, "nvidia.com/gpucores", *cap.cores, used.cores);
  }
  for (const auto& [key, row] : out) {
    page.Gauge(kQuotaUse, static_cast<double>(row.used),
               {{"zone", kZone},
                {"quotanamespace", key.first},
                {"quotaName", key.second},
                {"limit", fmt::format("{}", row.limit)}});
  }
}

}  // namespace

void AddHamiAliases(const HamiRows& rows, Page& page) {
  AddNodes(rows, page);
  AddShares(rows.pods, page);
  AddCaps(rows.caps, page);
}

}  // namespace tranche::metrics
