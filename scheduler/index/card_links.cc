#include "scheduler/index/card_links.h"

#include <algorithm>
#include <utility>

#include "topology/base/table_key.h"
#include "topology/machine/set_values.h"

namespace tranche {
namespace {

// Positions mean GPUs: whole cards only, each of which is there and can be told from the others.
bool AreToldApart(const Inventory& inventory) {
  if (inventory.cards.empty() || !inventory.pools.empty()) return false;
  return std::ranges::all_of(inventory.cards, [&inventory](const Card& card) {
    if (card.mode == CardMode::kAgent) return true;
    // The plugin's count says that one is ill, and not which.
    return card.mode == CardMode::kWhole && card.healthy;
  });
}

// The probe sees what the device plugin hides.
void NameCards(const NodeFacts& facts, Inventory& inventory) {
  if (inventory.has_agent() || !facts.probe || facts.probe->gpus.size() != inventory.cards.size()) {
    return;
  }
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    inventory.cards[i].index = facts.probe->gpus[i].index;
    inventory.cards[i].uuid = facts.probe->gpus[i].uuid;
    inventory.cards[i].numa = facts.probe->gpus[i].numa;
  }
}

// May the two change places without any set becoming better or worse?
bool AreInterchangeable(const Machine& machine, int left, int right) {
  if (machine.gpu(left).numa != machine.gpu(right).numa) return false;
  if (NearestNic(machine, left) != NearestNic(machine, right)) return false;
  for (const int other : machine.all()) {
    if (other == left || other == right) continue;
    if (machine.link(left, other) != machine.link(right, other)) return false;
    if (Nearness(machine, left, other) != Nearness(machine, right, other)) return false;
  }
  return true;
}

std::vector<int> ClassesOf(const Machine& machine) {
  std::vector<int> classes(static_cast<std::size_t>(machine.size()), -1);
  for (int gpu = 0; gpu < machine.size(); ++gpu) {
    const auto at = static_cast<std::size_t>(gpu);
    for (int before = 0; before < gpu && classes[at] < 0; ++before) {
      if (AreInterchangeable(machine, before, gpu)) {
        classes[at] = classes[static_cast<std::size_t>(before)];
      }
    }
    if (classes[at] < 0) classes[at] = gpu;
  }
  return classes;
}

// The label of an NVLink fabric is there only if every GPU of the node has joined it.
bool IsInFabric(const NodeFacts& facts) {
  return NamesDomain(facts.labels.Find("nvidia.com/gpu.clique"));
}

// All that the label tells: every pair has NVLink. How many links, it does not.
std::shared_ptr<const Machine> FabricMachine(const std::vector<NodeGpu>& cards) {
  std::vector<MachineGpu> gpus;
  for (const NodeGpu& card : cards) {
    gpus.push_back({"GPU" + std::to_string(card.index), card.uuid, card.numa, ""});
  }
  std::vector<Link> links(gpus.size() * gpus.size(), Link{PathClass::kSys, 1});
  return std::make_shared<const Machine>(std::move(gpus), std::move(links),
                                         std::vector<MachineNic>());
}

}  // namespace

void ConnectCards(const NodeFacts& facts, MachineTables* tables, Inventory& inventory) {
  if (facts.zones) {
    inventory.numa_policy = facts.zones->policy;
    inventory.numa_scope = facts.zones->scope;
    inventory.zones = facts.zones->zones;
  }
  if (!AreToldApart(inventory)) return;
  NameCards(facts, inventory);
  MachineSources sources;
  for (const Card& card : inventory.cards) {
    sources.gpus.push_back({card.index, card.uuid, card.numa});
  }
  sources.product = inventory.product;
  sources.machine = facts.machine;
  if (facts.matrix) sources.matrix = &*facts.matrix;
  if (!facts.scores.empty()) sources.scores = &facts.scores;
  if (!facts.slices.empty()) sources.slices = &facts.slices;
  if (!inventory.zones.empty()) sources.zones = &inventory.zones;
  ResolvedMachine resolved = ResolveMachine(sources);
  for (std::string& problem : resolved.problems) {
    inventory.problems.push_back(std::move(problem));
  }
  if (IsInFabric(facts) && resolved.links <= MachineSource::kZones) {
    if (resolved.links != MachineSource::kCatalogue) resolved.machine = FabricMachine(sources.gpus);
    resolved.links = MachineSource::kCatalogue;
    resolved.verified = true;
  }
  if (resolved.machine == nullptr) return;
  inventory.links = resolved.links;
  inventory.links_verified = resolved.verified;
  inventory.table = tables != nullptr ? tables->Of(resolved.machine)
                                      : std::make_shared<MachineTable>(resolved.machine);
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    inventory.cards[i].numa = resolved.machine->gpu(static_cast<int>(i)).numa;
  }
  // The plugin breaks ties by position, so where it chooses no two cards are alike to it.
  if (!inventory.plugin_chooses()) {
    inventory.card_class = ClassesOf(*resolved.machine);
  } else if (inventory.knowledge == Knowledge::kCounts) {
    inventory.knowledge = Knowledge::kPredicted;
  }
}

bool NamesDomain(std::string_view value) {
  return !value.empty() && !value.starts_with("00000000-0000-0000-0000-000000000000");
}

void AppendLinks(const Inventory& inventory, std::string& signature) {
  AppendToKey(signature, inventory.table != nullptr);
  if (inventory.table != nullptr) {
    const std::string& digest = inventory.table->machine().digest();
    AppendToKey(signature, static_cast<int64_t>(digest.size()));
    signature += digest;
    AppendToKey(signature, inventory.links_verified);
    AppendToKey(signature, inventory.plugin_chooses());
  }
  AppendToKey(signature, static_cast<int64_t>(inventory.numa_policy));
  AppendToKey(signature, static_cast<int64_t>(inventory.numa_scope));
  if (inventory.numa_policy == NumaPolicy::kNone) return;
  for (const ZoneCounts& zone : inventory.zones) {
    AppendToKey(signature, zone.zone);
    AppendToKey(signature, zone.gpus_capacity);
    AppendToKey(signature, zone.gpus_available);
    AppendToKey(signature, zone.cpus_capacity.count());
    AppendToKey(signature, zone.cpus_available.count());
  }
}

}  // namespace tranche
