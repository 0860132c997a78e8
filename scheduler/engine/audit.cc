// The books checked against themselves, by other means than those that keep them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/engine/impl.h"
#include "scheduler/engine/shape.h"

namespace tranche {
namespace {

// Cards that somebody follows a keeper on and that none holds: one unit each will be taken.
int64_t KeepersToBe(const NodeState& state) {
  if (!state.inventory().keepers) return 0;
  std::set<int> followed;
  std::set<int> held;
  for (const Holding& holding : state.holdings()) {
    if (holding.kind == HoldingKind::kClaim) continue;
    for (const CardUse& use : holding.use.cards) {
      if (use.kept > 0) (holding.keeper == KeeperRole::kNone ? followed : held).insert(use.card);
    }
  }
  return std::ranges::count_if(followed, [&held](int card) { return !held.contains(card); });
}

// The node's load summed device by device from its holdings, without Load's own arithmetic.
void AuditLoad(const NodeName& name, const NodeState& state, std::vector<std::string>& faults) {
  const Inventory& inventory = state.inventory();
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    int64_t milli = 0, memory = 0;
    for (const Holding& holding : state.holdings()) {
      if (holding.kind == HoldingKind::kClaim) continue;
      for (const CardUse& use : holding.use.cards) {
        if (use.card != static_cast<int>(i)) continue;
        milli += use.milli.count();
        memory += use.memory.count();
      }
    }
    const CardLoad& load = state.hard().cards[i];
    if (load.milli.count() != milli || load.memory.count() != memory) {
      faults.push_back(fmt::format("{} card {}: expected {} milli {} MiB, found {} milli {} MiB",
                                   name.str(), i, milli, memory, load.milli.count(),
                                   load.memory.count()));
    }
  }
  for (std::size_t k = 0; k < inventory.keys.size(); ++k) {
    int64_t used = 0;
    for (const Holding& holding : state.holdings()) {
      if (holding.kind == HoldingKind::kClaim) continue;
      for (const PoolNeed& need : holding.request->pool_needs) {
        if (need.key == inventory.keys[k].key) used += need.count;
      }
    }
    if (inventory.keys[k].key == kGpuKey) used += KeepersToBe(state);
    if (used != state.hard().keys[k]) {
      faults.push_back(fmt::format("{} {}: expected {} in use, found {}", name.str(),
                                   inventory.keys[k].key, used, state.hard().keys[k]));
    }
  }
}

// Each leaf's use summed again from who holds what.
void AuditQuota(const QuotaBook& book, std::vector<std::string>& faults) {
  const QuotaTree& tree = book.tree();
  for (QuotaId id{0}; id < tree.size(); ++id) {
    const std::string& name = tree.name(id);
    if (!book.IsLeaf(name)) continue;
    for (const QuotaLineView& line : tree.View(id)) {
      Charge used;
      const auto count = [&](const HeldWork& work) {
        if (work.leaf != name || work.released) return;
        for (const ModelCharge& part : work.parts) {
          if (line.model != kAnyModel && part.model != line.model) continue;
          used.compute += part.charge.compute;
          used.memory += part.charge.memory;
        }
      };
      for (const auto& [uid, work] : book.holdings()) count(work);
      for (const auto& [uid, work] : book.earmarks()) count(work);
      if (used != line.used) {
        faults.push_back(fmt::format("quota {} line {}: expected {}/{} quanta in use, found {}/{}",
                                     name, line.model, used.compute, used.memory, line.used.compute,
                                     line.used.memory));
      }
    }
  }
}

}  // namespace

bool Engine::Impl::IsKnownTo(const PodRecord* record, const Holding& holding, NodeId id) const {
  if (record == nullptr || record->terminal) return false;
  const NodeName& name = names.name(id);
  switch (holding.kind) {
    case HoldingKind::kClaim:
      return record->claimed == id;
    case HoldingKind::kEarmark:
      return record->earmark != nullptr && record->earmark->node == name;
    case HoldingKind::kReservation:
      return record->reserved == name;
    case HoldingKind::kAllocation:
      return record->node == name;
  }
  return false;
}

void Engine::Impl::AuditNodes(std::vector<std::string>& faults) {
  int64_t claimed = 0;
  int64_t reserved = 0;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (nodes[id] == nullptr) continue;
    const NodeEntry& entry = *nodes[id];
    const NodeName& name = names.name(id);
    AuditLoad(name, entry.state, faults);
    for (const Holding& holding : entry.state.holdings()) {
      if (holding.keeper != KeeperRole::kNone) {
        if (placeholders.books().Knows(holding.uid)) continue;
        faults.push_back(fmt::format("{}: nobody knows of the keeper {}", name.str(),
                                     holding.request->name.str()));
        continue;
      }
      claimed += holding.kind == HoldingKind::kClaim;
      reserved += holding.kind == HoldingKind::kReservation;
      if (IsKnownTo(Find(holding.uid), holding, id)) continue;
      faults.push_back(fmt::format("{}: a holding of {} has no pod that knows of it", name.str(),
                                   holding.uid.str()));
    }
    if (entry.closed != hot[id].closed || entry.hard != hot[id].hard ||
        entry.soft != hot[id].soft) {
      faults.push_back(fmt::format("{}: the packed row differs from the entry", name.str()));
    }
  }
  if (claimed != claims) {
    faults.push_back(fmt::format("expected {} claims, found {} counted", claimed, claims));
  }
  if (reserved != static_cast<int64_t>(reservations.size())) {
    faults.push_back(
        fmt::format("expected {} reservations, found {} listed", reserved, reservations.size()));
  }
}

void Engine::Impl::AuditPods(std::vector<std::string>& faults) {
  for (const auto& [uid, record] : pods) {
    const std::string& place = record.Place().str();
    if (!place.empty()) {
      const NodeId id = names.Find(place);
      if (id == kNoNode || nodes[id]->state.Find(uid) == nullptr) {
        faults.push_back(
            fmt::format("pod {} says it is on {}, which does not hold it", uid.str(), place));
      }
    }
    if (!record.reserved.empty() && !reservations.contains({record.reserved_since, uid})) {
      faults.push_back(fmt::format("the reservation of {} is not listed", uid.str()));
    }
  }
  for (const PodUid& uid : agents.Known()) {
    const PodRecord* record = Find(uid);
    // Of those that have ended, only what an agent could still take for another.
    if (record == nullptr || (!record->terminal && record->Place().empty())) {
      faults.push_back(fmt::format("{} is in line at an agent and on no node", uid.str()));
    }
  }
}

// What quota counts and keeps has a pod or a claim behind it.
void Engine::Impl::AuditCharges(std::vector<std::string>& faults) {
  for (const auto& [uid, work] : book.earmarks()) {
    if (dra_books.kept.contains(uid)) continue;
    const PodRecord* record = Find(uid);
    if (record == nullptr || record->earmark == nullptr ||
        (!reclaims.of_member.contains(uid) && !reclaims.nominated_until.contains(uid) &&
         !IsSeated(uid, *record))) {
      faults.push_back(fmt::format("quota is kept for {}, for which nothing runs", uid.str()));
    }
  }
  AuditQuota(book, faults);
  for (const auto& [uid, work] : book.holdings()) {
    if (unclaimed.contains(uid) || dra_books.held.contains(uid)) continue;
    const PodRecord* record = Find(uid);
    if (record == nullptr || record->terminal || record->Place().empty()) {
      faults.push_back(
          fmt::format("quota counts {} of {}, which holds nothing", uid.str(), work.pod.str()));
    }
  }
}

std::vector<std::string> Engine::Audit() const {
  std::vector<std::string> faults;
  impl_->AuditCaps(faults);
  impl_->AuditNodes(faults);
  impl_->AuditPods(faults);
  DraDesk(*impl_).Audit(faults);
  impl_->AuditCharges(faults);
  return faults;
}

std::vector<std::string> Engine::AuditVerdicts(const PodRequest& request) const {
  Impl& impl = *impl_;
  std::vector<std::string> faults;
  if (SelectsDevices(request)) return faults;
  const RequestContext context = impl.ContextOf(request);
  Shape* shape = impl.ShapeOf(context);
  impl.BeginSelection(request);
  for (NodeId id = 0; id < impl.nodes.size(); ++id) {
    if (impl.nodes[id] == nullptr || !impl.nodes[id]->state.present()) continue;
    const Verdict cached = impl.Lookup(shape, context, id, true);
    const NodeState& state = impl.nodes[id]->state;
    Picks picks;
    Worth worth;
    const Reason reason = impl.scorer.Evaluate(RoomOf(state, state.soft()), request,
                                               *context.policy, picks, worth, context.sharing);
    if (reason != cached.reason || (reason == Reason::kNone && worth != cached.worth)) {
      faults.push_back(fmt::format("{}: expected {} at cost {}, found {} at {} in the cache",
                                   impl.names.name(id).str(), Describe(reason).code, worth.base,
                                   Describe(cached.reason).code, cached.worth.base));
    }
  }
  return faults;
}

std::string Engine::Digest() const {
  std::string digest;
  for (const NodeId id : impl_->names.ascending()) {
    if (impl_->nodes[id] == nullptr) continue;
    const NodeState& state = impl_->nodes[id]->state;
    digest += impl_->names.name(id).str() + "\n";
    for (const Holding& holding : state.holdings()) {
      if (holding.kind == HoldingKind::kClaim) continue;
      digest += "  " + holding.uid.str();
      for (const CardUse& use : holding.use.cards) {
        digest += fmt::format(" card{}:{}m/{}MiB", use.card, use.milli.count(), use.memory.count());
      }
      for (const InstanceUse& use : holding.use.instances) {
        digest += fmt::format(" pool{}.{}", use.pool, use.slot);
      }
      digest += "\n";
    }
  }
  return digest;
}

}  // namespace tranche
