#include "quota/tree/fair_share.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "quota/tree/charge.h"
#include "topology/base/int128.h"

namespace tranche {
namespace {

// ---- Division -----------------------------------------------------------------------------------

constexpr int64_t kMostQuanta = int64_t{1} << 53;
constexpr std::size_t kMostMembers = std::size_t{1} << 14;
constexpr int64_t kMillion = 1'000'000;

// One member's part in a filling.
struct Vessel {
  std::size_t member = 0;
  int64_t room = 0;
  int64_t weight = 0;  // relative
};

// Pours up to `amount` into the vessels, each taking min(room, lambda * weight) for the one lambda
// that uses up the amount; returns what finds no room. Exact: vessels that fill up are found by
// comparing room / weight crosswise, the others get their quotient and the largest remainders one
// more. room <= 2^53 and weight < 2^54 keep every product, also by a sum of weights, below 2^121.
int64_t Pour(int64_t amount, std::vector<Vessel> vessels, std::span<const FairShareMember> members,
             std::vector<int64_t>& shares) {
  std::erase_if(vessels, [](const Vessel& vessel) { return vessel.room == 0 || !vessel.weight; });
  std::ranges::sort(vessels, [](const Vessel& left, const Vessel& right) {
    return Int128{left.room} * right.weight < Int128{right.room} * left.weight;
  });
  Int128 weights = 0;
  for (const Vessel& vessel : vessels) weights += vessel.weight;
  auto open = vessels.begin();
  for (; open != vessels.end() && weights * open->room <= Int128{amount} * open->weight; ++open) {
    shares[open->member] += open->room;
    amount -= open->room;
    weights -= open->weight;
  }
  if (open == vessels.end()) return amount;

  struct Remainder {
    Int128 size = 0;
    std::size_t member = 0;
  };
  std::vector<Remainder> remainders;
  int64_t left = amount;
  for (; open != vessels.end(); ++open) {
    const Int128 part = Int128{amount} * open->weight;
    const auto quotient = static_cast<int64_t>(part / weights);
    shares[open->member] += quotient;
    left -= quotient;
    remainders.push_back({part % weights, open->member});
  }
  std::ranges::sort(remainders, [members](const Remainder& a, const Remainder& b) {
    return std::tie(b.size, members[a.member].key, a.member) <
           std::tie(a.size, members[b.member].key, b.member);
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i) {
    ++shares[remainders[i].member];
  }
  return 0;
}

}  // namespace

std::vector<int64_t> DivideFairly(int64_t capacity, std::span<const FairShareMember> members,
                                  int64_t k_milli) {
  TRANCHE_CHECK_LE(members.size(), kMostMembers);
  TRANCHE_CHECK_GE(k_milli, 0);
  TRANCHE_CHECK_LE(k_milli, 10'000);
  const auto amount_of = [](int64_t quanta) { return std::clamp<int64_t>(quanta, 0, kMostQuanta); };
  int64_t all_weights = 0;
  for (const FairShareMember& member : members) {
    TRANCHE_CHECK_GE(member.weight, 0);
    TRANCHE_CHECK_LE(member.weight, kMillion);
    TRANCHE_CHECK_GE(member.usage_ppm, 0);
    if (member.demand > 0) all_weights += member.weight;
  }
  // w' times the sum of weights, as an integer.
  const auto leaning = [&](const FairShareMember& member) {
    const Int128 lean = Int128{1000 + k_milli} * member.weight * kMillion -
                        Int128{k_milli} * member.usage_ppm * all_weights;
    return static_cast<int64_t>(std::max<Int128>(lean, 0));
  };

  std::vector<int64_t> shares(members.size(), 0);
  int64_t left = amount_of(capacity);
  const auto pour = [&](auto limit_of, auto weight_of) {
    std::vector<Vessel> vessels;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int64_t room = std::max<int64_t>(limit_of(members[i]) - shares[i], 0);
      vessels.push_back({i, room, weight_of(members[i])});
    }
    left = Pour(left, std::move(vessels), members, shares);
  };
  const auto demand = [&](const FairShareMember& member) { return amount_of(member.demand); };
  const auto nominal = [&](const FairShareMember& member) { return amount_of(member.nominal); };
  pour([&](const FairShareMember& member) { return std::min(demand(member), nominal(member)); },
       nominal);
  pour(demand, leaning);
  pour(demand, [](const FairShareMember& member) { return member.weight; });
  pour(demand, [](const FairShareMember&) { return int64_t{1}; });
  return shares;
}

// ---- Decay --------------------------------------------------------------------------------------

namespace {

// Fixed point with 62 bits after the point.
constexpr int kBits = 62;
constexpr uint64_t kOne = uint64_t{1} << kBits;
constexpr uint64_t kOneByLn2 = 6'653'256'548'922'161'246;  // 1 / ln 2 = 1.4426950408889634...

constexpr uint64_t Root(Uint128 square) {
  uint64_t root = 0;
  for (uint64_t bit = kOne; bit > 0; bit >>= 1) {
    const uint64_t larger = root | bit;
    if (Uint128{larger} * larger <= square) root = larger;
  }
  return root;
}

// kHalvings[i] = 2^(-1 / 2^(i + 1)), each the square root of the one before.
constexpr std::array<uint64_t, kBits> kHalvings = [] {
  std::array<uint64_t, kBits> table{};
  Uint128 last = kOne / 2;
  for (uint64_t& entry : table) {
    entry = Root(last << kBits);
    last = entry;
  }
  return table;
}();

// value * factor for a factor in fixed point, rounded to the nearest. Requires: value < 2^124.
constexpr Uint128 Times(Uint128 value, uint64_t factor) {
  const Uint128 high = (value >> 64) * factor;
  const Uint128 low = Uint128{static_cast<uint64_t>(value)} * factor;
  return (high << (64 - kBits)) + ((low + kOne / 2) >> kBits);
}

// 2^(-time / half_life) in fixed point.
uint64_t Fading(Millis time, Millis half_life) {
  const auto half = static_cast<Uint128>(half_life.count());
  const Uint128 halvings = ((static_cast<Uint128>(time.count()) << kBits) + half / 2) / half;
  const auto whole = static_cast<uint64_t>(halvings >> kBits);
  if (whole >= kBits) return 0;
  const auto part = static_cast<uint64_t>(halvings) & (kOne - 1);
  Uint128 fading = kOne;
  for (int i = 0; i < kBits; ++i) {
    if ((part >> (kBits - 1 - i) & 1) != 0) {
      fading = Times(fading, kHalvings[static_cast<std::size_t>(i)]);
    }
  }
  return static_cast<uint64_t>(fading >> whole);
}

Uint128 UsageAt(const DecayedUsage::State& state, Millis half_life, Instant at) {
  const Uint128 before = Uint128{static_cast<uint64_t>(state.usage_high)} << 64 | state.usage_low;
  if (at <= state.at) return before;
  const uint64_t fading = Fading(at - state.at, half_life);
  const Uint128 for_ever = Times(
      static_cast<Uint128>(state.quanta) * static_cast<Uint128>(half_life.count()), kOneByLn2);
  return Times(before, fading) + Times(for_ever, kOne - fading);
}

}  // namespace

void DecayedUsage::Hold(int64_t quanta, Instant at) {
  TRANCHE_CHECK_GE(quanta, 0);
  TRANCHE_CHECK_LE(quanta, kMostQuanta);
  const Uint128 usage = UsageAt(state_, half_life_, at);
  state_ = {quanta, std::max(at, state_.at), static_cast<int64_t>(usage >> 64),
            static_cast<uint64_t>(usage)};
}

int64_t DecayedUsage::MilliGpuHours(Instant at) const {
  constexpr int64_t kQuantaMillis = kQuantaPerGpu / 1000 * 3'600'000;
  return static_cast<int64_t>((UsageAt(state_, half_life_, at) + kQuantaMillis / 2) /
                              kQuantaMillis);
}

}  // namespace tranche
