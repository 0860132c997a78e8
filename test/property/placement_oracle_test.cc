// The placer against a slow, obviously right search: every way to give each unit a device is tried.
// Small nodes are enumerated over many random loads; seeds are printed on failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <random>

#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

// Units of the request in ask order: (ask, nothing yet). All assignments of cards to units.
// `allowed`: how the pod may share; empty: any way. `limit`: most users of a card by policy; 0:
// any. `context`: what each container's takes that asks for an amount.
class BruteForce {
 public:
  BruteForce(const Inventory& inventory, const Load& load, const PodRequest& request,
             const std::vector<SharingMode>& allowed = {}, int64_t limit = 0, int64_t context = 0)
      : inventory_(inventory),
        load_(load),
        request_(request),
        allowed_(allowed),
        limit_(limit),
        context_(context) {
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
      // Units of one ask lie on different cards, replicas wherever there is room.
      const Ask& ask = request_.asks[static_cast<std::size_t>(units_[unit])];
      if (repeated && ask.resource == Resource::kShare) continue;
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
    int64_t milli = base.milli.count(), mib = base.memory.count() + context_ * base.beside,
            users = base.slots;
    int exclusive = base.exclusive;
    int mine = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const Ask& ask = request_.asks[static_cast<std::size_t>(units_[u])];
      if (cards_[u] != static_cast<int>(index)) continue;
      if (!running[static_cast<std::size_t>(ask.container)]) continue;
      if (!allowed_.empty() && std::ranges::count(allowed_, Mode(ask, card)) == 0) return false;
      const CardNeed need = NeedOn(inventory_, ask, card);
      milli += need.milli.count();
      mib += need.memory.count();
      const bool amount = ask.memory.kind == MemoryNeed::Kind::kMib && !ask.exclusive;
      if (amount) mib += context_;
      exclusive += need.exclusive;
      ++users;
      ++mine;
    }
    if (mine == 0) return true;
    if (!card.healthy || card.cordoned) return false;
    if (exclusive > 0 && users > 1) return false;
    if (card.slots > 0 && users > card.slots) return false;
    if (IsMps(card) && users > (inventory_.model == "v100-32gb" ? 16 : 48)) return false;
    if (limit_ > 0 && users > limit_) return false;
    return milli <= card.capacity.count() && mib <= card.memory.count();
  }

  bool IsMps(const Card& card) const {
    return inventory_.sharing == SharingMethod::kMps || card.vgpu_mode == "mps";
  }

  // Of the nodes and pods made below.
  SharingMode Mode(const Ask& ask, const Card& card) const {
    if (ask.memory.kind == MemoryNeed::Kind::kWholeCard) return SharingMode::kExclusive;
    return IsMps(card) ? SharingMode::kMps : SharingMode::kTimeSliced;
  }

  const Inventory& inventory_;
  const Load& load_;
  const PodRequest& request_;
  const std::vector<SharingMode> allowed_;
  const int64_t limit_;
  const int64_t context_;  // MiB
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

// The seeds of a test: TRANCHE_SEED is the first, TRANCHE_STEPS how many.
struct Seeds {
  uint64_t first = 1;
  uint64_t count = 20'000;

  Seeds() {
    if (const char* text = std::getenv("TRANCHE_SEED")) first = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TRANCHE_STEPS")) count = std::strtoull(text, nullptr, 10);
    std::cout << "seeds " << first << " to " << first + count - 1 << " (TRANCHE_SEED)\n";
  }
  // `times` is at least a part of the count, which few seeds cannot show.
  bool AtLeast(uint64_t times, uint64_t part) const { return count < 1000 || times > count / part; }
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
  request.style = RequestStyle::kHami;
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
  const Seeds seeds;
  uint64_t fitting = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    NodeFacts node = test::HamiNode("n", 1 + static_cast<int>(random.Below(4)), 4);
    if (random.Below(4) == 0) node.agent->devices[0].healthy = false;
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
  EXPECT_TRUE(seeds.AtLeast(fitting, 10)) << fitting;
  EXPECT_TRUE(seeds.AtLeast(seeds.count - fitting, 10)) << fitting;
}

// Cards whose users are near 16, 48 or none, so that every limit on users decides now and then.
Load CrowdedLoad(const Inventory& inventory, Random& random) {
  Load load;
  load.Reset(inventory);
  for (CardLoad& card : load.cards) {
    const int64_t around = std::array{0, 0, 14, 46}[static_cast<std::size_t>(random.Below(4))];
    card.slots = around + random.Below(4);
    if (card.slots == 0) continue;
    card.milli = MilliGpu::Of(100 * random.Below(8));
    card.memory = Mebibytes::Of(1000 * random.Below(12));
    card.beside = std::min<int64_t>(card.slots, random.Below(4));
  }
  return load;
}

// A HAMi node whose cards share in different ways, or a replicated one under either method.
NodeFacts SharedNode(Random& random) {
  const int cards = 1 + static_cast<int>(random.Below(3));
  if (random.Below(2) == 0) {
    NodeFacts node = test::HamiNode("n", cards, 10 + static_cast<int>(random.Below(60)));
    for (AgentDevice& device : node.agent->devices) {
      if (random.Below(2) == 0) device.mode = "mps";
    }
    return node;
  }
  const auto method = random.Below(2) == 0 ? SharingMethod::kMps : SharingMethod::kTimeSlicing;
  NodeFacts node =
      test::SharedNode("n", cards, 10 + static_cast<int>(random.Below(60)), true, method);
  node.product = random.Below(2) == 0 ? "Tesla-V100-SXM2-32GB" : "Tesla-T4";
  node.memory = Mebibytes::Of(15'109);
  return node;
}

// One share on each of several cards, whole ones among them, or replicas for several containers.
PodRequest RandomSharers(const Inventory& inventory, Random& random) {
  PodRequest request = RandomShares(random);
  const bool replicas = !inventory.has_agent() && random.Below(2) == 0;
  request.style = inventory.has_agent() ? RequestStyle::kHami : RequestStyle::kTranche;
  for (Ask& ask : request.asks) {
    if (replicas) {
      ask = {ask.container, Resource::kGpuShared, 1, {}, {}, {}, false};
    } else if (inventory.has_agent() && random.Below(8) == 0) {
      ask.compute = kWholeGpu;
      ask.exclusive = true;
      ask.memory = {MemoryNeed::Kind::kWholeCard, 0};
    } else {
      ask.exclusive = false;
      ask.compute = MilliGpu::Of(1 + random.Below(500));
    }
  }
  return request;
}

std::vector<SharingMode> RandomSharing(Random& random) {
  std::vector<SharingMode> modes = {SharingMode::kExclusive, SharingMode::kMig, SharingMode::kMps,
                                    SharingMode::kTimeSliced};
  for (std::size_t i = modes.size(); i > 1; --i) {
    std::swap(modes[i - 1], modes[static_cast<std::size_t>(random.Below(static_cast<int64_t>(i)))]);
  }
  modes.resize(static_cast<std::size_t>(random.Below(5)));
  return modes;
}

TEST(PlacementOracle, ClassesAndUserLimitsAllowExactlyWhatTheySay) {
  const Seeds seeds;
  uint64_t fitting = 0;
  uint64_t forbidden = 0;
  uint64_t crowded = 0;
  uint64_t squeezed = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    const Inventory inventory = BuildInventory(SharedNode(random), 0);
    const Load load = CrowdedLoad(inventory, random);
    const PodRequest request = RandomSharers(inventory, random);
    const std::vector<SharingMode> sharing = RandomSharing(random);
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    const int limit = random.Below(4) == 0 ? 15 + static_cast<int>(random.Below(40)) : 0;
    const int64_t context = random.Below(2) * (200 + random.Below(600));
    if (limit > 0) policy.sharing_limits.push_back({"any", limit});
    if (context > 0) {
      policy.sharing_limits.push_back({inventory.model, 0, Mebibytes::Of(context)});
    }
    Placer placer;
    Picks picks;
    const Reason reason = placer.Place(inventory, load, request,
                                       {&policy, CardChoice::kTightest, -1, &sharing}, picks);
    const bool expected = BruteForce(inventory, load, request, sharing, limit, context).Fits();
    ASSERT_EQ(reason == Reason::kNone, expected)
        << "seed " << seed << ": " << Describe(reason).code;
    fitting += expected;
    if (!expected && context > 0) {
      squeezed += BruteForce(inventory, load, request, sharing, limit).Fits();
    }
    forbidden += reason == Reason::kSharingMode;
    if (reason == Reason::kSharingMode) {
      Load empty;
      empty.Reset(inventory);
      ASSERT_FALSE(BruteForce(inventory, empty, request, sharing).Fits()) << "seed " << seed;
    }
    if (reason != Reason::kNoRoom) continue;
    Load fewer = load;
    for (CardLoad& card : fewer.cards) card.slots = card.slots > 0;
    crowded += BruteForce(inventory, fewer, request, sharing, limit, context).Fits();
  }
  // Every answer must be common, or the test says little.
  EXPECT_TRUE(seeds.AtLeast(fitting, 20)) << fitting;
  EXPECT_TRUE(seeds.AtLeast(forbidden, 20)) << forbidden;
  EXPECT_TRUE(seeds.AtLeast(crowded, 100)) << crowded << " refused for the number of users alone";
  EXPECT_TRUE(seeds.AtLeast(squeezed, 200)) << squeezed << " refused for contexts alone";
}

}  // namespace THIS_FILE
}  // namespace tranche
