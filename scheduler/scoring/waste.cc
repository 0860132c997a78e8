#include "scheduler/scoring/waste.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace tranche {
namespace {

// 32 sequences of up to 48 requests, a fixed cost for each room that is met; how sequences are
// drawn is at kDrawBits.
constexpr int kPartBits = 5;
constexpr std::size_t kSequences = std::size_t{1} << kPartBits;
constexpr std::size_t kLongest = 48;
// Rooms remembered; beyond it all are forgotten.
constexpr std::size_t kMaxRooms = std::size_t{1} << 17;

// Requests in a sequence. While a cluster fills, as many as may come before it is full; where pods
// also leave, what is free now is free for the next few only.
std::size_t LengthAt(int64_t turnover) {
  constexpr int64_t kRound = 4;
  const int64_t parts = MixLearner::kAll + 5 * turnover;
  const int64_t length = static_cast<int64_t>(kLongest) * MixLearner::kAll / parts;
  return static_cast<std::size_t>((length + kRound / 2) / kRound * kRound);
}

// A fixed stream of numbers (splitmix64): the same mix gives the same sequences everywhere.
uint64_t Next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

// Where in the mix each request of each sequence is drawn, in 2^-kDrawBits, sequence by sequence.
// At each position the sequences together draw once from every kSequences-th part of the mix, in a
// random order: 32 sequences then stand for the mix about as well as hundreds drawn freely.
constexpr int kDrawBits = 24;
std::vector<uint32_t> Draws() {
  std::vector<uint32_t> draws(kSequences * kLongest);
  uint64_t stream = 0;
  for (std::size_t at = 0; at < kLongest; ++at) {
    std::array<uint32_t, kSequences> part;
    std::iota(part.begin(), part.end(), 0U);
    for (std::size_t i = kSequences; i > 1; --i) std::swap(part[i - 1], part[Next(stream) % i]);
    for (std::size_t k = 0; k < kSequences; ++k) {
      const auto within = static_cast<uint32_t>(Next(stream) >> (64 - kDrawBits + kPartBits));
      draws[k * kLongest + at] = part[k] << (kDrawBits - kPartBits) | within;
    }
  }
  return draws;
}

// Neighbours in this order are alike, so that each part of the mix holds requests of one sort.
using Size = std::tuple<bool, int64_t, int64_t, int64_t, const std::vector<std::string>&, MilliCpu,
                        const std::string&>;
Size SizeOf(const MixType& type) {
  const Ask& ask = type.ask();
  const bool whole = ask.resource != Resource::kShare;
  return {ask.resource == Resource::kMig,
          ask.count,
          whole ? 1000 : ask.compute.count(),
          ask.memory.value,
          type.request.models_any,
          type.request.cpu,
          type.key};
}

}  // namespace

// A room that is being filled.
struct WasteTable::State {
  int64_t cpu = 0;
  std::size_t cards = 0;
  std::array<uint16_t, kMaxCards> milli{};  // of the cards ascending, then replicas of the pools

  bool Fits(const Offer& offer) const {
    if (offer.cpu > cpu) return false;
    const auto count = static_cast<std::size_t>(offer.count);
    if (offer.pool >= 0) return milli[cards + static_cast<std::size_t>(offer.pool)] >= count;
    return count <= cards && milli[cards - count] >= offer.milli;
  }

  // Requires: it fits. The tightest cards that hold it are taken.
  void Take(const Offer& offer) {
    cpu -= offer.cpu;
    const auto count = static_cast<std::size_t>(offer.count);
    if (offer.pool >= 0) {
      uint16_t& replicas = milli[cards + static_cast<std::size_t>(offer.pool)];
      replicas = static_cast<uint16_t>(replicas - count);
      return;
    }
    std::size_t first = 0;
    while (milli[first] < offer.milli) ++first;
    for (std::size_t i = first; i < first + count; ++i) {
      const auto left = static_cast<uint16_t>(milli[i] - offer.milli);
      std::size_t to = i;
      for (; to > 0 && milli[to - 1] > left; --to) milli[to] = milli[to - 1];
      milli[to] = left;
    }
  }
};

void WasteTable::SetMix(const Mix& mix) {
  types_ = mix.types;
  std::ranges::sort(types_, [](const MixType& left, const MixType& right) {
    return SizeOf(left) < SizeOf(right);
  });
  std::vector<int64_t> below;  // exclusive upper ends of the types' shares
  int64_t all = 0;
  for (const MixType& type : types_) below.push_back(all += type.recent);
  length_ = LengthAt(mix.turnover);
  drawn_.clear();
  const std::vector<uint32_t> draws = Draws();
  for (std::size_t i = 0; i < draws.size() && all > 0; ++i) {
    if (i % kLongest >= length_) continue;
    const int64_t at = draws[i] * all >> kDrawBits;
    drawn_.push_back(static_cast<uint16_t>(std::ranges::upper_bound(below, at) - below.begin()));
  }
  by_kind_.clear();
  rooms_.Clear();
  wastes_.clear();
}

const WasteTable::KindOffers& WasteTable::OffersOn(KindId id) {
  if (by_kind_.size() <= id) by_kind_.resize(id + std::size_t{1});
  std::unique_ptr<KindOffers>& made = by_kind_[id];
  if (made != nullptr) return *made;
  made = std::make_unique<KindOffers>();
  const NodeKind& kind = kinds_[id];
  constexpr uint16_t kNever = UINT16_MAX;
  std::vector<uint16_t> offer_of(types_.size(), kNever);
  for (std::size_t t = 0; t < types_.size(); ++t) {
    const MixType& type = types_[t];
    const Need need = NeedOf(kind, type.request, type.ask());
    const int64_t cpu = CpuStep(kind.cpu) == 0 ? 0 : type.request.cpu.count();
    if (!need.possible || cpu > kind.cpu.count() || kind.cards + need.pool >= kMaxCards) {
      continue;
    }
    offer_of[t] = static_cast<uint16_t>(made->offers.size());
    made->offers.push_back({static_cast<int32_t>(std::min<int64_t>(cpu, INT32_MAX)),
                            static_cast<int16_t>(need.milli), static_cast<int16_t>(need.count),
                            static_cast<int16_t>(need.pool)});
  }
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    if (offer_of[drawn_[i]] != kNever) made->drawn.push_back(offer_of[drawn_[i]]);
    if ((i + 1) % length_ == 0) made->ends.push_back(static_cast<uint32_t>(made->drawn.size()));
  }
  return *made;
}

int64_t WasteTable::Of(const Room& room) {
  if (room.milli == 0 || drawn_.empty() || room.kind() == kNoKind) return 0;
  if (rooms_.size() >= kMaxRooms) {
    rooms_.Clear();
    wastes_.clear();
  }
  const auto [number, fresh] = rooms_.Intern(room.key());
  if (fresh) wastes_.push_back(static_cast<int32_t>(Value(room)));
  return wastes_[number];
}

int64_t WasteTable::Value(const Room& room) {
  ++valued_;
  const KindOffers& kind = OffersOn(room.kind());
  const std::size_t cards = room.cards;
  State start;
  // From the step, not the exact CPU: rooms with one key have one waste.
  start.cpu = room.words[1] * CpuStep(kinds_[room.kind()].cpu);
  start.cards = cards;
  const std::span<const uint16_t> left = room.key().subspan(Room::kHead);
  std::ranges::copy(left, start.milli.begin());

  fits_.resize(kind.offers.size());
  bool any = false;
  for (std::size_t i = 0; i < kind.offers.size(); ++i) {
    fits_[i] = start.Fits(kind.offers[i]);
    any |= fits_[i] != 0;
  }
  if (!any) return room.milli;
  int64_t sum = 0;
  std::size_t at = 0;
  for (const std::size_t end : kind.ends) {
    State state = start;
    int64_t taken = 0;
    for (; at < end && taken < room.milli; ++at) {
      const uint16_t drawn = kind.drawn[at];
      // What does not fit at first never will.
      if (fits_[drawn] == 0) continue;
      const Offer& offer = kind.offers[drawn];
      if (!state.Fits(offer)) continue;
      state.Take(offer);
      taken += int64_t{offer.milli} * offer.count;
    }
    at = end;
    sum += room.milli - taken;
  }
  return sum / static_cast<int64_t>(kind.ends.size());
}

}  // namespace tranche
