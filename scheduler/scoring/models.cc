#include "scheduler/scoring/models.h"

#include <algorithm>

namespace tranche {
namespace {

constexpr std::size_t kMaxSets = 256;

// A type of request as all kinds that are there see it.
struct Bound {
  KindSet kinds;
  int64_t milli = 0;  // it takes, mean over those kinds
  int64_t share = 0;
  bool cards = true;
};

Bound BoundOf(const NodeKinds& kinds, const KindSet& there, const MixType& type) {
  Bound bound;
  bound.share = type.lasting;
  bound.cards = type.ask().resource != Resource::kMig;
  int64_t sum = 0;
  for (std::size_t id = 1; id < kinds.size(); ++id) {
    if (!there[id]) continue;
    const Need need = NeedOf(kinds[static_cast<KindId>(id)], type.request, type.ask());
    if (!need.possible) continue;
    bound.kinds.set(id);
    sum += int64_t{need.milli} * need.count;
  }
  if (bound.kinds.any()) bound.milli = sum / static_cast<int64_t>(bound.kinds.count());
  return bound;
}

}  // namespace

void Models::SetTypes(const Mix& mix, const KindSet& there) {
  there_.reset();
  for (std::size_t id = 1; id < kinds_.size(); ++id) {
    there_[id] = there[id] && kinds_[static_cast<KindId>(id)].cards > 0;
  }
  sets_.clear();
  per_arrival_ = 0;
  std::vector<Bound> bounds;
  for (const MixType& type : mix.types) {
    Bound bound = BoundOf(kinds_, there, type);
    per_arrival_ += Int128{bound.share} * bound.milli;
    bound.kinds &= there_;
    // An instance of MIG is not what a request for cards is bound to.
    if (!bound.cards || bound.kinds.none()) continue;
    const bool known = std::ranges::find(sets_, bound.kinds, &Set::kinds) != sets_.end();
    if (!known && bound.kinds != there_ && sets_.size() < kMaxSets) {
      Set& set = sets_.emplace_back();
      set.kinds = bound.kinds;
    }
    bounds.push_back(bound);
  }
  for (Set& set : sets_) {
    for (const Bound& bound : bounds) {
      if (!IsWithin(bound.kinds, set.kinds)) continue;
      set.milli += Int128{bound.share} * bound.milli;
      set.squares += Int128{bound.share} * bound.milli * bound.milli;
    }
  }
}

void Models::Refresh(const Outlook& outlook, std::span<const int64_t> usable) {
  for (Set& set : sets_) {
    set.price = 0;
    if (outlook.per_arrival == 0) continue;
    int64_t left = 0;
    for (std::size_t id = 1; id < usable.size(); ++id) left += set.kinds[id] ? usable[id] : 0;
    const Int128 demand = outlook.milli * set.milli / outlook.per_arrival;
    const Int128 variance = outlook.milli * set.squares / outlook.per_arrival + 1;
    set.price = Chance(demand - left, variance);
  }
  std::ranges::stable_sort(sets_, std::greater<>(), &Set::price);
}

int64_t Models::PriceOf(KindId kind, const Asker& asker) const {
  if (kind >= asker.card_milli.size() || asker.card_milli[kind] == 0) return 0;
  const KindSet kinds = asker.kinds & there_;
  for (const Set& set : sets_) {
    if (set.price == 0) break;
    if (set.kinds[kind] && !IsWithin(kinds, set.kinds)) {
      return asker.card_milli[kind] * set.price / kCertain;
    }
  }
  return 0;
}

}  // namespace tranche
