#include "scheduler/scoring/score.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "topology/gpu_model.h"

namespace tranche {
namespace {

constexpr int kLevels = 100;
constexpr int kLevelShift = 20;
constexpr int kKindShift = 28;
constexpr int kSharingShift = 29;
constexpr Cost kMaxRoom = (1u << kLevelShift) - 1;
static_assert(kLevels < 1 << (kKindShift - kLevelShift) && kSharingModes <= 4);

// kThresholds[i] = ceil(1000 * ln((i + 1) / (99 - i))): the smallest drop of fragmentation, in
// milli-GPU, that FGD's score 100 / (1 + exp(-d / 1000)) rounds down to level i + 1 or more.
constexpr std::array<int64_t, 99> kThresholds = {
    -4595, -3891, -3476, -3178, -2944, -2751, -2586, -2442, -2313, -2197, -2090, -1992, -1900,
    -1815, -1734, -1658, -1585, -1516, -1450, -1386, -1324, -1265, -1208, -1152, -1098, -1045,
    -994,  -944,  -895,  -847,  -800,  -753,  -708,  -663,  -619,  -575,  -532,  -489,  -447,
    -405,  -363,  -322,  -281,  -241,  -200,  -160,  -120,  -80,   -40,   0,     41,    81,
    121,   161,   201,   242,   282,   323,   364,   406,   448,   490,   533,   576,   620,
    664,   709,   754,   801,   848,   896,   945,   995,   1046,  1099,  1153,  1209,  1266,
    1325,  1387,  1451,  1517,  1586,  1659,  1735,  1816,  1901,  1993,  2091,  2198,  2314,
    2443,  2587,  2752,  2945,  3179,  3477,  3892,  4596};

// FGD's score for a drop of `drop` / total milli-GPU.
int Level(int64_t drop, int64_t total) {
  const auto at = std::upper_bound(
      kThresholds.begin(), kThresholds.end(), drop,
      [total](int64_t value, int64_t threshold) { return value < threshold * total; });
  return static_cast<int>(at - kThresholds.begin());
}

int64_t ShareOf(const Card& card, const MixClass& type) {
  int64_t memory = 0;
  const int64_t total = card.memory.count();
  switch (type.memory.kind) {
    case MemoryNeed::Kind::kNone:
      break;
    case MemoryNeed::Kind::kWholeCard:
      memory = 1000;
      break;
    case MemoryNeed::Kind::kMib:
      memory = total > 0 ? (type.memory.value * 1000 + total - 1) / total : 0;
      break;
    case MemoryNeed::Kind::kMilliOfCard:
      memory = type.memory.value;
      break;
    case MemoryNeed::Kind::kPercentOfCard:
      memory = type.memory.value * 10;
      break;
  }
  return std::max(type.milli, memory);
}

int64_t FreeOf(const Card& card, const CardLoad& load) {
  if (!card.healthy || card.cordoned || load.exclusive > 0) return 0;
  if (card.MostUsers() > 0 && load.slots >= card.MostUsers()) return 0;
  int64_t share = (card.capacity - load.milli).count();
  if (card.memory.count() > 0) {
    share = std::min(share, (card.memory - load.memory).count() * 1000 / card.memory.count());
  }
  return std::clamp<int64_t>(share, 0, 1000);
}

// Room left on all cards and instances of the node, for consolidation.
int64_t RoomLeft(const Inventory& inventory, const Load& load) {
  int64_t room = 0;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    if (inventory.cards[i].mode != CardMode::kMig)
      room += FreeOf(inventory.cards[i], load.cards[i]);
  }
  for (std::size_t p = 0; p < inventory.pools.size(); ++p) {
    const MigPool& pool = inventory.pools[p];
    for (const int64_t users : load.slots[p]) {
      room += std::max<int64_t>(pool.replicas - users, 0) * pool.milli.count();
    }
  }
  return room;
}

// A plain nvidia.com/gpu is happiest on a whole card; replicas and MIG devices come after.
Cost KindPenalty(const Inventory& inventory, const PodRequest& request) {
  const bool wants_gpu = std::ranges::any_of(
      request.asks, [](const Ask& ask) { return ask.resource == Resource::kGpu; });
  const bool shares = std::ranges::any_of(
      request.asks, [](const Ask& ask) { return ask.resource == Resource::kShare; });
  if (wants_gpu && inventory.gpu_unit != GpuUnit::kCard) return 1;
  // A share is better kept where something enforces it.
  if (shares && !inventory.has_agent && inventory.sharing != SharingMethod::kMps) return 1;
  return 0;
}

// The class's least wanted way of sharing among the devices taken decides.
Cost SharingPenalty(const Inventory& inventory, const PodRequest& request, const Picks& picks,
                    const std::vector<SharingMode>* sharing) {
  int worst = 0;
  for (const Pick& pick : picks) {
    const Ask& ask = request.asks[static_cast<std::size_t>(pick.ask)];
    const Card& card = inventory.cards[static_cast<std::size_t>(pick.card)];
    worst = std::max(worst, PreferenceOf(inventory, ask, card, sharing).value_or(0));
  }
  return static_cast<Cost>(worst);
}

}  // namespace

int64_t Scorer::Fragmentation(const Inventory& inventory, const Load& load, const Mix& mix) {
  free_.clear();
  int64_t all = 0;
  const Card* sample = nullptr;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    const Card& card = inventory.cards[i];
    if (card.mode == CardMode::kMig) continue;
    sample = &card;
    free_.push_back(FreeOf(card, load.cards[i]));
    all += free_.back();
  }
  if (sample == nullptr || all == 0) return 0;
  int64_t sum = 0;
  for (const MixClass& type : mix.classes) {
    const bool allowed = type.models_any.empty() ||
                         std::ranges::any_of(type.models_any, [&](const std::string& pattern) {
                           return MatchesModel(pattern, sample->product);
                         });
    const int64_t need = std::max<int64_t>(ShareOf(*sample, type), 1);
    int64_t usable_cards = 0;
    int64_t too_small = 0;
    for (const int64_t free : free_) {
      if (free >= need) {
        ++usable_cards;
      } else {
        too_small += free;
      }
    }
    sum += type.count * (allowed && usable_cards >= type.cards ? too_small : all);
  }
  return sum;
}

Cost Scorer::Price(const Inventory& inventory, const Load& load, const PodRequest& request,
                   Strategy strategy, const Mix& mix, const Picks& picks) {
  after_ = load;
  AddUse(after_, UseOf(request, picks));
  const auto room =
      static_cast<Cost>(std::clamp<int64_t>(RoomLeft(inventory, after_), 0, int64_t{kMaxRoom}));
  const Cost kind = KindPenalty(inventory, request) << kKindShift;
  switch (strategy) {
    case Strategy::kBestFit:
      return kind | room;
    case Strategy::kSpread:
      return kind | (kMaxRoom - room);
    case Strategy::kFragmentation:
      break;
  }
  const int64_t drop = Fragmentation(inventory, load, mix) - Fragmentation(inventory, after_, mix);
  const auto level = static_cast<Cost>(kLevels - Level(drop, mix.total));
  return kind | level << kLevelShift | room;
}

Reason Scorer::Evaluate(const Inventory& inventory, const Load& load, const PodRequest& request,
                        const GpuPolicy& policy, const Mix& mix, Picks& picks, Cost& cost,
                        const std::vector<SharingMode>* sharing) {
  const Strategy strategy = request.strategy.value_or(policy.strategy);
  PlaceRules rules{&policy, request.card_choice, -1, sharing};
  if (rules.choice == CardChoice::kStrategy) {
    rules.choice = strategy == Strategy::kSpread ? CardChoice::kLoosest : CardChoice::kTightest;
  }
  const Reason reason = placer_.Place(inventory, load, request, rules, picks);
  if (reason != Reason::kNone) return reason;
  const auto price = [&](const Picks& way) {
    return SharingPenalty(inventory, request, way, sharing) << kSharingShift |
           Price(inventory, load, request, strategy, mix, way);
  };
  cost = price(picks);
  const bool one_share = picks.size() == 1 && picks[0].pool < 0 && request.asks.size() == 1 &&
                         request.asks[0].resource == Resource::kShare;
  if (!one_share || strategy != Strategy::kFragmentation ||
      request.card_choice != CardChoice::kStrategy) {
    return reason;
  }
  // A share may go on any card with room: the tightest is tried above, now one card of every other
  // load and way of sharing; the least cost wins, the tighter card on ties.
  const auto load_of = [&](int card) {
    const auto at = static_cast<std::size_t>(card);
    const CardLoad& used = load.cards[at];
    return std::tuple(used.milli, used.memory, used.slots,
                      PreferenceOf(inventory, request.asks[0], inventory.cards[at], sharing));
  };
  for (int card = 0; card < static_cast<int>(inventory.cards.size()); ++card) {
    bool seen = load_of(card) == load_of(picks[0].card);
    for (int before = 0; before < card && !seen; ++before) seen = load_of(before) == load_of(card);
    if (seen) continue;
    rules.preferred_card = card;
    if (placer_.Place(inventory, load, request, rules, trial_) != Reason::kNone ||
        trial_[0].card != card) {
      continue;
    }
    const Cost other = price(trial_);
    if (other >= cost) continue;
    cost = other;
    picks = trial_;
  }
  return reason;
}

}  // namespace tranche
