#include "scheduler/engine/preemption/reclaim_case.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/selection/shape.h"
#include "scheduler/engine/state/demands.h"
#include "scheduler/engine/state/kept_room.h"
#include "scheduler/index/card_sets.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/plant.h"

namespace tranche {
namespace {

void AddCharge(std::vector<LineCharge>& sum, LineId line, const Charge& charge) {
  const auto at = std::ranges::lower_bound(sum, line, {}, &LineCharge::line);
  if (at != sum.end() && at->line == line) {
    at->charge = AddSaturating(at->charge, charge);
  } else {
    sum.insert(at, {line, charge});
  }
}

}  // namespace

ReclaimCase::ReclaimCase(const PlanParts& parts, const Preemptor& preemptor, Instant now,
                         Options options)
    : cluster_(parts.cluster),
      claims_(parts.claims),
      reclaims_(parts.reclaims),
      guards_(parts.guards),
      selection_(parts.selection),
      preemptor_(preemptor),
      now_(now),
      options_(options) {
  tree_ = cluster_.book.tree();
  problem_.tree = &tree_;
  problem_.leaf = preemptor.context.membership.leaf;
  LeaveOutTentative();
  // Nobody waits: all of the leaf's work may go.
  problem_.rank = preemptor.members.empty() ? std::numeric_limits<int>::max()
                                            : RankOf(preemptor.context.membership.gpu_class);
  NoteShapes();
  NoteLeaving();
  GatherRegions();
  // Where no node would do, it does not matter who could go.
  if (preemptor.members.empty() || !regions_.empty()) GatherUnits();
  GatherRules();
  gone_.assign(numbers_.size(), 0);
  GatherShortages();
}

// A quota that only keeps some for a moment borrows nothing yet.
void ReclaimCase::LeaveOutTentative() {
  for (const auto& [uid, work] : cluster_.book.earmarks()) {
    const QuotaId leaf = work.tentative ? tree_.Find(work.leaf) : kNoQuota;
    if (leaf == kNoQuota || leaf == problem_.leaf) continue;
    for (const ModelCharge& part : work.parts) {
      tree_.Remove(leaf, tree_.LineOf(leaf, part.model), part.charge);
    }
  }
}

void ReclaimCase::NoteShapes() {
  std::string last;
  std::string shape;
  for (const auto& member : preemptor_.members) {
    shape.clear();
    AppendShape(*member, shape);
    changes_.push_back(shape == last ? 0 : 1);
    last.swap(shape);
  }
}

bool ReclaimCase::HasNoTeam(const HeldWork& work) const {
  const QuotaMembership membership = cluster_.book.MembershipOf(work.pod.ns, "");
  return work.leaf.empty() && membership.leaf_found == QuotaMembership::Leaf::kNone;
}

bool ReclaimCase::IsHopeless(const HeldWork& work, QuotaId root) const {
  const QuotaId leaf = work.quota;
  const bool lower = RankOf(cluster_.set->ClassNamed(work.workload_class)) < problem_.rank;
  if (work.released || guards_.IsWithinNominal(work)) return true;
  // Where nobody waits a team gives back, and who has none gives nothing.
  if (leaf == kNoQuota) return preemptor_.members.empty() || !lower || !HasNoTeam(work);
  const bool in_quota =
      work.marks.state == QuotaState::kInQuota && !TRANCHE_PLANTED(work_within_nominal_is_evicted);
  if (problem_.leaf == kNoQuota) return !lower || in_quota;
  if (tree_.root(leaf) != root) return true;
  if (leaf == problem_.leaf) return !lower;
  return in_quota && !chosen_from_.contains(leaf);
}

void ReclaimCase::GatherUnits() {
  const QuotaId root = problem_.leaf == kNoQuota ? kNoQuota : tree_.root(problem_.leaf);
  cluster_.book.RefreshMarks();
  const Ties ties = GatherClaims();
  NoteCheckpoints();
  GatherHeld(root);
  std::map<std::string, GangHolders> gangs;
  std::vector<Holder> singles;  // ascending uid
  for (const Holder& one : FindHolders(root)) {
    const bool hopeless = IsHopeless(*one.work, root);
    const std::string key = KeyOf(one.uid, *one.record->request);
    const bool tied = ties.Has(key);
    if (one.record->request->gang.empty() && !tied) {
      if (!hopeless) singles.push_back(one);
      continue;
    }
    if (key == preemptor_.gang) continue;
    // A gang is one victim: one pod that stays keeps all of it.
    GangHolders& gang = gangs[tied ? ties.RootOf(key) : key];
    gang.pods.push_back(one);
    gang.whole &= !hopeless;
    gang.tied |= tied;
  }
  problem_.units.reserve(singles.size() + gangs.size());
  numbers_.reserve(singles.size());
  // Ascending keys, which the search likes.
  auto gang = gangs.begin();
  for (const Holder& single : singles) {
    for (; gang != gangs.end() && gang->first < single.uid.str(); ++gang) {
      AddGang(gang->first, gang->second);
    }
    AddUnit(single.uid.str(), std::span(&single, 1), Spares::kAsItsSize);
  }
  for (; gang != gangs.end(); ++gang) AddGang(gang->first, gang->second);
}

void ReclaimCase::AddGang(const std::string& key, const GangHolders& gang) {
  if (gang.whole) AddUnit(key, gang.pods, gang.tied ? Spares::kNone : Spares::kAsItsSize);
}

// A gang is taken whole; pods above the size it needs may also be taken one by one.
void ReclaimCase::AddUnit(const std::string& key, std::span<const Holder> pods, Spares spares) {
  const int size = spares == Spares::kNone ? 0 : pods.front().record->request->gang_size;
  const int spare = size > 0 ? static_cast<int>(pods.size()) - size : 0;
  VictimUnit gang;
  gang.key = key;
  if (spare <= 0) return MakeUnit(std::move(gang), pods);
  gang.whole_of = problem_.spare_left.size();
  problem_.spare_left.push_back(spare);
  MakeUnit(gang, pods);
  for (const Holder& pod : pods) {
    VictimUnit spared;
    spared.key = key + "/" + pod.uid.str();
    spared.breaks = false;
    spared.spare_of = gang.whole_of;
    MakeUnit(std::move(spared), std::span(&pod, 1));
  }
}

void ReclaimCase::MakeUnit(VictimUnit unit, std::span<const Holder> pods) {
  GuardVerdict guard;
  unit.start = Instant::max();
  std::optional<NodeId> only_node;
  std::vector<int64_t> losses;
  for (const Holder& holder : pods) {
    const PodUid& uid = holder.uid;
    const PodRecord& record = *holder.record;
    const HeldWork& work = *holder.work;
    const GuardVerdict verdict = guards_.Of(uid, record, work, now_);
    if (!verdict.touchable) return;
    if (verdict.guard != Guard::kNone) {
      if (!options_.ignore_guards) {
        any_guarded_ = true;
        return;
      }
      // The one that lasts longest; without a time it outlasts all.
      const bool longer = guard.guard == Guard::kNone || !verdict.until ||
                          (guard.until && *verdict.until > *guard.until);
      if (longer) guard = verdict;
    }
    const NodeId node = cluster_.names.Find(record.node.str());
    if (options_.one_node_units && only_node && *only_node != node) return;
    only_node = node;
    VictimPod& pod = unit.pods.emplace_back();
    const auto region = region_of_.find(node);
    if (region != region_of_.end()) pod.region = region->second;
    NoteBudgets(record, pod);
    const GpuClass* gpu_class = cluster_.set->ClassNamed(work.workload_class);
    unit.leaf = work.quota;
    unit.rank = std::max(unit.rank, RankOf(gpu_class));
    unit.own_rank_protected |=
        gpu_class != nullptr && gpu_class->preemptible == Preemptible::kOverQuota;
    for (const ModelCharge& part : work.parts) {
      AddCharge(unit.parts, tree_.LineOf(work.quota, part.model), part.charge);
    }
    const bool first = unit.pods.size() == 1;
    if (first || work.marks.state == QuotaState::kInQuota) unit.marks = work.marks;
    if (work.quota == kNoQuota) unit.marks = {QuotaState::kBorrowed, false, false};
    if (unit.marks.state == QuotaState::kInQuota && TRANCHE_PLANTED(work_within_nominal_is_evicted))
      unit.marks = {QuotaState::kBorrowed, false, false};
    const int64_t lost = guards_.LossOf(record, work, ages_, now_);
    losses.push_back(lost);
    unit.lost_gpu_ms = AddSaturating(unit.lost_gpu_ms, lost);
    unit.start = std::min(unit.start, work.since);
  }
  unit.held = HeldOf(pods);
  std::vector<int>& numbers = unit_numbers_.emplace_back();
  std::vector<PodUid>& uids = unit_pods_.emplace_back();
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const auto number = static_cast<int>(numbers_.size());
    const auto [at, fresh] = numbers_.try_emplace(pods[i].uid, number);
    if (fresh) lost_.push_back(losses[i]);
    numbers.push_back(at->second);
    uids.push_back(pods[i].uid);
  }
  problem_.units.push_back(std::move(unit));
  verdicts_.push_back(guard);
}

void ReclaimCase::NoteBudgets(const PodRecord& record, VictimPod& pod) {
  if (reclaims_.disruption_budgets.empty() || options_.ignore_guards) return;
  const PodName& name = record.request->name;
  static const Labels kNone;
  const Labels& labels = record.traits.labels == nullptr ? kNone : *record.traits.labels;
  for (auto at = reclaims_.disruption_budgets.lower_bound({name.ns, ""});
       at != reclaims_.disruption_budgets.end() && at->first.first == name.ns; ++at) {
    if (!at->second.Covers(name.ns, name.name, labels)) continue;
    const auto [position, fresh] =
        budget_positions_.try_emplace(at->first, static_cast<int>(problem_.pdb_allowed.size()));
    if (fresh) problem_.pdb_allowed.push_back(LeftOf(at->second));
    pod.budgets.push_back(position->second);
  }
  std::ranges::sort(pod.budgets);
}

// Single pods go to one node; gangs to all nodes of one kind, which charge them the same, and where
// they must stay together of one domain.
void ReclaimCase::GatherRegions() {
  if (preemptor_.members.empty()) return;
  const PodRequest& request = *preemptor_.members.front();
  Shape* const shape = selection_.ShapeOf(preemptor_.context);
  selection_.BeginFits(request);
  const auto avoided = reclaims_.avoided.find(request.uid);
  const auto suits = [&](NodeId id) {
    if (id == kNoNode || ShutTo(cluster_, preemptor_.context, id, now_) != Reason::kNone) {
      return false;
    }
    const Reason reason = selection_.Lookup(shape, preemptor_.context, id, Taken::kFirmly).reason;
    if (reason != Reason::kNone && !MoreRoomWouldHelp(reason)) return false;
    const NodeFacts& facts = cluster_.nodes[id]->state.facts();
    if (!MeetsDemands(facts, request)) return false;
    if (avoided == reclaims_.avoided.end()) return true;
    const auto node = avoided->second.find(facts.name);
    return node == avoided->second.end() || node->second.until <= now_;
  };
  const std::vector<NodeId>& looked_at =
      options_.only != nullptr ? *options_.only : cluster_.names.ascending();
  std::map<std::pair<ChargeKind, std::string>, std::vector<NodeId>> kinds;
  std::optional<GangLevel> within = request.gang_within;
  if (WishOf(request, *preemptor_.context.policy) == TopologyWish::kRequired) {
    within = GangLevel::kClique;
  }
  const auto domain_of = [&](NodeId id) {
    if (!within) return std::string();
    return DomainOf(cluster_, id, *within, preemptor_.context.policy->domains);
  };
  for (const NodeId id : looked_at) {
    if (!suits(id)) continue;
    if (preemptor_.members.size() == 1) {
      AddRegion({id});
    } else {
      std::string domain = domain_of(id);
      if (within && domain.empty()) continue;
      kinds[{cluster_.hot[id].kind, std::move(domain)}].push_back(id);
    }
  }
  for (auto& [kind, nodes] : kinds) AddRegion(std::move(nodes));
}

void ReclaimCase::AddRegion(std::vector<NodeId> nodes) {
  const RequestContext& context = preemptor_.context;
  const ChargeKind kind = cluster_.hot[nodes.front()].kind;
  auto [known, fresh] = kinds_.try_emplace(kind);
  KindOfRegion& cached = known->second;
  if (fresh) {
    std::vector<ModelCharge> parts, sum;
    for (const auto& member : preemptor_.members) {
      ChargeAtMost(cluster_.nodes[nodes.front()]->state.inventory(), *member, parts);
      for (const ModelCharge& part : parts) {
        const LineId line = tree_.LineOf(context.membership.leaf, part.model);
        AddCharge(cached.region.parts, line, part.charge);
        Add(sum, part);
      }
    }
    const Admission admission = cluster_.book.Admit(
        context.membership, sum, preemptor_.members.front()->expected_runtime, now_);
    // What no eviction could cure: hours, and more than the team could ever have.
    const bool has_team = context.membership.leaf != kNoQuota;
    cached.usable = admission.code != AdmissionCode::kBudgetExhausted &&
                    admission.code != AdmissionCode::kExceedsMaxQuota &&
                    (!has_team || cluster_.book.FitsNever(context.membership, sum));
    if (has_team) {
      cached.region.marks = cluster_.book.MarksIfAdded(context.membership, sum, now_);
    }
    if (admission.demoted || !has_team) cached.region.marks = {QuotaState::kBorrowed, false, false};
  }
  if (!cached.usable) return;
  const auto number = static_cast<int>(problem_.regions.size());
  problem_.regions.push_back(cached.region);
  for (const NodeId id : nodes) region_of_[id] = number;
  regions_.push_back(std::move(nodes));
}

void ReclaimCase::GatherRules() {
  const std::size_t quotas = tree_.size();
  problem_.cross_leaf_min_rank.resize(quotas);
  problem_.fair_share.assign(quotas, 0);
  problem_.weights.assign(quotas, 1);
  std::map<std::string, int64_t> promised = Promised();
  for (QuotaId id{0}; id < quotas; ++id) {
    const auto at = static_cast<std::size_t>(id);
    std::optional<bool> cross, fair;
    for (QuotaId above = id; above != kNoQuota; above = tree_.parent(above)) {
      const GpuQuota* spec = cluster_.set->QuotaNamed(tree_.name(above));
      if (spec == nullptr) continue;
      if (!cross && spec->cross_leaf_preemption) {
        cross = spec->cross_leaf_preemption;
        if (*cross) problem_.cross_leaf_min_rank[at] = spec->cross_leaf_min_rank;
      }
      if (!fair) fair = spec->fair_share_preemption;
    }
    problem_.fair_share[at] = fair.value_or(false);
    if (const GpuQuota* spec = cluster_.set->QuotaNamed(tree_.name(id))) {
      problem_.weights[at] = spec->weight;
      if (!options_.ignore_guards) {
        const int64_t spent = reclaims_.history.PodsInHour(spec->name, now_) + promised[spec->name];
        problem_.evictions_left.push_back(
            std::max<int64_t>(0, spec->max_evictions_per_hour - spent));
        any_guarded_ |= spent > 0 || spec->max_evictions_per_hour == 0;
      }
    } else if (!options_.ignore_guards) {
      problem_.evictions_left.push_back(0);
    }
  }
}

// What must at least be freed on each node, so that most of them need no closer look. A charge is
// never less than what its pod takes of the device.
void ReclaimCase::GatherShortages() {
  if (preemptor_.members.size() != 1) return;
  int64_t need = 0;
  for (const Ask& ask : preemptor_.members.front()->asks) {
    if (ask.resource == Resource::kGpu) need += ask.count * kQuantaPerGpu;
    if (ask.resource == Resource::kShare) {
      need += ask.count * ask.compute.count() * (kQuantaPerGpu / kWholeGpu.count());
    }
  }
  const auto free_of = [](const Inventory& inventory, const Load& load) {
    int64_t free = 0;
    for (std::size_t card = 0; card < inventory.cards.size(); ++card) {
      const MilliGpu left = inventory.cards[card].capacity - load.cards[card].milli;
      free += std::max<int64_t>(0, left.count()) * (kQuantaPerGpu / kWholeGpu.count());
    }
    return free;
  };
  Load load;
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const NodeId id = regions_[i].front();
    const NodeState& state = cluster_.nodes[id]->state;
    const Inventory& inventory = state.inventory();
    // Of a vGPU a charge is less than what its pod takes of the device.
    const bool parts = std::ranges::any_of(inventory.cards,
                                           [](const Card& card) { return !card.part.is_whole(); });
    const bool plain = inventory.pools.empty() && inventory.gpu_unit != GpuUnit::kReplica && !parts;
    if (!plain) continue;
    // What is free now stays so when those who leave have gone.
    int64_t free = free_of(inventory, state.hard());
    if (free < need && left_nodes_.contains(id)) {
      LoadOf(SiteOf(id), load);
      free = free_of(inventory, load);
    }
    problem_.regions[i].short_by.compute = std::max<int64_t>(0, need - free);
  }
}

std::optional<std::vector<int>> ReclaimCase::UnitsOf(std::span<const PodUid> pods) const {
  std::set<PodUid> left(pods.begin(), pods.end());
  std::vector<int> units;
  // Whole gangs before their spare pods, which come after them.
  for (std::size_t i = 0; i < unit_pods_.size() && !left.empty(); ++i) {
    const std::vector<PodUid>& members = unit_pods_[i];
    const bool all =
        std::ranges::all_of(members, [&](const auto& uid) { return left.contains(uid); });
    if (!all) continue;
    for (const PodUid& uid : members) left.erase(uid);
    units.push_back(static_cast<int>(i));
  }
  return left.empty() ? std::optional(std::move(units)) : std::nullopt;
}

void ReclaimCase::Mark(std::span<const int> units, char gone) {
  for (const int unit : units) {
    for (const int number : unit_numbers_[static_cast<std::size_t>(unit)]) {
      gone_[static_cast<std::size_t>(number)] = gone;
    }
  }
}

std::optional<std::size_t> ReclaimCase::RegionOf(const NodeName& node) const {
  const NodeId id = cluster_.names.Find(node.str());
  const auto found = region_of_.find(id);
  if (id == kNoNode || found == region_of_.end()) return std::nullopt;
  return static_cast<std::size_t>(found->second);
}

int64_t ReclaimCase::LostOf(const PodUid& uid) const {
  const auto found = numbers_.find(uid);
  return found == numbers_.end() ? 0 : lost_[static_cast<std::size_t>(found->second)];
}

std::vector<WorkInTime> ReclaimCase::RisksOf(std::span<const int> units) const {
  std::vector<WorkInTime> risks;
  for (const int unit : units) {
    for (const PodUid& uid : pods_of(unit))
      risks.push_back(guards_.RiskOf(*claims_.Find(uid), *claims_.WorkOf(uid), ages_, now_));
  }
  return risks;
}

}  // namespace tranche
