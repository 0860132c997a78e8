#include "scheduler/index/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/index/agent_cards.h"
#include "scheduler/index/card_links.h"
#include "topology/gpu_model.h"
#include "topology/vgpu.h"

namespace tranche {
namespace {

// The profile a "-MIG-<profile>[-SHARED]" product label names (strategy single), written as in a
// resource name; empty when none. Source: GPU feature discovery as test/nvidia runs it.
std::string SingleProfile(std::string_view product) {
  constexpr std::string_view kShared = "-SHARED";
  const std::size_t at = product.find("-MIG-");
  if (at == std::string_view::npos) return "";
  std::string_view tail = product.substr(at + 5);
  if (tail.ends_with(kShared)) tail.remove_suffix(kShared.size());
  const std::optional<MigResourceName> name = ParseMigResourceTail(tail);
  return name ? name->profile : std::string(tail);
}

void AddKey(Inventory& inventory, std::string_view key, const ResourceCount& count) {
  inventory.keys.push_back({std::string(key), std::max<int64_t>(count.allocatable, 0),
                            std::max({count.capacity, count.allocatable, int64_t{0}})});
}

// Whole or replicated cards behind nvidia.com/gpu or nvidia.com/gpu.shared.
void AddPluginCards(const ResourceCount& units, Mebibytes memory, Inventory& inventory) {
  const bool replicated = inventory.replicas > 1;
  const int64_t capacity = std::max(units.capacity, units.allocatable);
  const int64_t total = (capacity + inventory.replicas - 1) / inventory.replicas;
  const int64_t healthy = units.allocatable / inventory.replicas;
  for (int64_t i = 0; i < total; ++i) {
    if (static_cast<int>(inventory.cards.size()) == kMaxCards) {
      inventory.problems.push_back(
          fmt::format("expected at most {} GPUs, found {} advertised", kMaxCards, total));
      break;
    }
    Card card;
    card.mode = replicated ? CardMode::kReplicated : CardMode::kWhole;
    card.index = static_cast<int>(inventory.cards.size());
    card.product = inventory.product;
    card.memory = memory;
    card.slots = replicated ? inventory.replicas : 0;
    if (inventory.sharing == SharingMethod::kMps) card.contexts = MpsClients(card.product);
    // Which card is ill is not published; the count of what kubelet will hand out is.
    card.healthy = i < healthy;
    inventory.cards.push_back(std::move(card));
  }
  if (inventory.cards.empty()) return;
  if (const Card& card = inventory.cards.front(); card.MostUsers() < card.slots) {
    inventory.problems.push_back(fmt::format(
        "expected at most {} replicas of a GPU under MPS, found {}", card.contexts, card.slots));
  }
}

// One profile's worth of instances still to be put on cards.
struct PoolPlan {
  MigPool pool;
  const MigProfile* profile = nullptr;
  int64_t instances = 0;
  int gi_slices = 1;
};

MigPool MakePool(std::string key, std::string profile, int64_t replicas, int compute_slices,
                 int board_slices, Mebibytes memory) {
  MigPool pool;
  pool.key = std::move(key);
  pool.profile = std::move(profile);
  pool.replicas = std::max<int64_t>(replicas, 1);
  pool.milli = MilliGpu::Of(int64_t{1000} * compute_slices / board_slices / pool.replicas);
  pool.memory = Mebibytes::Of(memory.count() / pool.replicas);
  return pool;
}

void AddMigCard(const Inventory& like, Mebibytes memory, std::vector<Card>& cards) {
  Card card;
  card.mode = CardMode::kMig;
  card.index = static_cast<int>(cards.size());
  card.product = like.product;
  card.memory = memory;
  cards.push_back(std::move(card));
}

// Puts known profiles on cards by the board's placements, unknown ones side by side on cards of
// their own. `published_cards`: how many GPUs are in MIG mode, where the labels say so.
void LayOutPools(std::vector<PoolPlan> plans, const MigBoard* board, Mebibytes memory,
                 std::optional<int64_t> published_cards, Inventory& inventory) {
  const int first = static_cast<int>(inventory.cards.size());
  if (board != nullptr) {
    std::vector<int> counts(board->profiles.size(), 0);
    int64_t total = 0;
    for (const PoolPlan& plan : plans) {
      if (plan.profile == nullptr) continue;
      counts[static_cast<std::size_t>(plan.profile - board->profiles.data())] +=
          static_cast<int>(plan.instances);
      total += plan.instances;
    }
    std::optional<std::vector<std::vector<MigInstance>>> layout;
    const int most = kMaxCards - first;
    int gpus = static_cast<int>(std::clamp<int64_t>(published_cards.value_or(1), 1, most));
    if (total > 0) {
      layout = LayOutMig(*board, counts, gpus);
      while (!layout && gpus < most) layout = LayOutMig(*board, counts, ++gpus);
      if (!layout) {
        inventory.problems.push_back("expected MIG devices that fit the node's GPUs, found more");
        return;
      }
      if (published_cards && gpus != *published_cards) {
        inventory.problems.push_back(fmt::format(
            "expected MIG devices for {} GPUs (label nvidia.com/gpu.count), found enough for {}",
            *published_cards, gpus));
      }
    }
    for (int gpu = 0; layout && gpu < gpus; ++gpu) {
      AddMigCard(inventory, memory, inventory.cards);
      for (const MigInstance& instance : (*layout)[static_cast<std::size_t>(gpu)]) {
        // Two keys may share a profile (renamed replicas); fill the first that still lacks one.
        const auto lacking = std::ranges::find_if(plans, [&instance](const PoolPlan& plan) {
          return plan.profile == instance.profile && std::ssize(plan.pool.slots) < plan.instances;
        });
        // Unreachable: the layout has exactly the instances that were counted of the plans.
        if (lacking == plans.end()) continue;
        lacking->pool.slots.push_back({first + gpu, instance.start, instance.profile->size});
      }
    }
  }
  for (PoolPlan& plan : plans) {
    if (plan.profile != nullptr) continue;
    const int per_card = std::max(1, 7 / std::max(1, plan.gi_slices));
    for (int64_t i = 0; i < plan.instances; ++i) {
      if (i % per_card == 0) {
        if (static_cast<int>(inventory.cards.size()) == kMaxCards) break;
        AddMigCard(inventory, memory, inventory.cards);
      }
      plan.pool.slots.push_back({static_cast<int>(inventory.cards.size()) - 1,
                                 static_cast<int>(i % per_card) * plan.gi_slices, plan.gi_slices});
    }
  }
  for (PoolPlan& plan : plans) inventory.pools.push_back(std::move(plan.pool));
}

// The pool of one key; nullopt (and a problem) when neither catalogue nor labels describe it.
std::optional<PoolPlan> PlanPool(std::string key, const std::string& profile_name,
                                 const ResourceCount& count, int64_t replicas,
                                 const MigBoard* board, std::optional<Mebibytes> label_memory,
                                 std::optional<int> label_slices, Inventory& inventory) {
  PoolPlan plan;
  const MigProfile* profile = board == nullptr ? nullptr : FindMigProfile(*board, profile_name);
  const int64_t units = std::max({count.capacity, count.allocatable, int64_t{0}});
  plan.instances = units / std::max<int64_t>(replicas, 1);
  if (plan.instances > int64_t{kMaxCards} * 7) {
    inventory.problems.push_back(
        fmt::format("expected at most {} of {}, found {}", kMaxCards * 7, key, plan.instances));
    plan.instances = int64_t{kMaxCards} * 7;
  }
  if (profile != nullptr) {
    plan.profile = profile;
    plan.gi_slices = profile->compute_slices;
    const Mebibytes memory =
        label_memory ? *label_memory : profile->memory.value_or(Mebibytes::Zero());
    plan.pool = MakePool(std::move(key), profile_name, replicas, profile->compute_slices,
                         board->compute_slices, memory);
    return plan;
  }
  if (!label_slices || *label_slices < 1 || *label_slices > 7 || !label_memory) {
    inventory.problems.push_back(fmt::format(
        "expected a known MIG profile or its labels .slices.gi and .memory, found neither for {}",
        key));
    return std::nullopt;
  }
  plan.gi_slices = *label_slices;
  plan.pool = MakePool(std::move(key), profile_name, replicas, *label_slices,
                       board == nullptr ? 7 : board->compute_slices, *label_memory);
  return plan;
}

void AddSingleMig(const NodeFacts& facts, const std::string& profile, Inventory& inventory) {
  // Under strategy single the labels describe the slice; the card's memory decides the board only
  // where two boards share a product name.
  const MigBoard* board = FindMigBoard(facts.product, CatalogueMemory(BaseProduct(facts.product)));
  inventory.gpu_unit = GpuUnit::kMigDevice;
  const bool renamed = facts.gpu_shared.has_value();
  const ResourceCount& count = renamed ? *facts.gpu_shared : *facts.gpu;
  auto plan = PlanPool(std::string(renamed ? kGpuSharedKey : kGpuKey), profile, count,
                       facts.replicas.value_or(1), board, facts.memory, std::nullopt, inventory);
  if (!plan) return;
  std::vector<PoolPlan> plans;
  plans.push_back(std::move(*plan));
  LayOutPools(std::move(plans), board, CatalogueMemory(BaseProduct(facts.product)), std::nullopt,
              inventory);
}

void AddStockCards(const NodeFacts& facts, Inventory& inventory) {
  const Mebibytes memory = facts.memory.value_or(CatalogueMemory(inventory.product));
  const std::optional<ResourceCount>& units = facts.gpu_shared ? facts.gpu_shared : facts.gpu;
  if (units) {
    inventory.replicas = std::max<int64_t>(facts.replicas.value_or(1), 1);
    // Of GPUs in MIG mode that are advertised whole, discovery says that there are 0 replicas.
    const bool untold = facts.replicas == 0 && facts.count && units->capacity > *facts.count;
    const bool unsaid = facts.gpu_shared && !facts.replicas;
    if ((untold || unsaid) && facts.count && *facts.count > 0) {
      inventory.replicas = std::max<int64_t>(units->capacity / *facts.count, 1);
    }
    inventory.gpu_unit = inventory.replicas > 1 ? GpuUnit::kReplica : GpuUnit::kCard;
    AddPluginCards(*units, memory, inventory);
  }
  std::vector<PoolPlan> plans;
  const MigBoard* board = FindMigBoard(facts.product, memory);
  for (const MigResourceFacts& mig : facts.mig) {
    // Old keys stay in capacity with 0 allocatable after a layout change.
    if (mig.count.allocatable == 0) continue;
    auto plan = PlanPool(FormatMigResource(mig.name), mig.name.profile, mig.count, mig.replicas,
                         board, mig.memory, mig.gi_slices, inventory);
    if (plan) plans.push_back(std::move(*plan));
  }
  if (plans.empty()) return;
  const auto whole = static_cast<int64_t>(inventory.cards.size());
  std::optional<int64_t> mig_cards;
  if (facts.count && *facts.count > whole) mig_cards = *facts.count - whole;
  LayOutPools(std::move(plans), board, memory, mig_cards, inventory);
}

// How many cards a node of planned layouts has, and of which board; nullopt (and a problem): that
// cannot be told, and nothing can be placed there.
std::optional<std::pair<int, const MigBoard*>> PlannedCards(const NodeFacts& facts,
                                                            Mebibytes memory,
                                                            Inventory& inventory) {
  const bool sliced = !SingleProfile(facts.product).empty();
  const MigBoard* board = sliced ? nullptr : FindMigBoard(facts.product, memory);
  if (board == nullptr) {
    inventory.problems.push_back(
        fmt::format("expected a GPU with known MIG placements for planned layouts (label "
                    "nvidia.com/gpu.product), found '{}'",
                    facts.product));
    return std::nullopt;
  }
  const int64_t count = facts.count.value_or(0);
  if (count < 1 || count > kMaxCards) {
    inventory.problems.push_back(
        fmt::format("expected 1 to {} GPUs for planned MIG layouts (label nvidia.com/gpu.count), "
                    "found {}",
                    kMaxCards, facts.count ? fmt::format("{}", count) : "none"));
    return std::nullopt;
  }
  for (const std::optional<ResourceCount>& units : {facts.gpu, facts.gpu_shared}) {
    // Which of the cards those are, nobody says.
    if (!units || units->allocatable <= 0) continue;
    inventory.problems.push_back(
        fmt::format("expected MIG devices only on a node of planned layouts, found {} of {}",
                    units->allocatable, units == facts.gpu ? kGpuKey : kGpuSharedKey));
    return std::nullopt;
  }
  return std::pair(static_cast<int>(count), board);
}

// The counts of the keys bound what the executor will make; where, is ours to say.
void AddPlannedCards(const NodeFacts& facts, Inventory& inventory) {
  const Mebibytes memory = facts.memory.value_or(CatalogueMemory(inventory.product));
  const auto found = PlannedCards(facts, memory, inventory);
  if (!found) return;
  const auto [cards, board] = *found;
  inventory.knowledge = Knowledge::kExact;
  for (int i = 0; i < cards; ++i) {
    AddMigCard(inventory, memory, inventory.cards);
    inventory.cards.back().space = &MigSpaceOf(*board);
  }
  for (const MigResourceFacts& mig : facts.mig) {
    // Labels tell the replicas of a profile, not of a key: where there are two, the plain one's
    // instances are not shared.
    const bool plain = !mig.name.shared && std::ranges::count(facts.mig, mig.name.profile,
                                                              [](const MigResourceFacts& other) {
                                                                return other.name.profile;
                                                              }) > 1;
    auto plan = PlanPool(FormatMigResource(mig.name), mig.name.profile, mig.count,
                         plain ? 1 : mig.replicas, board, mig.memory, mig.gi_slices, inventory);
    if (!plan) continue;
    if (plan->profile == nullptr) {
      inventory.problems.push_back(
          fmt::format("expected a MIG profile of {}, found {}", board->id, plan->pool.key));
      continue;
    }
    plan->pool.planned_profile = static_cast<int>(plan->profile - board->profiles.data());
    for (int card = 0; card < cards; ++card) {
      for (const int start : plan->profile->starts) {
        plan->pool.slots.push_back({card, start, plan->profile->size});
      }
    }
    inventory.pools.push_back(std::move(plan->pool));
  }
}

}  // namespace

const CountedKey* Inventory::FindKey(std::string_view key) const {
  const auto found = std::ranges::find(keys, key, &CountedKey::key);
  return found == keys.end() ? nullptr : &*found;
}

int Inventory::FindPool(std::string_view key) const {
  const auto found = std::ranges::find(pools, key, &MigPool::key);
  return found == pools.end() ? -1 : static_cast<int>(found - pools.begin());
}

bool Inventory::has_devices() const {
  if (std::ranges::any_of(keys, [](const CountedKey& key) { return key.allocatable > 0; })) {
    return true;
  }
  // Koordinator counts cards in an object of its own.
  return has_agent() && std::ranges::any_of(cards, &Card::healthy);
}

Inventory BuildInventory(const NodeFacts& facts, int hami_minor, MachineTables* tables) {
  Inventory inventory;
  inventory.product = std::string(BaseProduct(facts.product));
  inventory.sharing = facts.sharing;
  if (facts.gpu) AddKey(inventory, kGpuKey, *facts.gpu);
  if (facts.gpu_shared) AddKey(inventory, kGpuSharedKey, *facts.gpu_shared);
  for (const MigResourceFacts& mig : facts.mig) {
    AddKey(inventory, FormatMigResource(mig.name), mig.count);
  }
  for (const AgentAmount& amount : facts.agent_amounts) {
    AddKey(inventory, amount.key, amount.count);
  }
  std::ranges::sort(inventory.keys, {}, &CountedKey::key);

  const std::string single = SingleProfile(facts.product);
  if (facts.agent) {
    const bool hami = facts.agent->kind == AgentKind::kHami;
    inventory.agent_minor = hami && hami_minor > 0 ? hami_minor : facts.agent->minor;
    if (inventory.product.empty() && !facts.agent->devices.empty()) {
      inventory.product = facts.agent->devices.front().type;
    }
    AddAgentCards(facts, inventory);
    if (facts.mig_planned && !inventory.planned()) {
      inventory.problems.push_back(
          "expected either planned MIG layouts (label tranche.dev/mig-layout) or a node agent, "
          "found both; the agent counts");
    }
  } else if (facts.mig_planned) {
    AddPlannedCards(facts, inventory);
  } else if (!single.empty() && facts.mig.empty() && (facts.gpu || facts.gpu_shared)) {
    if (single != "INVALID") AddSingleMig(facts, single, inventory);
  } else {
    AddStockCards(facts, inventory);
  }
  // With one card there is one choice.
  const bool one_card = inventory.cards.size() == 1 && inventory.pools.empty();
  if (inventory.knowledge == Knowledge::kCounts && one_card) {
    inventory.knowledge = Knowledge::kPredicted;
  }
  const Card* last = nullptr;
  for (Card& card : inventory.cards) {
    const bool same = last != nullptr && last->product == card.product;
    const std::optional<VgpuType> vgpu = same ? std::nullopt : VgpuTypeOf(card.product);
    card.part = same ? last->part : vgpu ? vgpu->part : GpuPart();
    last = &card;
  }
  ConnectCards(facts, tables, inventory);
  std::ranges::sort(inventory.pools, {}, &MigPool::key);
  inventory.model = GpuModelName(inventory.product);
  return inventory;
}

}  // namespace tranche
