// Copies of the books for people and metrics.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "quota/charge.h"
#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

std::string ClosedDetail(const NodeEntry& entry) {
  switch (entry.closed) {
    case Reason::kOperatorBusy:
      return entry.held.empty() ? entry.state.facts().operator_busy : entry.held;
    case Reason::kDevicesUnknown:
      if (!entry.unkept.empty()) return entry.unkept;
      for (const Holding& holding : entry.state.holdings()) {
        if (holding.kind == HoldingKind::kClaim || holding.known) continue;
        return holding.request->name.str() + ": " + holding.problem;
      }
      return "";
    default:
      return "";
  }
}

GpuView ViewCard(const Inventory& inventory, std::size_t at) {
  const Card& card = inventory.cards[at];
  GpuView view;
  if (inventory.knowledge != Knowledge::kCounts) view.index = card.index;
  view.uuid = card.uuid;
  view.memory = card.memory;
  view.healthy = card.healthy && !card.cordoned;
  view.numa = card.numa;
  view.is_mig = card.mode == CardMode::kMig || card.cut != nullptr;
  view.replicas = card.mode == CardMode::kReplicated ? static_cast<int>(inventory.replicas) : 1;
  return view;
}

// Adds what one pod holds to the cards' and instances' lists.
void AddPod(const NodeState& state, const Holding& holding, NodeView& view,
            std::map<std::pair<int, int>, MigView*>& instances) {
  const Inventory& inventory = state.inventory();
  const auto add = [&](int card, MilliGpu milli, Mebibytes memory) {
    GpuView& gpu = view.gpus[static_cast<std::size_t>(card)];
    // What is kept for a preemptor lies over its victims' devices until they have gone.
    const bool earmark = holding.kind == HoldingKind::kEarmark;
    if (earmark) milli = std::min(milli, std::max(gpu.free_milli, MilliGpu::Zero()));
    if (earmark) memory = std::min(memory, std::max(gpu.free_memory, Mebibytes::Zero()));
    gpu.free_milli -= milli;
    gpu.free_memory -= memory;
    gpu.pods.push_back({holding.request->name, holding.uid, milli, memory});
  };
  for (const CardUse& use : holding.use.cards) add(use.card, use.milli, use.memory);
  for (const Pick& pick : holding.picks) {
    if (pick.place.space == nullptr) continue;
    const MigPlace& place = pick.place;
    const MigProfile& profile =
        place.space->board().profiles[static_cast<std::size_t>(place.profile)];
    view.gpus[static_cast<std::size_t>(pick.card)].mig.push_back(
        {std::string(profile.name), place.start, profile.size, {holding.request->name.str()}});
  }
  for (const InstanceUse& use : holding.use.instances) {
    const MigPool& pool = inventory.pools[static_cast<std::size_t>(use.pool)];
    const MigSlot& slot = pool.slots[static_cast<std::size_t>(use.slot)];
    add(slot.card, pool.milli * use.users, pool.memory * use.users);
    instances.at({use.pool, use.slot})->pods.push_back(holding.request->name.str());
  }
}

}  // namespace

NodeView Engine::Impl::ViewNode(NodeId id) const {
  const NodeEntry& entry = *nodes[id];
  const NodeState& state = entry.state;
  const Inventory& inventory = state.inventory();
  NodeView view;
  view.name = names.name(id);
  view.model = inventory.model;
  view.ready = state.present() && state.facts().ready;
  view.closed = entry.closed;
  view.closed_detail = ClosedDetail(entry);
  view.knowledge = inventory.knowledge;
  view.problems = inventory.problems;
  if (inventory.links != MachineSource::kNone && inventory.links != MachineSource::kZones &&
      inventory.links != MachineSource::kSlices) {
    view.machine = inventory.table;
    view.links_verified = inventory.links_verified;
  }
  if (state.present()) {
    view.problems.insert(view.problems.end(), state.facts().problems.begin(),
                         state.facts().problems.end());
  }
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    GpuView gpu = ViewCard(inventory, i);
    gpu.free_milli = inventory.cards[i].capacity;
    gpu.free_memory = inventory.cards[i].memory;
    view.gpus.push_back(std::move(gpu));
  }
  std::vector<std::vector<std::pair<std::pair<int, int>, MigView>>> by_card(view.gpus.size());
  for (std::size_t p = 0; p < inventory.pools.size(); ++p) {
    const MigPool& pool = inventory.pools[p];
    for (std::size_t s = 0; s < pool.slots.size(); ++s) {
      // Of a planned layout only the instances that pods hold exist.
      if (inventory.planned() && state.hard().slots[p][s] == 0) continue;
      MigView mig{pool.profile, pool.slots[s].start, pool.slots[s].size, {}};
      by_card[static_cast<std::size_t>(pool.slots[s].card)].emplace_back(
          std::pair(static_cast<int>(p), static_cast<int>(s)), std::move(mig));
    }
  }
  std::map<std::pair<int, int>, MigView*> instances;
  for (std::size_t i = 0; i < by_card.size(); ++i) {
    std::ranges::sort(by_card[i], {}, [](const auto& item) { return item.second.start; });
    for (auto& item : by_card[i]) view.gpus[i].mig.push_back(std::move(item.second));
    for (std::size_t m = 0; m < by_card[i].size(); ++m) {
      instances[by_card[i][m].first] = &view.gpus[i].mig[m];
    }
  }
  for (const bool earmarks : {false, true}) {
    for (const Holding& holding : state.holdings()) {
      const bool earmark = holding.kind == HoldingKind::kEarmark;
      if (holding.kind == HoldingKind::kClaim || earmark != earmarks) continue;
      if (!holding.told.empty() && holding.known) {
        view.gpus[static_cast<std::size_t>(holding.picks.front().card)].uuid = holding.told;
      }
      AddPod(state, holding, view, instances);
    }
  }
  return view;
}

PodView Engine::Impl::ViewPod(const PodUid& uid, const PodRecord& record) {
  PodView view;
  view.name = record.request->name;
  view.uid = uid;
  view.priority_class = record.request->priority_class;
  view.observed = record.observed;
  const Question question = QuestionOf(*record.request);
  if (const HeldWork* work = book.Find(uid)) {
    view.leaf = work->leaf;
    view.workload_class = work->workload_class;
    view.quota_state = book.StateOf(uid);
  } else {
    if (question.standing.leaf != kNoQuota) view.leaf = book.tree().name(question.standing.leaf);
    if (question.standing.gpu_class) view.workload_class = question.standing.gpu_class->name;
  }
  NodeId id = kNoNode;
  if (record.Place().empty()) {
    view.request = record.request;
    view.waits_since = record.waits_since;
  }
  if (!record.node.empty()) {
    view.state = PodState::kBound;
    id = names.Find(record.node.str());
  } else if (!record.reserved.empty()) {
    view.state = PodState::kReserved;
    id = names.Find(record.reserved.str());
  } else if (record.claimed != kNoNode) {
    view.state = PodState::kClaimed;
    id = record.claimed;
  }
  if (id == kNoNode || nodes[id] == nullptr) {
    view.node = record.node;
    view.reason = record.last_reason;
    view.eligible_at = record.eligible_at;
    if (record.request->refusal) {
      view.reason = record.request->refusal->reason;
      view.detail = record.request->refusal->detail;
    } else if (record.last_reason == Reason::kYieldingTo) {
      const PodRecord* first = Find(record.yields_to);
      if (first != nullptr) view.detail = "gives way to " + first->request->name.str();
    } else if (const auto plan = reclaims.of_member.find(uid); plan != reclaims.of_member.end()) {
      const Reclaim& reclaim = reclaims.all.at(plan->second);
      view.reason = Reason::kPreemptionInProgress;
      const auto member = std::ranges::find(reclaim.members, uid, &ReclaimMember::uid);
      view.detail = fmt::format("{} of {} gone, for GPUs on {}", reclaim.gone(),
                                reclaim.victims.size(), member->node.str());
      view.eligible_at.reset();
    } else if (record.last_reason != Reason::kNone || reclaims.hungry_key.contains(uid)) {
      view.detail = DescribeGang(record);
      if (view.detail.empty()) view.detail = DescribeQuota(question, record, latest);
      if (view.detail.empty()) view.detail = "asks " + DescribeRequest(*record.request);
      if (const std::optional<PlanBlock> block = BlockOf(uid)) {
        view.detail += "; " + block->detail;
        if (!view.eligible_at) view.eligible_at = block->until;
        // kube-scheduler never asked us: its own count of GPUs was enough to refuse the pod.
        if (view.reason == Reason::kNone) view.reason = block->reason;
      }
    }
    return view;
  }
  view.node = names.name(id);
  const NodeState& state = nodes[id]->state;
  const Holding* holding = state.Find(uid);
  if (holding == nullptr) return view;
  for (const ContainerInfo& container : record.request->containers) {
    view.containers.push_back(container.name);
  }
  if (holding->known) {
    view.allocation = holding->allocation;
    if (holding->told_by_probe) {
      Allocation told = ToAllocation(state.inventory(), *holding->request, holding->picks);
      told.knowledge = Knowledge::kExact;
      if (holding->allocation) {
        told.epoch = holding->allocation->epoch;
        told.leaf = holding->allocation->leaf;
      }
      view.allocation = std::move(told);
    }
  } else {
    view.devices_unknown = true;
    view.detail = holding->problem;
    if (state.present()) {
      view.allocation = ToAllocation(state.inventory(), *holding->request, holding->picks);
    }
  }
  return view;
}

std::vector<NodeView> Engine::Nodes(const NodeName& after, std::size_t limit, Instant) const {
  std::vector<NodeView> page;
  const std::vector<NodeId>& order = impl_->names.ascending();
  auto at =
      std::ranges::upper_bound(order, after, {}, [&](NodeId id) { return impl_->names.name(id); });
  for (; at != order.end() && page.size() < limit; ++at) {
    if (impl_->nodes[*at] == nullptr || impl_->names.name(*at).empty()) continue;
    if (!impl_->nodes[*at]->state.present()) continue;
    page.push_back(impl_->ViewNode(*at));
    DraDesk(*impl_).ViewGpus(*at, page.back());
  }
  return page;
}

std::vector<PodView> Engine::Pods(const PodName& after, const PodUid& after_uid,
                                  std::size_t limit) {
  std::vector<PodView> page;
  DraDesk desk(*impl_);
  const DraBooks& dra_books = impl_->dra_books;
  auto claiming = dra_books.by_name.upper_bound({after, after_uid});
  auto at = impl_->pods_by_name.upper_bound({after, after_uid});
  while (page.size() < limit) {
    const bool no_more = at == impl_->pods_by_name.end();
    if (claiming != dra_books.by_name.end() && (no_more || *claiming < *at)) {
      const DraPod& pod = dra_books.pods.at(claiming->second);
      if (pod.wants_gpus) page.push_back(desk.ViewPod(claiming->second, pod));
      ++claiming;
      continue;
    }
    if (no_more) break;
    const PodRecord& record = impl_->pods.at(at->second);
    if (!record.terminal) page.push_back(impl_->ViewPod(at->second, record));
    ++at;
  }
  return page;
}

EngineTotals Engine::Totals() const {
  Impl& impl = *impl_;
  EngineTotals totals;
  totals.claims = impl.claims;
  totals.reservations = static_cast<int64_t>(impl.reservations.size());
  if (!impl.reservations.empty()) totals.oldest_reservation = impl.reservations.begin()->first;
  totals.agent_waiting = impl.agents.waiting() + static_cast<int64_t>(impl.keeper_waits.size());
  totals.agent_serving = impl.agents.serving();
  totals.agent_passed_over = impl.agents.passed_over();
  for (const auto& [uid, record] : impl.pods) {  // counts only: order cannot matter
    if (record.terminal) continue;
    (record.node.empty() ? totals.pods_pending : totals.pods_bound) += 1;
  }
  std::map<std::string, ModelTotals> models;
  std::map<StateId, int64_t> stranded_by_state;
  for (const auto& entry : impl.nodes) {
    if (entry == nullptr || !entry->state.present()) continue;
    const Inventory& inventory = entry->state.inventory();
    const Load& load = entry->state.hard();
    ++totals.nodes;
    totals.nodes_closed += entry->closed != Reason::kNone;
    for (const Holding& holding : entry->state.holdings()) {
      totals.pods_devices_unknown +=
          holding.kind == HoldingKind::kAllocation && !holding.known &&
          !DraDesk(impl).HasOnlyDraGpus(impl.names.Find(entry->state.facts().name.str()));
    }
    if (inventory.cards.empty()) continue;
    ModelTotals& row = models[inventory.model];
    std::vector<CardLoad> used = load.cards;
    for (std::size_t p = 0; p < inventory.pools.size(); ++p) {
      const MigPool& pool = inventory.pools[p];
      for (std::size_t i = 0; i < pool.slots.size(); ++i) {
        CardLoad& card = used[static_cast<std::size_t>(pool.slots[i].card)];
        card.milli += pool.milli * load.slots[p][i];
        card.memory += pool.memory * load.slots[p][i];
      }
    }
    for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
      const Card& card = inventory.cards[i];
      ++row.gpus;
      row.capacity += kWholeGpu;
      row.memory_capacity += card.memory;
      row.memory_allocated += used[i].memory;
      // Pods others placed may over-use a card; it is then simply full.
      const MilliGpu milli = std::min(used[i].milli, kWholeGpu);
      row.allocated +=
          MilliGpuRoundedUp(GpuEquivalents(ChargeOfShare(milli, used[i].memory, card.memory)));
    }
    auto [at, fresh] = stranded_by_state.try_emplace(entry->hard, 0);
    if (fresh) {
      at->second = impl.scorer.Waste(RoomOf(entry->state, load));
    }
    row.stranded += MilliGpu::Of(at->second);
  }
  for (auto& [name, row] : models) {
    row.model = name;
    totals.models.push_back(std::move(row));
  }
  return totals;
}

}  // namespace tranche
