#include "scheduler/index/node_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/index/card_links.h"
#include "scheduler/index/card_sets.h"
#include "topology/base/mark.h"
#include "topology/base/plant.h"
#include "topology/base/table_key.h"

namespace tranche {
namespace {

// Of one profile on one node; BuildInventory cuts at seven a card.
constexpr std::size_t kMaxInstances = std::size_t{kMaxCards} * 8;

void AppendCut(const CardCut& cut, std::string& out) {
  AppendToKey(out, std::string(cut.space->board().id));
  for (const CutProfile& profile : cut.profiles) {
    AppendToKey(out, profile.profile);
    AppendToKey(out, profile.memory.count());
    AppendToKey(out, std::ssize(profile.starts));
    for (const int start : profile.starts) AppendToKey(out, start);
  }
}

// What placement asks of them.
void AppendRules(const NodeRules& rules, std::string& key) {
  AppendToKey(key, rules.unenforced_sharing ? static_cast<int64_t>(*rules.unenforced_sharing) : -1);
  AppendToKey(key, rules.several_replicas ? static_cast<int64_t>(*rules.several_replicas) : -1);
  AppendToKey(key, rules.sharing_limits ? std::ssize(*rules.sharing_limits) : -1);
  if (!rules.sharing_limits) return;
  for (const SharingLimit& limit : *rules.sharing_limits) {
    AppendToKey(key, limit.model);
    AppendToKey(key, limit.max_pods_per_gpu);
    AppendToKey(key, limit.context_memory.count());
  }
}

}  // namespace

void NodeState::SetFacts(std::optional<NodeFacts> facts, int hami_minor, MachineTables* tables) {
  facts_ = std::move(facts);
  inventory_ = facts_ ? BuildInventory(*facts_, hami_minor, tables) : Inventory{};
  inventory_.placeholders = placeholders_allowed_ && !inventory_.has_agent() &&
                            !inventory_.planned() && inventory_.gpu_unit == GpuUnit::kCard &&
                            inventory_.sharing == SharingMethod::kNone;
  inventory_.rules = rules_;
  inventory_.metered_pool = metered_pool_;
  static_signature_.clear();
  AppendRules(rules_, static_signature_);
  AppendToKey(static_signature_, inventory_.product);
  AppendToKey(static_signature_, static_cast<int64_t>(inventory_.gpu_unit));
  AppendToKey(static_signature_, static_cast<int64_t>(inventory_.agent));
  AppendToKey(static_signature_, inventory_.memory_unit.count());
  AppendToKey(static_signature_, static_cast<int64_t>(inventory_.sharing));
  AppendToKey(static_signature_, inventory_.placeholders);
  AppendToKey(static_signature_, inventory_.replicas);
  AppendToKey(static_signature_, cpu_capacity().count());
  AppendToKey(static_signature_, inventory_.planned());
  for (const CountedKey& key : inventory_.keys) {
    AppendToKey(static_signature_, key.key);
    AppendToKey(static_signature_, key.allocatable);
    AppendToKey(static_signature_, key.capacity);
  }
  uniform_cards_ = true;
  for (const Card& card : inventory_.cards) {
    const Card& first = inventory_.cards.front();
    uniform_cards_ &= card.product == first.product && card.vgpu_mode == first.vgpu_mode;
    AppendToKey(static_signature_, card.product);
    AppendToKey(static_signature_, card.vgpu_mode);
    uniform_cards_ &= card.cut == first.cut;
    AppendToKey(static_signature_, card.cut == nullptr ? 0 : std::ssize(card.cut->profiles));
    if (card.cut != nullptr) AppendCut(*card.cut, static_signature_);
  }
  AppendLinks(inventory_, static_signature_);
  // A node that changed may make a record readable, or no longer so.
  for (Holding& holding : holdings_) holding.known = holding.told_by_probe = false;
  Recompute();
}

void NodeState::Hold(Holding holding) {
  holding.known = false;
  const auto at = std::ranges::lower_bound(holdings_, holding.uid, {}, &Holding::uid);
  if (at != holdings_.end() && at->uid == holding.uid) {
    *at = std::move(holding);
  } else {
    holdings_.insert(at, std::move(holding));
  }
  Recompute();
}

void NodeState::Release(const PodUid& uid) {
  const auto at = std::ranges::lower_bound(holdings_, uid, {}, &Holding::uid);
  if (at == holdings_.end() || at->uid != uid) return;
  holdings_.erase(at);
  Recompute();
}

const Holding* NodeState::Find(const PodUid& uid) const {
  const auto at = std::ranges::lower_bound(holdings_, uid, {}, &Holding::uid);
  return at == holdings_.end() || at->uid != uid ? nullptr : &*at;
}

void NodeState::SetPlainCpu(MilliCpu cpu) {
  plain_cpu_ = cpu;
  Recompute();
}

int64_t NodeState::BookedGpus(const Inventory& inventory, const Load& load) {
  const CountedKey* key = inventory.FindKey(kGpuKey);
  return key == nullptr ? 0 : load.keys[static_cast<std::size_t>(key - inventory.keys.data())];
}

void NodeState::SetUnshown(int64_t gpus) {
  unshown_ = gpus;
  booked_ = BookedGpus(inventory_, hard_);
  Recompute();
}

MilliCpu NodeState::cpu_capacity() const {
  return facts_ && facts_->cpu ? *facts_->cpu : MilliCpu::Zero();
}

MilliCpu NodeState::CpuFree(const Load& load) const {
  const int64_t step = cpu_capacity().count() / kCpuSteps;
  if (step == 0) return MilliCpu::Zero();
  const int64_t free = std::max<int64_t>((cpu_capacity() - load.cpu).count(), 0);
  return MilliCpu::Of(free / step * step);
}

// With the CPU, which nobody counts as a device.
void NodeState::AddKeys(const PodRequest& request, Load& load) const {
  load.cpu += request.cpu;
  load.pinned_cpu += PinnedCpu(request);
  for (const PoolNeed& need : request.pool_needs) {
    const CountedKey* key = inventory_.FindKey(need.key);
    if (key != nullptr) {
      load.keys[static_cast<std::size_t>(key - inventory_.keys.data())] += need.count;
    }
  }
}

void NodeState::AddRequest(const PodRequest& request, const Picks& picks, Load& load) const {
  AddUse(load, UseOf(request, picks));
  AddKeys(request, load);
}

void NodeState::AddHolding(const Holding& holding, Load& load) const {
  if (holding.placeholder != PlaceholderRole::kNone) return;  // after those who follow it
  AddUse(load, holding.use);
  AddKeys(*holding.request, load);
  const bool exact = inventory_.knowledge == Knowledge::kExact;
  if (!holding.known && (exact || holding.unreadable)) load.devices_unknown = true;
}

void NodeState::AddPlaceholders(Load& load) const {
  if (load.cards.empty()) return;
  const CountedKey* key = inventory_.FindKey(kGpuKey);
  std::array<bool, kMaxCards> held{};
  for (const Holding& holding : holdings_) {
    if (holding.placeholder == PlaceholderRole::kNone || holding.picks.empty()) continue;
    const auto card = static_cast<std::size_t>(holding.picks.front().card);
    if (holding.placeholder == PlaceholderRole::kOpen && load.cards[card].kept == 0) continue;
    held[card] = holding.placeholder != PlaceholderRole::kLeaving;
    AddUse(load, holding.use);
    AddKeys(*holding.request, load);
  }
  if (!inventory_.placeholders || key == nullptr) return;
  int64_t& units = load.keys[static_cast<std::size_t>(key - inventory_.keys.data())];
  for (std::size_t i = 0; i < load.cards.size(); ++i) units += load.cards[i].kept > 0 && !held[i];
}

Allocation NodeState::Located(const Holding& holding) const {
  Allocation record = *holding.allocation;
  const auto locate = [this](const GpuUuid& uuid, int& card) {
    if (uuid.empty()) return;
    for (std::size_t i = 0; i < inventory_.cards.size(); ++i) {
      if (inventory_.cards[i].uuid != uuid) continue;
      card = static_cast<int>(i);
      return;
    }
    for (const Holding& placeholder : holdings_) {
      if (placeholder.told != uuid || !placeholder.known || placeholder.picks.empty()) continue;
      card = placeholder.picks.front().card;
      return;
    }
  };
  for (ContainerDevices& container : record.containers) {
    for (Device& device : container.devices) {
      const bool keeps = holding.placeholder != PlaceholderRole::kNone;
      if (keeps || device.slot) locate(keeps ? holding.told : device.uuid, device.card);
    }
  }
  return record;
}

bool NodeState::FollowRecord(Holding& holding) const {
  const Allocation record = Located(holding);
  const PodRequest& request = *holding.request;
  std::optional<Picks> as_asked;
  if (!request.asks.empty()) {
    as_asked = FromAllocation(inventory_, request, record, holding.problem);
  }
  if (as_asked && holding.others.empty()) {
    holding.picks = *std::move(as_asked);
    return true;
  }
  std::optional<HeldDevices> held;
  if (as_asked) {
    held = {request, *std::move(as_asked)};
  } else if (MayBeEdited(request) && !TRANCHE_PLANTED(edited_wishes_close_the_node)) {
    TRANCHE_MARK(record_says_what_is_held);
    held = FromRecordAlone(inventory_, request, record, holding.problem);
  }
  if (!held) return false;
  for (const Allocation& other : holding.others) {
    if (!AddNamed(inventory_, other, *held, holding.problem)) return false;
  }
  holding.picks = std::move(held->picks);
  holding.by_record = std::make_shared<const PodRequest>(std::move(held->request));
  holding.problem.clear();
  return true;
}

void NodeState::Resolve(Holding& holding) const {
  // What it had by an earlier inventory may name cards that are there no more.
  holding.picks.clear();
  holding.use = {};
  holding.problem.clear();
  holding.by_record = nullptr;
  if (holding.allocation->epoch > epoch_ || holding.allocation->epoch < 0) {
    TRANCHE_MARK(record_of_a_later_epoch);
    holding.problem =
        fmt::format("expected an epoch of at most {}, found {}", epoch_, holding.allocation->epoch);
    return;
  }
  if (!FollowRecord(holding)) return;
  holding.use = UseOf(holding.held(), holding.picks);
  holding.known = true;
  const bool open = holding.placeholder == PlaceholderRole::kOpen ||
                    holding.placeholder == PlaceholderRole::kLingering;
  if (!open) return;
  for (CardUse& card : holding.use.cards) {
    card = CardUse{};
    card.card = holding.picks.front().card;
    card.kept = 1;
  }
}

void NodeState::SetPlaceholderRole(const PodUid& uid, PlaceholderRole role) {
  const auto at = std::ranges::lower_bound(holdings_, uid, {}, &Holding::uid);
  if (at == holdings_.end() || at->uid != uid || at->placeholder == role) return;
  at->placeholder = role;
  Recompute();
}

void NodeState::SetEpoch(int64_t epoch) {
  epoch_ = epoch;
  if (!holdings_.empty()) Recompute();
}

void NodeState::SetNoNewPlaceholder(bool none) {
  if (std::exchange(no_new_placeholder_, none) != none) Recompute();
}

void NodeState::Recompute() {
  ResetLoad(hard_);
  tentative_ = 0;
  // Those who follow a placeholder are where it is.
  for (const bool placeholders : {true, false}) {
    for (Holding& holding : holdings_) {
      const bool keeps = holding.placeholder != PlaceholderRole::kNone;
      if (keeps != placeholders || !(keeps || holding.request->follows_placeholder)) continue;
      holding.known = false;
      if (holding.allocation) Resolve(holding);
    }
  }
  // Pods whose devices are known come first; the others are then put where room is left, in order
  // of UID, so that the outcome does not depend on the order in which they were heard of.
  for (Holding& holding : holdings_) {
    if (!holding.known && holding.allocation) Resolve(holding);
    if (holding.placeholder == PlaceholderRole::kNone) FollowProbe(holding);
    if (holding.kind == HoldingKind::kTentative) {
      ++tentative_;
    } else if (holding.known) {
      AddHolding(holding, hard_);
    }
  }
  for (Holding& holding : holdings_) {
    if (holding.known || holding.kind == HoldingKind::kTentative) continue;
    if (TRANCHE_PLANTED(unknown_is_free)) continue;
    if (!holding.allocation) holding.problem = "expected an allocation record, found none";
    holding.by_record = nullptr;
    if (holding.request->asks.empty()) {
      holding.by_record = std::make_shared<const PodRequest>(WholeUnits(*holding.request));
    }
    placer_.Force(inventory_, hard_, holding.held(), holding.picks);
    holding.use = UseOf(holding.held(), holding.picks);
    AddHolding(holding, hard_);
  }
  soft_ = hard_;
  AddPlaceholders(hard_);
  for (const Holding& holding : holdings_) {
    if (holding.kind == HoldingKind::kTentative && holding.known) AddHolding(holding, soft_);
  }
  AddPlaceholders(soft_);
}

void NodeState::FollowProbe(Holding& holding) const {
  if (!inventory_.plugin_chooses() || !facts_->probe || !facts_->probe->pods) return;
  const auto found =
      std::ranges::lower_bound(*facts_->probe->pods, holding.request->name, {}, &ProbePod::pod);
  if (found == facts_->probe->pods->end() || found->pod != holding.request->name) return;
  std::optional<Picks> picks = PicksOn(inventory_, *holding.request, found->gpus);
  if (!picks) return;
  holding.picks = std::move(*picks);
  holding.by_record = nullptr;
  holding.use = UseOf(*holding.request, holding.picks);
  holding.known = true;
  holding.told_by_probe = true;
}

void NodeState::Signature(const Load& load, std::string& out) const {
  out = static_signature_;
  AppendToKey(out, load.devices_unknown);
  AppendToKey(out, load.no_new_placeholder);
  AppendToKey(out, CpuFree(load).count());
  for (const int64_t used : load.keys) AppendToKey(out, used);
  if (!inventory_.zones.empty()) {
    AppendToKey(out, load.pinned_cpu.count());
    AppendToKey(out, load.unshown);
    AppendToKey(out, load.booked);
  }
  // One fixed-size row a card, sorted: placement does not care which of equal cards is which.
  struct Row {
    int64_t card_class, mode, capacity, memory, slots, contexts, numa, fit, milli_used, memory_used,
        slots_used, beside, exclusive, kept, layout;
    auto operator<=>(const Row&) const = default;
  };
  std::array<Row, kMaxCards> rows{};
  const std::size_t cards = inventory_.cards.size();
  for (std::size_t i = 0; i < cards; ++i) {
    const Card& card = inventory_.cards[i];
    const CardLoad& used = load.cards[i];
    const bool usable = card.healthy && !card.cordoned;
    rows[i] = {inventory_.card_class.empty() ? 0 : inventory_.card_class[i],
               static_cast<int64_t>(card.mode),
               card.capacity.count(),
               card.memory.count(),
               card.slots,
               card.contexts,
               card.numa.value_or(-1),
               usable,
               used.milli.count(),
               used.memory.count(),
               used.slots,
               used.beside,
               used.exclusive,
               used.kept > 0,
               card.cut == nullptr ? 0 : (used.layout_broken ? -1 : int64_t{used.layout.number()})};
  }
  const bool alike = inventory_.table == nullptr || !inventory_.card_class.empty();
  if (uniform_cards_ && alike) {
    std::sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(cards));
  }
  out.append(reinterpret_cast<const char*>(rows.data()), cards * sizeof(Row));
  if (inventory_.planned()) {
    std::vector<std::vector<int64_t>> planned = PlannedRows(inventory_, load);
    std::ranges::sort(planned);
    for (const std::vector<int64_t>& row : planned) {
      AppendToKey(out, static_cast<int64_t>(row.size()));
      for (const int64_t word : row) AppendToKey(out, word);
    }
    return;
  }
  for (std::size_t p = 0; p < inventory_.pools.size(); ++p) {
    AppendToKey(out, inventory_.pools[p].key);
    AppendToKey(out, inventory_.pools[p].replicas);
    AppendToKey(out, static_cast<int64_t>(load.slots[p].size()));
    std::array<int64_t, kMaxInstances> users{};
    const std::size_t instances = std::min(load.slots[p].size(), users.size());
    std::copy_n(load.slots[p].begin(), instances, users.begin());
    std::sort(users.begin(), users.begin() + static_cast<std::ptrdiff_t>(instances));
    for (std::size_t i = 0; i < instances; ++i) AppendToKey(out, users[i]);
  }
}

}  // namespace tranche
