#include "scheduler/scoring/prices.h"

#include <algorithm>
#include <numeric>

namespace tranche {
namespace {

// How far ahead demand is looked at, in fills of what is usable: while a cluster fills, and where
// pods leave as others come. Then machines that were broken up come back late, so room is looked at
// further ahead; what model-bound pods hold comes back to them, so models are not.
struct Horizon {
  int64_t filling = 2;
  int64_t in_balance = 2;
  // Times `milli`, by the turnover.
  Int128 Of(Int128 milli, int64_t turnover) const {
    return milli * (filling * MixLearner::kAll + (in_balance - filling) * turnover) /
           MixLearner::kAll;
  }
};
constexpr Horizon kModelHorizon = {2, 1};
constexpr Horizon kRoomHorizon = {2, 4};
constexpr uint64_t kCallsPerRefresh = 8;
// Work of one refresh: rooms not met before, and nodes in all.
constexpr uint64_t kRoomsPerRefresh = 64;
constexpr int kNodesPerRefresh = 2048;
constexpr std::size_t kMaxAskers = 1024;

}  // namespace

Prices::Prices(const NodeKinds& kinds, WasteTable& waste)
    : kinds_(kinds),
      waste_(waste),
      models_(kinds),
      slots_(kinds),
      nodes_of_kind_(kMaxKinds, 0),
      usable_(kMaxKinds, 0),
      of_kind_(kMaxKinds) {}

void Prices::SetMix(const Mix& mix, MixChange change) {
  mix_ = mix;
  types_changed_ = true;
  if (change != MixChange::kAll) return;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].there) Wait(node);
  }
}

void Prices::Wait(uint32_t node) {
  if (nodes_[node].waits) return;
  nodes_[node].waits = true;
  waiting_.push_back(node);
}

void Prices::SetNode(uint32_t node, const Room* room) {
  if (node >= nodes_.size()) {
    if (room == nullptr) return;
    nodes_.resize(node + std::size_t{1});
  }
  Node& entry = nodes_[node];
  if (room == nullptr ? !entry.there : entry.there && entry.room == *room) return;
  const bool same_kind = room != nullptr && entry.there && entry.room.kind() == room->kind();
  if (entry.there) {
    const KindId kind = entry.room.kind();
    usable_[kind] -= entry.usable;
    free_milli_ -= entry.room.milli;
    slots_.Add(entry.room, -1);
    if (--nodes_of_kind_[kind] == 0 && !same_kind) types_changed_ = true;
  }
  entry.there = room != nullptr;
  if (room == nullptr) {
    entry.room = Room();
    entry.usable = 0;
    return;
  }
  if (++nodes_of_kind_[room->kind()] == 1 && !same_kind) types_changed_ = true;
  // Until it is valued: as usable as it was.
  entry.usable = same_kind ? std::min(entry.usable, room->milli) : room->milli;
  entry.room = *room;
  usable_[room->kind()] += entry.usable;
  free_milli_ += entry.room.milli;
  slots_.Add(entry.room, 1);
  Wait(node);
}

void Prices::TakeUpTypes() {
  types_changed_ = false;
  for (std::size_t id = 1; id < kMaxKinds; ++id) there_[id] = nodes_of_kind_[id] > 0;
  models_.SetTypes(mix_, there_);
  askers_.clear();
  if (!slots_.SetTypes(mix_, there_)) return;
  ++version_;
  of_loss_.clear();
  for (const Node& node : nodes_) {
    if (node.there) slots_.Add(node.room, 1);
  }
}

void Prices::ValueNodes() {
  const uint64_t enough = waste_.valued() + kRoomsPerRefresh;
  for (int i = 0; i < kNodesPerRefresh && !waiting_.empty() && waste_.valued() < enough; ++i) {
    Node& node = nodes_[waiting_.front()];
    waiting_.pop_front();
    node.waits = false;
    if (!node.there) continue;
    int64_t& sum = usable_[node.room.kind()];
    sum -= node.usable;
    node.usable = node.room.milli - waste_.Of(node.room);
    sum += node.usable;
  }
}

void Prices::Settle() {
  if (types_changed_) TakeUpTypes();
  while (!waiting_.empty()) ValueNodes();
  Refresh();
}

int64_t Prices::usable() const {
  return std::accumulate(usable_.begin(), usable_.end(), int64_t{0});
}

void Prices::Refresh() {
  const Int128 left = usable();
  models_.Refresh({kModelHorizon.Of(left, mix_.turnover), models_.per_arrival()}, usable_);
  // With short sequences what is usable is little of what comes free again.
  const Int128 room = left + (Int128{free_milli_} - left) * mix_.turnover / MixLearner::kAll;
  slots_.Refresh({kRoomHorizon.Of(room, mix_.turnover), models_.per_arrival()});
}

const Asker& Prices::AskerOf(const PodRequest& request) {
  key_.clear();
  for (const Ask& ask : request.asks) AppendTypeKey(request, ask, request.cpu, key_);
  const auto found = askers_.find(key_);
  if (found != askers_.end()) return found->second;
  if (askers_.size() == kMaxAskers) askers_.clear();
  Asker& asker = askers_[key_];
  asker.cpu = request.cpu.count();
  asker.kinds.set();
  asker.card_milli.resize(kinds_.size());
  for (const Ask& ask : request.asks) {
    if (ask.resource == Resource::kMig) continue;
    asker.cards += static_cast<int>(std::min<int64_t>(ask.count, kMaxCards));
    for (std::size_t id = 0; id < kinds_.size(); ++id) {
      const Need need = NeedOf(kinds_[static_cast<KindId>(id)], request, ask);
      if (!need.possible) asker.kinds.reset(id);
      if (need.possible && need.pool < 0) asker.card_milli[id] += need.milli * need.count;
    }
  }
  return asker;
}

void Prices::Follow() {
  if (followed_++ % kCallsPerRefresh != 0) return;
  ValueNodes();
  Refresh();
}

void Prices::Prepare(const PodRequest& request) {
  if (types_changed_ || slots_.full()) {
    TakeUpTypes();
    ValueNodes();
    Refresh();
  }
  ++asked_;
  asker_ = &AskerOf(request);
}

int64_t Prices::OfKind(KindId kind) {
  if (asker_ == nullptr) return 0;
  Price& price = of_kind_[kind];
  if (price.asked != asked_) price = {asked_, models_.PriceOf(kind, *asker_)};
  return price.milli;
}

int64_t Prices::OfLoss(uint16_t loss) {
  if (loss == 0 || asker_ == nullptr) return 0;
  if (of_loss_.size() < slots_.losses()) of_loss_.resize(slots_.losses());
  if (loss >= of_loss_.size()) return 0;
  Price& price = of_loss_[loss];
  if (price.asked != asked_) price = {asked_, slots_.PriceOf(loss, *asker_)};
  return price.milli;
}

}  // namespace tranche
