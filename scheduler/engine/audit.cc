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
    if (inventory.keys[k].key == "nvidia.com/gpu") used += KeepersToBe(state);
    if (used != state.hard().keys[k]) {
      faults.push_back(fmt::format("{} {}: expected {} in use, found {}", name.str(),
                                   inventory.keys[k].key, used, state.hard().keys[k]));
    }
  }
}

// Each leaf's use summed again from who holds what.
void AuditQuota(const QuotaBook& book, std::vector<std::string>& faults) {
  const QuotaTree& tree = book.tree();
  for (QuotaId id = 0; id < static_cast<QuotaId>(tree.size()); ++id) {
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

std::vector<std::string> Engine::Audit() const {
  Impl& impl = *impl_;
  std::vector<std::string> faults;
  int64_t claims = 0;
  int64_t reservations = 0;
  impl.AuditCaps(faults);
  for (NodeId id = 0; id < impl.nodes.size(); ++id) {
    if (impl.nodes[id] == nullptr) continue;
    const NodeEntry& entry = *impl.nodes[id];
    const NodeName& name = impl.names.name(id);
    AuditLoad(name, entry.state, faults);
    for (const Holding& holding : entry.state.holdings()) {
      const PodRecord* record = impl.Find(holding.uid);
      if (holding.keeper != KeeperRole::kNone) {
        if (!impl.keepers.Knows(holding.uid)) {
          faults.push_back(fmt::format("{}: nobody knows of the keeper {}", name.str(),
                                       holding.request->name.str()));
        }
        continue;
      }
      const bool matches =
          record != nullptr && !record->terminal &&
          ((holding.kind == HoldingKind::kClaim && record->claimed == id) ||
           (holding.kind == HoldingKind::kEarmark && record->earmark != nullptr &&
            record->earmark->node == name) ||
           (holding.kind == HoldingKind::kReservation && record->reserved == name) ||
           (holding.kind == HoldingKind::kAllocation && record->node == name));
      claims += holding.kind == HoldingKind::kClaim;
      reservations += holding.kind == HoldingKind::kReservation;
      if (!matches) {
        faults.push_back(fmt::format("{}: a holding of {} has no pod that knows of it", name.str(),
                                     holding.uid.str()));
      }
    }
    if (entry.closed != impl.hot[id].closed || entry.hard != impl.hot[id].hard ||
        entry.soft != impl.hot[id].soft) {
      faults.push_back(fmt::format("{}: the packed row differs from the entry", name.str()));
    }
  }
  for (const auto& [uid, record] : impl.pods) {
    const std::string& place = !record.node.empty() ? record.node.str() : record.reserved.str();
    if (!place.empty()) {
      const NodeId id = impl.names.Find(place);
      if (id == kNoNode || impl.nodes[id]->state.Find(uid) == nullptr) {
        faults.push_back(
            fmt::format("pod {} says it is on {}, which does not hold it", uid.str(), place));
      }
    }
    if (!record.reserved.empty() && !impl.reservations.contains({record.reserved_since, uid})) {
      faults.push_back(fmt::format("the reservation of {} is not listed", uid.str()));
    }
  }
  for (const PodUid& uid : impl.agents.Known()) {
    const PodRecord* record = impl.Find(uid);
    // Of those that have ended, only what an agent could still take for another.
    if (record == nullptr || (!record->terminal && record->Place().empty())) {
      faults.push_back(fmt::format("{} is in line at an agent and on no node", uid.str()));
    }
  }
  if (claims != impl.claims) {
    faults.push_back(fmt::format("expected {} claims, found {} counted", claims, impl.claims));
  }
  if (reservations != static_cast<int64_t>(impl.reservations.size())) {
    faults.push_back(fmt::format("expected {} reservations, found {} listed", reservations,
                                 impl.reservations.size()));
  }
  DraDesk(impl).Audit(faults);
  for (const auto& [uid, work] : impl.book.earmarks()) {
    if (impl.dra_books.kept.contains(uid)) continue;
    const PodRecord* record = impl.Find(uid);
    if (record == nullptr || record->earmark == nullptr ||
        (!impl.reclaims.of_member.contains(uid) && !impl.reclaims.nominated_until.contains(uid) &&
         !impl.IsSeated(uid, *record))) {
      faults.push_back(fmt::format("quota is kept for {}, for which nothing runs", uid.str()));
    }
  }
  AuditQuota(impl.book, faults);
  for (const auto& [uid, work] : impl.book.holdings()) {
    if (impl.unclaimed.contains(uid) || impl.dra_books.held.contains(uid)) continue;
    const PodRecord* record = impl.Find(uid);
    const bool holds = record != nullptr && !record->terminal &&
                       (!record->node.empty() || !record->reserved.empty());
    if (!holds) {
      faults.push_back(
          fmt::format("quota counts {} of {}, which holds nothing", uid.str(), work.pod.str()));
    }
  }
  return faults;
}

std::vector<std::string> Engine::AuditVerdicts(const PodRequest& request) const {
  Impl& impl = *impl_;
  std::vector<std::string> faults;
  if (SelectsDevices(request)) return faults;
  const Question question = impl.QuestionOf(request);
  Shape* shape = impl.ShapeOf(question);
  impl.BeginSelection(request);
  for (NodeId id = 0; id < impl.nodes.size(); ++id) {
    if (impl.nodes[id] == nullptr || !impl.nodes[id]->state.present()) continue;
    const Verdict cached = impl.Lookup(shape, question, id, true);
    const NodeState& state = impl.nodes[id]->state;
    Picks picks;
    Worth worth;
    const Reason reason = impl.scorer.Evaluate(RoomOf(state, state.soft()), request,
                                               *question.policy, picks, worth, question.sharing);
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
