// Devices and quota kept for a pod whose victims leave (ADR 0013).
//
// An earmark is a holding like any other, so that nobody else is given its room by filter or bind.
// While victims leave it lies over their holdings. For questions on the pod's own behalf it is
// taken out for the length of the question.
#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"

namespace tranche {

void Engine::Impl::PutEarmark(const PodUid& uid, PodRecord& record, Earmark earmark, Instant now) {
  DropClaim(uid, record, now);
  const NodeId id = InternNode(earmark.node);
  Holding holding;
  holding.uid = uid;
  holding.kind = HoldingKind::kEarmark;
  holding.request = record.request;
  holding.allocation = earmark.allocation;
  nodes[id]->state.Hold(std::move(holding));
  book.Earmark(uid, earmark.work);
  record.earmark = std::make_unique<Earmark>(std::move(earmark));
  Refresh(id, now);
}

Earmark Engine::Impl::EarmarkOf(NodeId id, const PodRequest& request, const Standing& standing,
                                const Picks& devices, Instant now) const {
  const Inventory& inventory = nodes[id]->state.inventory();
  Earmark earmark;
  earmark.node = names.name(id);
  earmark.work = WorkOf(request, standing, now);
  earmark.work.parts = ChargeOfPicks(inventory, request, devices);
  earmark.allocation = ToAllocation(inventory, request, devices);
  earmark.allocation.epoch = options.epoch;
  earmark.allocation.leaf = earmark.work.leaf;
  return earmark;
}

void Engine::Impl::DropEarmark(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.earmark == nullptr) return;
  const std::unique_ptr<Earmark> earmark = std::move(record.earmark);
  book.Unearmark(uid);
  const NodeId id = names.Find(earmark->node.str());
  if (id == kNoNode || nodes[id] == nullptr) return;
  const Holding* holding = nodes[id]->state.Find(uid);
  if (holding == nullptr || holding->kind != HoldingKind::kEarmark) return;
  nodes[id]->state.Release(uid);
  Refresh(id, now);
}

Engine::Impl::Lift::Lift(Impl& engine, const PodUid& uid, Instant now)
    : engine_(engine), uid_(uid), now_(now), version_(engine.reclaims.version) {
  PodRecord* record = engine.Find(uid);
  if (record == nullptr || record->earmark == nullptr) return;
  earmark_ = std::make_unique<Earmark>(*record->earmark);
  engine.DropEarmark(uid, *record, now);
  const auto own = engine.reclaims.of_member.find(uid);
  if (own == engine.reclaims.of_member.end()) return;
  const Reclaim& reclaim = engine.reclaims.all.at(own->second);
  // Its room is its own now. What is kept for others while somebody they count on is still there
  // would count twice: once for them, once for those who leave.
  if (reclaim.gone() == reclaim.victims.size()) LiftOthers(reclaim);
}

void Engine::Impl::Lift::LiftOthers(const Reclaim& own) {
  const NodeId here = engine_.names.Find(earmark_->node.str());
  for (const auto& [name, run] : engine_.reclaims.runs) {
    const Reclaim& reclaim = engine_.reclaims.all.at(name);
    if (reclaim.phase == ReclaimPhase::kReserved || name == own.name) continue;
    for (const ReclaimMember& member : reclaim.members) {
      const PodRecord* record = engine_.Find(member.uid);
      if (record == nullptr || record->earmark == nullptr) continue;
      others_.emplace_back(member.uid, *record->earmark);
      engine_.book.Unearmark(member.uid);
      if (here != kNoNode && engine_.nodes[here] != nullptr && member.node == earmark_->node) {
        engine_.nodes[here]->state.Release(member.uid);
      }
    }
  }
  if (!others_.empty() && here != kNoNode && engine_.nodes[here] != nullptr) {
    engine_.Refresh(here, now_);
  }
}

void Engine::Impl::Lift::PutBack(const PodUid& uid, const Earmark& earmark) {
  PodRecord* record = engine_.Find(uid);
  if (record == nullptr) return;
  // A question within this one, about another pod, may have put it back.
  if (!engine_.book.earmarks().contains(uid)) engine_.book.Earmark(uid, earmark.work);
  const NodeId id = engine_.InternNode(earmark.node);
  Holding holding;
  holding.uid = uid;
  holding.kind = HoldingKind::kEarmark;
  holding.request = record->request;
  holding.allocation = earmark.allocation;
  engine_.nodes[id]->state.Hold(std::move(holding));
  engine_.Refresh(id, now_);
}

Engine::Impl::Lift::~Lift() {
  for (const auto& [uid, earmark] : others_) PutBack(uid, earmark);
  PodRecord* record = engine_.Find(uid_);
  if (earmark_ != nullptr && record != nullptr) {
    // A claim on the very node would be replaced by the earmark, which is stronger.
    if (record->claimed != kNoNode && engine_.names.name(record->claimed) == earmark_->node) {
      engine_.DropClaim(uid_, *record, now_);
    }
    PutBack(uid_, *earmark_);
    record->earmark = std::move(earmark_);
    // As it was: no plan needs another look.
    engine_.reclaims.version = version_;
  }
}

void Engine::Impl::Lift::Discard() { earmark_ = nullptr; }

bool Engine::Impl::IsReserved(const PodUid& uid, const NodeName& node) const {
  const auto own = reclaims.of_member.find(uid);
  if (own == reclaims.of_member.end()) return false;
  const Reclaim& reclaim = reclaims.all.at(own->second);
  return reclaim.phase == ReclaimPhase::kReserved &&
         std::ranges::any_of(reclaim.members, [&](const ReclaimMember& member) {
           return member.uid == uid && member.node == node;
         });
}

bool Engine::Impl::Reearmark(Reclaim& reclaim, Instant now) {
  for (const ReclaimMember& member : std::vector<ReclaimMember>(reclaim.members)) {
    PodRecord* record = Find(member.uid);
    const bool lives = record != nullptr && !record->terminal && !record->traits.leaves_at;
    if (!lives) return false;
    if (record->earmark != nullptr) continue;
    if (!record->Place().empty()) {
      NoteMemberPlaced(member.uid, record->Place(), now);
      if (reclaim.finished()) return true;
      continue;
    }
    const NodeId id = names.Find(member.node.str());
    if (id == kNoNode || nodes[id] == nullptr || !nodes[id]->state.present()) return false;
    const Question question = QuestionOf(*record->request);
    if (!MayPlan(question)) return false;
    const NodeState& state = nodes[id]->state;
    const Load load = state.LoadWithout([&](const PodUid& uid) {
      const PodRecord* other = Find(uid);
      return reclaims.of_victim.contains(uid) || (other != nullptr && IsLeaving(*other, now));
    });
    Worth worth;
    if (scorer.Evaluate(RoomOf(state, load), *record->request, *question.policy, picks, worth,
                        question.sharing) != Reason::kNone) {
      return false;
    }
    PutEarmark(member.uid, *record, EarmarkOf(id, *record->request, question.standing, picks, now),
               now);
  }
  return true;
}

void Engine::Impl::NoteNominated(const PodUid& uid, PodRecord& record, const NodeName& node,
                                 Instant now) {
  if (record.traits.nominated == node) return;
  EndNominated(uid, record, now);
  record.traits.nominated = node;
  if (node.empty() || reclaims.of_member.contains(uid)) return;
  reclaims.nominated[node].insert(uid);
  KeepNominated(node, now);
}

// Only where somebody leaves: a nomination alone may say where the pod is about to be bound.
void Engine::Impl::KeepNominated(const NodeName& node, Instant now) {
  const auto waiting = reclaims.nominated.find(node);
  const NodeId id = names.Find(node.str());
  if (waiting == reclaims.nominated.end() || id == kNoNode || nodes[id] == nullptr) return;
  std::optional<Instant> last;
  const NodeState& state = nodes[id]->state;
  for (const Holding& holding : state.holdings()) {
    const PodRecord* record = Find(holding.uid);
    if (record == nullptr || !IsLeaving(*record, now)) continue;
    last = std::max(last.value_or(now), *record->traits.leaves_at);
  }
  if (!last || !state.present()) return;
  for (const PodUid& uid : std::set<PodUid>(waiting->second)) {
    PodRecord* record = Find(uid);
    if (record == nullptr || !IsPending(*record) || record->earmark != nullptr) continue;
    const Question question = QuestionOf(*record->request);
    const Load load = nodes[id]->state.LoadWithout([&](const PodUid& other) {
      const PodRecord* holder = Find(other);
      return holder != nullptr && IsLeaving(*holder, now);
    });
    Worth worth;
    if (question.whole != Reason::kNone ||
        scorer.Evaluate(RoomOf(state, load), *record->request, *question.policy, picks, worth,
                        question.sharing) != Reason::kNone) {
      continue;
    }
    Earmark earmark = EarmarkOf(id, *record->request, question.standing, picks, now);
    // Devices alone: what quota says of a pod that kube-scheduler makes room for, bind will ask.
    earmark.work.parts.clear();
    reclaims.nominated_until[uid] = *last + options.reservation_ttl;
    PutEarmark(uid, *record, std::move(earmark), now);
  }
}

void Engine::Impl::EndNominated(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.traits.nominated.empty()) return;
  if (const auto waiting = reclaims.nominated.find(record.traits.nominated);
      waiting != reclaims.nominated.end()) {
    waiting->second.erase(uid);
    if (waiting->second.empty()) reclaims.nominated.erase(waiting);
  }
  record.traits.nominated = NodeName();
  if (reclaims.nominated_until.erase(uid) == 0 || record.earmark == nullptr) return;
  const NodeId id = names.Find(record.earmark->node.str());
  DropEarmark(uid, record, now);
  if (id != kNoNode && nodes[id] != nullptr) NoteRoom(id, now);
}

NodeId Engine::Impl::AwaitedNode(const PodUid& uid) {
  if (reclaims.nominated_until.contains(uid)) {
    return names.Find(Find(uid)->traits.nominated.str());
  }
  const auto found = reclaims.of_member.find(uid);
  if (found == reclaims.of_member.end()) return kNoNode;
  const Reclaim& reclaim = reclaims.all.at(found->second);
  for (const ReclaimMember& member : reclaim.members) {
    if (member.uid == uid && !member.placed) return names.Find(member.node.str());
  }
  return kNoNode;
}

}  // namespace tranche
