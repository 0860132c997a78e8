// The placer against a slow, obviously right search: every way to give each unit a device is tried.
// Small nodes are enumerated over many random loads; seeds are printed on failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace {

// Units of the request in ask order: (ask, nothing yet). All assignments of cards to units.
class BruteForce {
 public:
  BruteForce(const Inventory& inventory, const Load& load, const PodRequest& request)
      : inventory_(inventory), load_(load), request_(request) {
    for (std::size_t a = 0; a < request.asks.size(); ++a) {
      for (int64_t i = 0; i < request.asks[a].count; ++i) units_.push_back(static_cast<int>(a));
    }
  }

  bool Fits() { return Try(0); }

 private:
  bool Try(std::size_t unit) {
    if (unit == units_.size()) return Holds();
    for (int card = 0; card < static_cast<int>(inventory_.cards.size()); ++card) {
      bool repeated = false;
      for (std::size_t before = 0; before < unit; ++before) {
        repeated |= units_[before] == units_[unit] && cards_[before] == card;
      }
      if (repeated) continue;  // units of one ask lie on different cards
      cards_.push_back(card);
      const bool fits = Try(unit + 1);
      cards_.pop_back();
      if (fits) return true;
    }
    return false;
  }

  // Does the assignment hold at every moment of the pod's life?
  bool Holds() const {
    std::vector<std::vector<bool>> moments;  // which containers run together
    std::vector<bool> steady(request_.containers.size());
    for (std::size_t c = 0; c < steady.size(); ++c) {
      steady[c] = request_.containers[c].role != ContainerRole::kInit;
      if (steady[c]) continue;
      std::vector<bool> moment(request_.containers.size());
      moment[c] = true;
      for (std::size_t before = 0; before < c; ++before) {
        moment[before] = request_.containers[before].role == ContainerRole::kSidecar;
      }
      moments.push_back(moment);
    }
    moments.push_back(steady);
    for (std::size_t card = 0; card < inventory_.cards.size(); ++card) {
      for (const auto& moment : moments) {
        if (!CardHolds(card, moment)) return false;
      }
    }
    return true;
  }

  bool CardHolds(std::size_t index, const std::vector<bool>& running) const {
    const Card& card = inventory_.cards[index];
    const CardLoad& base = load_.cards[index];
    int64_t milli = base.milli.count(), mib = base.memory.count(), users = base.slots;
    int exclusive = base.exclusive;
    int mine = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const Ask& ask = request_.asks[static_cast<std::size_t>(units_[u])];
      if (cards_[u] != static_cast<int>(index)) continue;
      if (!running[static_cast<std::size_t>(ask.container)]) continue;
      const CardNeed need = NeedOn(inventory_, ask, card);
      milli += need.milli.count();
      mib += need.memory.count();
      exclusive += need.exclusive;
      ++users;
      ++mine;
    }
    if (mine == 0) return true;
    if (!card.healthy || card.cordoned) return false;
    if (exclusive > 0 && users > 1) return false;
    if (card.slots > 0 && users > card.slots) return false;
    return milli <= card.capacity.count() && mib <= card.memory.count();
  }

  const Inventory& inventory_;
  const Load& load_;
  const PodRequest& request_;
  std::vector<int> units_;
  std::vector<int> cards_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

 private:
  std::mt19937_64 random_;
};

Load RandomLoad(const Inventory& inventory, Random& random) {
  Load load;
  load.Reset(inventory);
  for (std::size_t i = 0; i < load.cards.size(); ++i) {
    const int64_t users = random.Below(3);
    for (int64_t u = 0; u < users; ++u) {
      load.cards[i].milli += MilliGpu::Of(100 * (1 + random.Below(4)));
      load.cards[i].memory += Mebibytes::Of(1000 * (1 + random.Below(6)));
      load.cards[i].slots += 1;
    }
  }
  return load;
}

// HAMi shares of up to three containers, roles at random.
PodRequest RandomShares(Random& random) {
  PodRequest request = test::EmptyRequest("p");
  request.dialect = Dialect::kHami;
  request.containers.clear();
  const int64_t containers = 1 + random.Below(3);
  for (int64_t c = 0; c < containers; ++c) {
    const bool last = c + 1 == containers;
    const auto role = last ? ContainerRole::kApp : static_cast<ContainerRole>(random.Below(3));
    request.containers.push_back({fmt::format("c{}", c), role, 1});
    Ask ask;
    ask.container = static_cast<int>(c);
    ask.resource = Resource::kShare;
    ask.count = 1 + random.Below(2);
    // At least a little compute: HAMi's rule for cards without any core left has its own row.
    ask.compute = MilliGpu::Of(100 * (1 + random.Below(10)));
    ask.memory = {MemoryNeed::Kind::kMib, 1000 * (1 + random.Below(14))};
    ask.exclusive = ask.compute == kWholeGpu;
    request.asks.push_back(ask);
  }
  // App containers come after init containers in the normal form.
  std::ranges::stable_sort(request.containers, {}, [](const ContainerInfo& info) {
    return info.role == ContainerRole::kApp;
  });
  return request;
}

TEST(PlacementOracle, PlacerFindsRoomExactlyWhenThereIsSome) {
  constexpr int kCases = 20'000;
  int fitting = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Random random(seed);
    NodeFacts node = test::HamiNode("n", 1 + static_cast<int>(random.Below(4)), 4);
    if (random.Below(4) == 0) node.hami->devices[0].healthy = false;
    const Inventory inventory = BuildInventory(node, 0);
    const Load load = RandomLoad(inventory, random);
    const PodRequest request = RandomShares(random);
    const GpuPolicy policy;
    Placer placer;
    Picks picks;
    const Reason reason =
        placer.Place(inventory, load, request, {&policy, CardChoice::kTightest, -1}, picks);
    const bool expected = BruteForce(inventory, load, request).Fits();
    ASSERT_EQ(reason == Reason::kNone, expected)
        << "seed " << seed << ": " << Describe(reason).code;
    fitting += expected;
    if (!expected) continue;
    // What was picked is what was asked, and survives the trip through the record.
    std::string problem;
    const Allocation allocation = ToAllocation(inventory, request, picks);
    const auto again = FromAllocation(inventory, request, allocation, problem);
    ASSERT_TRUE(again.has_value()) << "seed " << seed << ": " << problem;
    ASSERT_EQ(ToAllocation(inventory, request, *again), allocation) << "seed " << seed;
  }
  // Both answers must be common, or the test says little.
  EXPECT_GT(fitting, kCases / 10);
  EXPECT_LT(fitting, kCases * 9 / 10);
}

}  // namespace
}  // namespace tranche
