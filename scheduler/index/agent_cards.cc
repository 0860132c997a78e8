#include "scheduler/index/agent_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "scheduler/facts/sharing_modes.h"
#include "topology/gpu_model.h"

namespace tranche {
namespace {

struct PluginKey {
  AgentKind agent;
  std::string_view key;
};
// What kubelet counts when it calls the agents. Koordinator has no plugin.
constexpr std::array kPluginKeys = {
    PluginKey{AgentKind::kVolcano, "volcano.sh/vgpu-number"},
    PluginKey{AgentKind::kVolcanoOld, "volcano.sh/gpu-memory"},
    PluginKey{AgentKind::kVolcanoOld, "volcano.sh/gpu-number"},
    PluginKey{AgentKind::kGpushare, "aliyun.com/gpu-mem"},
    PluginKey{AgentKind::kTkestack, "tencent.com/vcuda-core"},
    PluginKey{AgentKind::kElastic, "elasticgpu.io/gpu-core"},
    PluginKey{AgentKind::kElastic, "elasticgpu.io/gpu-memory"},
    PluginKey{AgentKind::kVgpuManager, "nvidia.com/vgpu-number"},
};

constexpr int kFirstMinorThatCutsAsTold = 10;

// Agents show that they live by what they advertise. HAMi did so by a handshake before 2.8, too.
bool IsAlive(const NodeFacts& facts) {
  const AgentKind agent = facts.agent->kind;
  if (agent == AgentKind::kKoordinator) return true;
  const bool gives_gpus = facts.gpu.has_value() && facts.gpu->allocatable > 0;
  if (agent == AgentKind::kHami || agent == AgentKind::kFourPd) return gives_gpus;
  if (agent == AgentKind::kTranche) {
    return gives_gpus || std::ranges::any_of(facts.mig, [](const MigResourceFacts& mig) {
             return mig.count.allocatable > 0;
           });
  }
  return std::ranges::any_of(kPluginKeys, [&](const PluginKey& plugin) {
    if (plugin.agent != agent) return false;
    const auto amount = std::ranges::find(facts.agent_amounts, plugin.key, &AgentAmount::key);
    return amount != facts.agent_amounts.end() && amount->count.allocatable > 0;
  });
}

// Cards of one offer share it. Earlier versions of HAMi, and Volcano, cut by templates of their own
// configuration, which no node tells.
void CutCard(const AgentDevice& device, const NodeFacts& facts, Inventory& inventory, Card& card) {
  std::string problem;
  if (inventory.agent != AgentKind::kHami || inventory.agent_minor < kFirstMinorThatCutsAsTold) {
    problem = fmt::format(
        "expected HAMi 2.10 or later for mode mig, found {} for {}",
        inventory.agent == AgentKind::kHami ? "an earlier one" : AgentName(inventory.agent),
        device.uuid.str());
  } else {
    std::string_view product = facts.product;
    if (product.empty()) product = device.type;
    card.cut = CutOf(device, product, facts.memory.value_or(device.memory), problem);
  }
  if (card.cut == nullptr) {
    inventory.problems.push_back(std::move(problem));
    return;
  }
  for (const Card& other : inventory.cards) {
    if (other.cut != nullptr && *other.cut == *card.cut) card.cut = other.cut;
  }
}

// The layout that the places make together; nullopt: they are none of the board's, or do not go
// together.
std::optional<LayoutId> ClosedLayout(const MigSpace& space, const std::vector<MigDevice>& places) {
  std::vector<MigInstance> instances;
  for (const MigDevice& place : places) {
    instances.push_back({FindMigProfile(space.board(), place.profile), place.start});
    if (instances.back().profile == nullptr) return std::nullopt;
  }
  return space.Find(instances);
}

// What tranche-node can make on a card; null: nothing, and the card is closed.
std::shared_ptr<const CardCut> MadeOn(const NodeFacts& facts, const AgentDevice& device,
                                      Inventory& inventory, Card& card) {
  std::string problem;
  auto offer = CutOf(device, facts.product, facts.memory.value_or(device.memory), problem);
  if (offer == nullptr) {
    inventory.problems.push_back(std::move(problem));
    card.healthy = false;
    return nullptr;
  }
  const std::optional<LayoutId> closed = ClosedLayout(*offer->space, device.closed);
  card.healthy = card.healthy && closed.has_value();
  card.closed = closed.value_or(kEmptyLayout);
  return offer;
}

// tranche-node makes instances where records say, on a node whose GPUs are all in MIG mode and of
// one board.
void PlanInstances(const NodeFacts& facts, Inventory& inventory) {
  std::vector<std::shared_ptr<const CardCut>> found;
  std::shared_ptr<const CardCut> offer;  // of a healthy card, where there is one
  bool healthy = false;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    Card& card = inventory.cards[i];
    card.mode = CardMode::kMig;
    found.push_back(MadeOn(facts, facts.agent->devices[i], inventory, card));
    if (offer == nullptr || (card.healthy && !healthy)) offer = found.back();
    healthy = healthy || card.healthy;
  }
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    Card& card = inventory.cards[i];
    if (card.healthy && *found[i] != *offer) {
      inventory.problems.push_back(
          fmt::format("expected GPUs that can all be cut alike, found {} to differ from others",
                      card.uuid.str()));
      card.healthy = false;
    }
    if (!card.healthy) card.closed = kEmptyLayout;
  }
  inventory.gpu_unit = GpuUnit::kNone;
  if (offer == nullptr) return;
  for (Card& card : inventory.cards) card.space = offer->space;
  for (const CutProfile& offered : offer->profiles) {
    const auto& profile = offer->space->board().profiles[static_cast<std::size_t>(offered.profile)];
    MigPool pool;
    pool.key = FormatMigResource({offered.name, false});
    if (offered.starts != profile.starts) {
      inventory.problems.push_back(
          fmt::format("expected {} at all places that a board has for it, found it at {} of {}",
                      pool.key, offered.starts.size(), profile.starts.size()));
      continue;
    }
    pool.profile = offered.name;
    pool.milli = offered.milli;
    pool.memory = offered.memory;
    pool.planned_profile = offered.profile;
    for (int card = 0; card < static_cast<int>(inventory.cards.size()); ++card) {
      for (const int start : profile.starts) pool.slots.push_back({card, start, profile.size});
    }
    inventory.pools.push_back(std::move(pool));
  }
}

bool IsInMigMode(const AgentDevice& device) { return device.mode == kMigMode; }

// GPUs in MIG mode of a node that has others too: those are closed, and the others given whole.
void CloseMixed(const NodeFacts& facts, Inventory& inventory) {
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    if (!IsInMigMode(facts.agent->devices[i])) continue;
    inventory.cards[i].healthy = false;
    inventory.problems.push_back(
        fmt::format("expected all GPUs of the node in MIG mode or none, found {} in it and others "
                    "not",
                    inventory.cards[i].uuid.str()));
  }
}

}  // namespace

void AddAgentCards(const NodeFacts& facts, Inventory& inventory) {
  inventory.knowledge = Knowledge::kExact;
  inventory.gpu_unit = GpuUnit::kCard;
  inventory.agent = facts.agent->kind;
  inventory.memory_unit = facts.agent->memory_unit;
  const bool alive = IsAlive(facts);
  for (const AgentDevice& device : facts.agent->devices) {
    if (static_cast<int>(inventory.cards.size()) == kMaxCards) {
      inventory.problems.push_back(fmt::format("expected at most {} GPUs, found more", kMaxCards));
      break;
    }
    Card card;
    card.mode = CardMode::kAgent;
    card.index = device.index;
    card.uuid = device.uuid;
    card.product = device.type.empty() ? inventory.product : device.type;
    card.capacity = MilliGpu::Of(int64_t{device.cores_percent} * 10);
    card.memory = device.memory;
    card.slots = device.slots;
    card.numa = device.numa;
    card.healthy = device.healthy && alive;
    card.vgpu_mode = device.mode;
    const bool cuts = inventory.agent != AgentKind::kTranche;
    if (cuts && IsInMigMode(device)) CutCard(device, facts, inventory, card);
    if (card.vgpu_mode.find("mps") != std::string::npos) card.contexts = MpsClients(card.product);
    card.cordoned =
        !device.uuid.empty() &&
        std::ranges::find(facts.cordoned_devices, device.uuid) != facts.cordoned_devices.end();
    inventory.cards.push_back(std::move(card));
  }
  if (inventory.agent != AgentKind::kTranche || inventory.cards.empty()) return;
  if (std::ranges::all_of(facts.agent->devices, IsInMigMode)) {
    PlanInstances(facts, inventory);
  } else {
    CloseMixed(facts, inventory);
  }
}

std::vector<GpuUuid> IllDevices(const NodeFacts& facts) {
  std::vector<GpuUuid> ill;
  const bool there = (facts.gpu && facts.gpu->capacity > 0) ||
                     std::ranges::any_of(facts.mig, [](const MigResourceFacts& mig) {
                       return mig.count.capacity > 0;
                     });
  if (!facts.agent || !there) return ill;
  for (const AgentDevice& device : facts.agent->devices) {
    if (!device.healthy && !device.uuid.empty()) ill.push_back(device.uuid);
  }
  return ill;
}

// The caps of the device plugin, whatever replicas are configured: 48 and, below compute capability
// 7.5, 16. (The driver itself takes 48 from Volta on, and 60 from CUDA 13.1.) Nodes' facts do not
// carry the capability, so the boards before Turing are listed; a board not listed is a newer one.
int64_t MpsClients(std::string_view product) {
  constexpr std::array<std::string_view, 22> kBeforeTuring = {
      "v100",     "v100s",    "gv100",    "titan-v", "p100", "gp100", "p40", "p6",
      "p4",       "titan-xp", "quadro-p", "m60",     "m40",  "m10",   "m6",  "m4",
      "quadro-m", "k80",      "k40",      "k40m",    "k20m", "k20xm"};
  const bool old = std::ranges::any_of(
      kBeforeTuring, [product](std::string_view model) { return MatchesModel(model, product); });
  return old ? 16 : 48;
}

bool NeedsFreeCore(AgentKind agent) {
  return agent == AgentKind::kHami || agent == AgentKind::kFourPd || agent == AgentKind::kVolcano;
}

bool ServesWholeCardsOnly(const Inventory& inventory) {
  if (inventory.agent == AgentKind::kTkestack) return true;
  return inventory.agent == AgentKind::kTranche &&
         std::ranges::none_of(inventory.cards,
                              [](const Card& card) { return card.vgpu_mode == kMpsMode; });
}

std::string_view EnforcementOf(const Inventory& inventory, const Card& card) {
  if (card.mode == CardMode::kMig || card.cut != nullptr) return kMigMode;
  switch (inventory.agent) {
    case AgentKind::kNone:
      return inventory.sharing == SharingMethod::kMps ? kMpsMode : std::string_view();
    case AgentKind::kTranche:
      return card.vgpu_mode == kMpsMode ? kMpsMode : std::string_view();
    case AgentKind::kHami:
    case AgentKind::kFourPd:
    case AgentKind::kVolcano:
      return card.vgpu_mode;
    default:
      return {};
  }
}

}  // namespace tranche
