#include "scheduler/engine/state/earmarks.h"

#include <algorithm>
#include <utility>

#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {

void Earmarks::PutEarmark(const PodUid& uid, PodRecord& record, Earmark earmark, Instant now) {
  state_.DropTentative(uid, record, now);
  state_.lifted.erase(uid);
  const NodeId id = state_.InternNode(earmark.node);
  Holding holding;
  holding.uid = uid;
  holding.kind = HoldingKind::kEarmark;
  holding.request = record.request;
  holding.allocation = earmark.allocation;
  state_.nodes[id]->state.Hold(std::move(holding));
  state_.book.Earmark(uid, earmark.work);
  record.earmark = std::make_unique<Earmark>(std::move(earmark));
  state_.Refresh(id, now);
}

Earmark Earmarks::EarmarkOf(NodeId id, const PodRequest& request, const QuotaMembership& membership,
                            const Picks& devices, Instant now) const {
  const Inventory& inventory = state_.nodes[id]->state.inventory();
  Earmark earmark;
  earmark.node = state_.names.name(id);
  earmark.work = state_.WorkOf(request, membership, now);
  earmark.work.parts = ChargeOfPicks(inventory, request, devices);
  earmark.allocation = ToAllocation(inventory, request, devices);
  earmark.allocation.epoch = state_.epoch;
  earmark.allocation.leaf = earmark.work.leaf;
  return earmark;
}

void Earmarks::DropEarmark(const PodUid& uid, PodRecord& record, Instant now) {
  if (state_.lifted.erase(uid) > 0) TRANCHE_MARK(earmark_dropped_while_lifted);
  if (record.earmark == nullptr) return;
  const std::unique_ptr<Earmark> earmark = std::move(record.earmark);
  state_.book.Unearmark(uid);
  const NodeId id = state_.names.Find(earmark->node.str());
  if (id == kNoNode || state_.nodes[id] == nullptr) return;
  const Holding* holding = state_.nodes[id]->state.Find(uid);
  if (holding == nullptr || holding->kind != HoldingKind::kEarmark) return;
  state_.nodes[id]->state.Release(uid);
  state_.Refresh(id, now);
}

ScopedRemoval::ScopedRemoval(ClusterState& state, const PodUid& uid, Instant now,
                             const RoomShares& others)
    : state_(state), uid_(uid), now_(now), version_(state.version()) {
  PodRecord* record = state.Find(uid);
  if (record == nullptr || record->earmark == nullptr) return;
  earmark_ = std::make_unique<Earmark>(*record->earmark);
  Earmarks(state).DropEarmark(uid, *record, now);
  state.lifted.insert(uid);
  RemoveOthers(others);
}

void ScopedRemoval::RemoveOthers(const RoomShares& others) {
  const NodeId here = state_.names.Find(earmark_->node.str());
  for (const auto& [uid, node] : others) {
    const PodRecord* record = state_.Find(uid);
    if (record == nullptr || record->earmark == nullptr) continue;
    others_.emplace_back(uid, *record->earmark);
    state_.book.Unearmark(uid);
    if (here != kNoNode && state_.nodes[here] != nullptr && node == earmark_->node) {
      state_.nodes[here]->state.Release(uid);
    }
  }
  if (!others_.empty() && here != kNoNode && state_.nodes[here] != nullptr) {
    state_.Refresh(here, now_);
  }
}

void ScopedRemoval::PutBack(const PodUid& uid, const Earmark& earmark) {
  const PodRecord* record = state_.Find(uid);
  if (record == nullptr) return;
  // A question within this one, about another pod, may have put it back.
  if (!state_.book.earmarks().contains(uid)) state_.book.Earmark(uid, earmark.work);
  const NodeId id = state_.InternNode(earmark.node);
  Holding holding;
  holding.uid = uid;
  holding.kind = HoldingKind::kEarmark;
  holding.request = record->request;
  holding.allocation = earmark.allocation;
  state_.nodes[id]->state.Hold(std::move(holding));
  state_.Refresh(id, now_);
}

ScopedRemoval::~ScopedRemoval() {
  for (const auto& [uid, earmark] : others_) {
    const PodRecord* other = state_.Find(uid);
    if (other != nullptr && other->earmark != nullptr) PutBack(uid, earmark);
  }
  PodRecord* record = state_.Find(uid_);
  const bool dropped = earmark_ != nullptr && state_.lifted.erase(uid_) == 0;
  if (earmark_ != nullptr && record != nullptr && !dropped) {
    // A tentative placement on the very node would be replaced by the earmark, which is stronger.
    if (record->tentative != kNoNode && state_.names.name(record->tentative) == earmark_->node) {
      state_.DropTentative(uid_, *record, now_);
    }
    PutBack(uid_, *earmark_);
    record->earmark = std::move(earmark_);
    // As it was: no plan needs another look.
    state_.RestoreVersion(version_);
  }
}

void ScopedRemoval::Discard() {
  earmark_ = nullptr;
  state_.lifted.erase(uid_);
}

}  // namespace tranche
