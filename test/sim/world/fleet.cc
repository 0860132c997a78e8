#include "test/sim/world/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace tranche::sim {
namespace {

struct Model {
  const char* product;
  const char* model;
  const char* family;
  int64_t mib;
};
constexpr std::array<Model, 3> kModels = {
    Model{"NVIDIA-H100-80GB-HBM3", "h100", "hopper", 81559},
    Model{"NVIDIA-A100-SXM4-80GB", "a100-80gb", "ampere", 81920},
    Model{"Tesla-T4", "t4", "turing", 15360}};

struct Cut {
  const char* profile;
  int start, size;
  int64_t mib;
};
const std::vector<std::vector<Cut>>& Layouts() {
  static const std::vector<std::vector<Cut>> kLayouts = {
      {{"1g.10gb", 0, 1, 9728},
       {"1g.10gb", 1, 1, 9728},
       {"1g.10gb", 2, 1, 9728},
       {"1g.10gb", 3, 1, 9728},
       {"1g.10gb", 4, 1, 9728},
       {"1g.10gb", 5, 1, 9728},
       {"1g.10gb", 6, 1, 9728}},
      {{"3g.40gb", 0, 4, 40192}, {"3g.40gb", 4, 4, 40192}},
      {{"2g.20gb", 0, 2, 19968},
       {"1g.10gb", 2, 1, 9728},
       {"1g.10gb", 3, 1, 9728},
       {"3g.40gb", 4, 4, 40192}}};
  return kLayouts;
}

const Model& ModelOf(const Machine& machine) {
  return *std::find_if(kModels.begin(), kModels.end(),
                       [&](const Model& model) { return machine.product == model.product; });
}

std::map<std::string, int> ProfileCounts(const Machine& machine) {
  std::map<std::string, int> counts;
  for (const MigInstance& instance : machine.instances) ++counts[instance.profile];
  return counts;
}

}  // namespace

Machine DrawMachine(Draws& draws, std::string name, NodeKind kind, int life) {
  Machine machine;
  machine.name = std::move(name);
  machine.kind = kind;
  if (kind == NodeKind::kPlain) return machine;
  const Model& model = kind == NodeKind::kHami
                           ? kModels[static_cast<std::size_t>(draws.Between(1, 2))]
                       : kind == NodeKind::kMig || kind == NodeKind::kDra
                           ? kModels[static_cast<std::size_t>(draws.Below(2))]
                           : kModels[static_cast<std::size_t>(draws.Below(3) == 0 ? 1 : 0)];
  machine.product = model.product;
  machine.model = model.model;
  machine.mib = model.mib;
  constexpr std::array<int, 4> kCounts = {2, 4, 8, 8};
  int count = kCounts[static_cast<std::size_t>(draws.Below(4))];
  if (kind == NodeKind::kMig) count = 2;
  for (int i = 0; i < count; ++i) {
    machine.cards.push_back(fmt::format("GPU-{}-{}-{}", machine.name, life, i));
  }
  const int cut_cards = kind == NodeKind::kMig   ? count
                        : kind == NodeKind::kDra ? static_cast<int>(draws.Below(2))
                                                 : 0;
  if (cut_cards > 0) {
    const std::vector<Cut>& cuts = draws.Pick(Layouts());
    for (int card = 0; card < cut_cards; ++card) {
      for (const Cut& cut : cuts) {
        machine.instances.push_back({card, cut.profile, cut.start, cut.size, cut.mib});
      }
    }
  }
  return machine;
}

Json ExtendedResources(const Machine& machine) {
  Json out = Json::object();
  if (machine.kind == NodeKind::kDra) return out;
  if (machine.kind == NodeKind::kStock)
    out["nvidia.com/gpu"] = std::to_string(machine.cards.size());
  if (machine.kind == NodeKind::kHami) {
    out["nvidia.com/gpu"] = std::to_string(machine.cards.size() * kHamiSlots);
  }
  if (machine.kind == NodeKind::kAgent) {
    const auto slots = static_cast<std::size_t>(std::max(1, machine.slots));
    out["nvidia.com/gpu"] = std::to_string(machine.cards.size() * slots);
  }
  for (const auto& [profile, count] : ProfileCounts(machine)) {
    out["nvidia.com/mig-" + profile] = std::to_string(count);
  }
  return out;
}

std::string HamiRegister(const Machine& machine, int64_t lie, int dead) {
  Json list = Json::array();
  for (std::size_t i = 0; i < machine.cards.size(); ++i) {
    Json card = {{"id", machine.cards[i]},
                 {"count", kHamiSlots},
                 {"devmem", machine.mib + lie},
                 {"devcore", 100},
                 {"type", "NVIDIA-" + machine.product},
                 {"mode", "hami-core"}};
    // Zero values are left out.
    if (i > 0) card["index"] = i;
    if (i * 2 >= machine.cards.size()) card["numa"] = 1;
    if (static_cast<int>(i) >= dead) card["health"] = true;
    list.push_back(std::move(card));
  }
  return list.dump();
}

std::string TrancheRegister(const Machine& machine, int dead) {
  Json list = Json::array();
  for (std::size_t i = 0; i < machine.cards.size(); ++i) {
    const bool healthy = static_cast<int>(i) >= dead;
    Json card = {{"uuid", machine.cards[i]},
                 {"index", i},
                 {"mib", machine.mib},
                 {"healthy", healthy},
                 {"type", machine.product}};
    if (!healthy) card["problem"] = "it fell off the bus";
    if (machine.slots > 0) card["mps"] = {{"slots", machine.slots}};
    list.push_back(std::move(card));
  }
  return Json({{"v", 1}, {"devices", std::move(list)}}).dump();
}

Json NodeObject(const Machine& machine) {
  Json labels = {{"kubernetes.io/hostname", machine.name}, {"kubernetes.io/os", "linux"}};
  if (!machine.pool.empty()) labels[kPoolLabel] = machine.pool;
  Json annotations = Json::object();
  Json amounts = {{"cpu", "192"}, {"memory", "2097152Mi"}, {"pods", "110"}};
  if (machine.kind != NodeKind::kPlain && machine.kind != NodeKind::kDra) {
    const bool mig = machine.kind == NodeKind::kMig;
    labels["nvidia.com/gpu.present"] = "true";
    labels["nvidia.com/gpu.product"] = machine.product;
    labels["nvidia.com/gpu.family"] = ModelOf(machine).family;
    labels["nvidia.com/gpu.memory"] = std::to_string(machine.mib);
    labels["nvidia.com/gpu.count"] = std::to_string(machine.cards.size());
    labels["nvidia.com/gpu.replicas"] = mig ? "0" : "1";
    labels["nvidia.com/gpu.sharing-strategy"] = "none";
    labels["nvidia.com/mig.strategy"] = mig ? "mixed" : "none";
    for (const auto& [profile, count] : ProfileCounts(machine)) {
      const std::string key = "nvidia.com/mig-" + profile;
      labels[key + ".count"] = std::to_string(count);
      labels[key + ".product"] = machine.product + "-MIG-" + profile;
      labels[key + ".replicas"] = "1";
    }
    if (mig) {
      labels["nvidia.com/mig.config.state"] = "success";
      amounts["nvidia.com/gpu"] = "0";
    }
    if (machine.kind == NodeKind::kHami) {
      annotations["hami.io/node-nvidia-register"] = HamiRegister(machine, 0, 0);
    }
    if (machine.kind == NodeKind::kAgent) {
      labels["tranche.dev/agent"] = "true";
      annotations["tranche.dev/agent-register"] = TrancheRegister(machine, 0);
    }
    amounts.update(ExtendedResources(machine));
  }
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", machine.name}, {"labels", labels}, {"annotations", annotations}}},
          {"spec", Json::object()},
          {"status",
           {{"capacity", amounts},
            {"allocatable", amounts},
            {"conditions",
             Json::array({{{"type", "Ready"}, {"status", "True"}, {"reason", "KubeletReady"}}})}}}};
}

}  // namespace tranche::sim
