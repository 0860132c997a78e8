// Copies of the books for people and metrics.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "quota/tree/charge.h"
#include "scheduler/engine/impl.h"

namespace tranche {
PodView Engine::Impl::ViewPod(const PodUid& uid, const PodRecord& record) {
  PodView view;
  view.name = record.request->name;
  view.uid = uid;
  view.priority_class = record.request->priority_class;
  view.observed = record.observed;
  const RequestContext context = ContextOf(*record.request);
  if (const HeldWork* work = book.Find(uid)) {
    view.leaf = work->leaf;
    view.workload_class = work->workload_class;
    view.quota_state = book.StateOf(uid);
  } else {
    if (context.standing.leaf != kNoQuota) view.leaf = book.tree().name(context.standing.leaf);
    if (context.standing.gpu_class) view.workload_class = context.standing.gpu_class->name;
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
    DescribeWait(context, uid, record, view);
  } else {
    ViewHeld(id, uid, record, view);
  }
  return view;
}

void Engine::Impl::DescribeWait(const RequestContext& context, const PodUid& uid,
                                const PodRecord& record, PodView& view) {
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
    if (view.detail.empty()) view.detail = DescribeQuota(context, record, latest);
    if (view.detail.empty()) view.detail = "asks " + DescribeRequest(*record.request);
    if (const std::optional<PlanBlock> block = BlockOf(uid)) {
      view.detail += "; " + block->detail;
      if (!view.eligible_at) view.eligible_at = block->until;
      // kube-scheduler never asked us: its own count of GPUs was enough to refuse the pod.
      if (view.reason == Reason::kNone) view.reason = block->reason;
    }
  }
}

void Engine::Impl::ViewHeld(NodeId id, const PodUid& uid, const PodRecord& record,
                            PodView& view) const {
  view.node = names.name(id);
  const NodeState& state = nodes[id]->state;
  const Holding* holding = state.Find(uid);
  if (holding == nullptr) return;
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
}

std::vector<NodeView> Engine::Nodes(const NodeName& after, std::size_t limit, Instant) const {
  std::vector<NodeView> page;
  const std::vector<NodeId>& order = impl_->names.ascending();
  auto at =
      std::ranges::upper_bound(order, after, {}, [&](NodeId id) { return impl_->names.name(id); });
  for (; at != order.end() && page.size() < limit; ++at) {
    if (impl_->nodes[*at] == nullptr || impl_->names.name(*at).empty()) continue;
    if (!impl_->nodes[*at]->state.present()) continue;
    page.push_back(ViewNode(impl_->names.name(*at), *impl_->nodes[*at]));
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
  totals.agent_waiting = impl.agents.waiting() + static_cast<int64_t>(impl.placeholders.waiting());
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
