#include "scheduler/scoring/kinds.h"

#include <algorithm>
#include <string_view>

#include "scheduler/index/eligibility.h"
#include "scheduler/index/placement.h"
#include "topology/base/table_key.h"

namespace tranche {
namespace {

bool IsCut(const Card& card) { return card.mode == CardMode::kMig; }

void SetKey(const Inventory& inventory, MilliCpu cpu, std::string& key) {
  key.clear();
  AppendToKey(key, inventory.product);
  AppendToKey(key, cpu.count());
  AppendToKey(key, static_cast<int64_t>(inventory.gpu_unit));
  AppendToKey(key, inventory.replicas);
  AppendToKey(key, static_cast<int64_t>(inventory.agent));
  AppendToKey(key, inventory.memory_unit.count());
  AppendToKey(key, static_cast<int64_t>(inventory.cards.size()) -
                       std::ranges::count_if(inventory.cards, IsCut));
  const auto first = std::ranges::find_if_not(inventory.cards, IsCut);
  if (first != inventory.cards.end()) {
    AppendToKey(key, first->product);
    AppendToKey(key, static_cast<int64_t>(first->mode));
    AppendToKey(key, first->memory.count());
    AppendToKey(key, first->vgpu_mode);
  }
  AppendToKey(key, inventory.planned() ? 1 : 0);
  for (const MigPool& pool : inventory.pools) {
    AppendToKey(key, pool.key);
    AppendToKey(key, pool.milli.count());
    AppendToKey(key, pool.memory.count());
  }
}

NodeKind KindOf(const Inventory& inventory, MilliCpu cpu) {
  NodeKind kind;
  kind.cpu = cpu;
  Inventory& sample = kind.sample;
  sample.product = inventory.product;
  sample.gpu_unit = inventory.gpu_unit;
  sample.agent = inventory.agent;
  sample.memory_unit = inventory.memory_unit;
  sample.sharing = inventory.sharing;
  sample.replicas = inventory.replicas;
  for (const Card& card : inventory.cards) {
    if (IsCut(card)) continue;
    if (kind.cards++ == 0) sample.cards.push_back(card);
  }
  kind.planned = inventory.planned();
  sample.pools = inventory.pools;
  for (MigPool& pool : sample.pools) pool.slots.clear();
  return kind;
}

// Milli of a card that `need` takes in the dimension that binds.
int64_t ShareOf(const CardNeed& need, const Card& card) {
  const int64_t all = card.memory.count();
  const int64_t memory = all > 0 ? (need.memory.count() * 1000 + all - 1) / all : 0;
  return std::max({need.milli.count(), memory, int64_t{need.exclusive > 0 ? 1000 : 0}});
}

}  // namespace

Need NeedOf(const NodeKind& kind, const PodRequest& request, const Ask& ask) {
  Need need;
  need.pool = PoolFor(kind.sample, ask);
  if (need.pool >= 0 && kind.planned) return need;
  need.count = static_cast<int>(std::min<int64_t>(ask.count, INT16_MAX));
  if (need.pool >= 0) {
    const MigPool& pool = kind.sample.pools[static_cast<std::size_t>(need.pool)];
    Card card;
    card.product = kind.sample.product;
    need.milli = static_cast<int>(pool.milli.count());
    need.possible =
        pool.memory * pool.replicas >= request.min_gpu_memory && MatchesModels(request, card);
    return need;
  }
  const Card* card = kind.card();
  if (card == nullptr || need.count > kind.cards || !IsRightKind(kind.sample, ask, *card) ||
      !MatchesModels(request, *card) || card->memory < request.min_gpu_memory ||
      !Serves(kind.sample.agent, request.style)) {
    return need;
  }
  const int64_t share = ShareOf(NeedOn(kind.sample, ask, *card), *card);
  // A request for nothing of a card would fit for ever.
  need.milli = static_cast<int>(std::clamp<int64_t>(share, 1, 1001));
  need.possible = share <= 1000;
  return need;
}

NodeKinds::NodeKinds() { kinds_.emplace_back(); }

KindId NodeKinds::Of(const Inventory& inventory, MilliCpu cpu_capacity) {
  SetKey(inventory, cpu_capacity, key_);
  const auto found = ids_.find(key_);
  if (found != ids_.end()) return found->second;
  if (kinds_.size() == kMaxKinds) return kNoKind;
  const auto id = static_cast<KindId>(kinds_.size());
  kinds_.push_back(KindOf(inventory, cpu_capacity));
  ids_.emplace(key_, id);
  return id;
}

}  // namespace tranche
