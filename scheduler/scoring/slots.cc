#include "scheduler/scoring/slots.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tranche {
namespace {

// More types than clusters have; beyond it the rarest of the mix are left out.
constexpr std::size_t kMaxTypes = 128;

// Cards and CPU of the nodes that no other has more of both, or as much of one and more of the
// other.
std::vector<std::pair<int, int64_t>> LargestNodes(const NodeKinds& kinds, const KindSet& there) {
  std::vector<std::pair<int, int64_t>> largest;
  for (std::size_t id = 1; id < kinds.size(); ++id) {
    const NodeKind& kind = kinds[static_cast<KindId>(id)];
    if (!there[id] || kind.cards < 2) continue;
    const std::pair size(kind.cards, kind.cpu.count());
    const auto holds = [](const auto& large, const auto& small) {
      return large.first >= small.first && large.second >= small.second;
    };
    if (std::ranges::any_of(largest, [&](const auto& other) { return holds(other, size); })) {
      continue;
    }
    std::erase_if(largest, [&](const auto& other) { return holds(size, other); });
    largest.push_back(size);
  }
  return largest;
}

}  // namespace

void Slots::AddType(Type type) {
  type.kinds &= there_;
  if (type.kinds.none()) return;
  const auto same =
      std::ranges::find_if(types_, [&type](const Type& other) { return other.IsAs(type); });
  if (same != types_.end()) {
    same->share += type.share;
  } else {
    types_.push_back(std::move(type));
  }
}

bool Slots::SetTypes(const Mix& mix, const KindSet& there) {
  there_ = there;
  const std::vector<Type> before = std::exchange(types_, {});
  for (const MixType& of_mix : mix.types) {
    const Ask& ask = of_mix.ask();
    if (ask.count < 2 || (ask.resource != Resource::kGpu && ask.resource != Resource::kShare)) {
      continue;
    }
    Type type;
    type.cards = static_cast<int>(std::min<int64_t>(ask.count, kMaxCards));
    type.cpu = of_mix.request.cpu.count();
    type.share = of_mix.lasting;
    for (std::size_t id = 1; id < kinds_.size(); ++id) {
      const NodeKind& kind = kinds_[static_cast<KindId>(id)];
      const Need need = NeedOf(kind, of_mix.request, ask);
      // Replicas need no idle cards.
      type.kinds[id] = need.possible && need.pool < 0 &&
                       (ask.resource == Resource::kShare || need.milli == 1000);
    }
    AddType(std::move(type));
  }
  if (types_.size() > kMaxTypes) {
    std::ranges::stable_sort(types_, std::greater<>(), &Type::share);
    types_.resize(kMaxTypes);
  }
  for (const auto& [cards, cpu] : LargestNodes(kinds_, there)) {
    Type type;
    type.cards = cards;
    type.cpu = cpu;
    type.kinds.set();
    type.share = 2 * mix.one;
    if (type.share > 0) AddType(std::move(type));
  }
  for (Type& type : types_) {
    for (std::size_t i = 0; i < types_.size(); ++i) {
      const Type& other = types_[i];
      if (other.cards >= type.cards && other.cpu >= type.cpu && IsWithin(other.kinds, type.kinds)) {
        type.harder.push_back(i);
      }
    }
  }
  const bool same = std::ranges::equal(
      types_, before, [](const Type& left, const Type& right) { return left.IsAs(right); });
  if (same && !full()) return false;
  losses_.Clear();
  sums_.assign(types_.size(), 0);
  return true;
}

int64_t Slots::CountOf(const Type& type, const Room& room) const {
  if (room.idle < type.cards || !type.kinds[room.kind()]) return 0;
  const int64_t by_cards = room.idle / type.cards;
  if (type.cpu == 0 || CpuStep(kinds_[room.kind()].cpu) == 0) return by_cards;
  return std::min(by_cards, room.cpu / type.cpu);
}

void Slots::Add(const Room& room, int sign) {
  if (room.idle < 2) return;
  for (std::size_t t = 0; t < types_.size(); ++t) sums_[t] += sign * CountOf(types_[t], room);
}

void Slots::Refresh(const Outlook& outlook) {
  for (std::size_t t = 0; t < types_.size(); ++t) {
    Type& type = types_[t];
    type.price = 0;
    if (outlook.per_arrival == 0) continue;
    Int128 cards = 0;  // of an arrival that could take this type's slots, weighted by shares
    Int128 squares = 0;
    for (const std::size_t i : type.harder) {
      const Type& other = types_[i];
      cards += Int128{other.share} * other.cards;
      squares += Int128{other.share} * other.cards * other.cards;
    }
    // In 256ths of a slot.
    constexpr int64_t kPart = 256;
    const Int128 demand = outlook.milli * cards * kPart / (outlook.per_arrival * type.cards);
    const Int128 variance =
        outlook.milli * squares * kPart * kPart / (outlook.per_arrival * type.cards * type.cards);
    if (variance > 0) type.price = Chance(demand - Int128{sums_[t]} * kPart, variance);
  }
}

uint16_t Slots::LossOf(const Room& before, const Room& after) {
  if (before.idle < 2 || (before.idle == after.idle && before.cpu == after.cpu)) return 0;
  lost_.clear();
  bool any = false;
  for (const Type& type : types_) {
    const int64_t lost = std::max<int64_t>(CountOf(type, before) - CountOf(type, after), 0);
    lost_.push_back(static_cast<uint16_t>(lost));
    any |= lost > 0;
  }
  // The table is emptied long before it is full (see full()); until then nothing is charged.
  if (!any || losses_.size() == UINT16_MAX - 1) return 0;
  return static_cast<uint16_t>(losses_.Intern(lost_).first + 1);
}

int64_t Slots::PriceOf(uint16_t loss, const Asker& asker) const {
  if (loss == 0 || loss > losses_.size()) return 0;
  const std::span<const uint16_t> lost = losses_[loss - 1U];
  int64_t most = 0;
  for (std::size_t t = 0; t < types_.size(); ++t) {
    const Type& type = types_[t];
    if (lost[t] == 0 || type.price == 0) continue;
    const bool own = asker.cards >= 2 && asker.cards >= type.cards && asker.cpu >= type.cpu &&
                     IsWithin(asker.kinds & there_, type.kinds);
    const int64_t milli = 1000 * (int64_t{type.cards} * lost[t] - (own ? asker.cards : 0));
    most = std::max(most, milli * type.price / kCertain);
  }
  return most;
}

}  // namespace tranche
