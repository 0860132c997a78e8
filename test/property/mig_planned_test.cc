// Planned MIG layouts against a slow, obviously right search over every way to give each unit a
// place; and no set that is not legal is ever proposed: for every layout of one GPU of every board,
// and at random on nodes of several. Seeds are printed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  int Below(int64_t bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }

 private:
  std::mt19937_64 random_;
};

// The seeds of a test: TRANCHE_SEED is the first, TRANCHE_STEPS how many.
struct Seeds {
  uint64_t first = 1;
  uint64_t count = 0;

  explicit Seeds(uint64_t usual) : count(usual) {
    if (const char* text = std::getenv("TRANCHE_SEED")) first = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TRANCHE_STEPS")) count = std::strtoull(text, nullptr, 10);
    std::cout << "seeds " << first << " to " << first + count - 1 << " (TRANCHE_SEED)\n";
  }
  // `times` is at least a part of the count, which few seeds cannot show.
  bool AtLeast(uint64_t times, uint64_t part) const { return count < 1000 || times > count / part; }
};

// Boards that a node can name.
std::vector<const MigBoard*> NamedBoards() {
  std::vector<const MigBoard*> boards;
  for (const MigBoard& board : MigBoards()) {
    if (!board.products.empty()) boards.push_back(&board);
  }
  return boards;
}

constexpr int kReplicas = 2;

// Every profile is advertised, alone and, if `shared`, for sharing.
NodeFacts PlannedNode(const MigBoard& board, int gpus, bool shared) {
  NodeFacts node =
      test::StockNode("n", gpus, std::string(board.products.front()), board.memory_gb * 1024);
  node.gpu.reset();
  node.mig_planned = true;
  for (const MigProfile& profile : board.profiles) {
    for (const bool key_is_shared : {false, true}) {
      if (key_is_shared && !shared) continue;
      MigResourceFacts mig;
      mig.name = {std::string(profile.name), key_is_shared};
      mig.replicas = shared ? kReplicas : 1;
      mig.count = {100, 100};
      node.mig.push_back(mig);
    }
  }
  return node;
}

// An instance somebody uses.
struct Instance {
  int card = 0;
  const MigProfile* profile = nullptr;
  int start = 0;
  bool shared = false;
  int64_t users = 1;

  bool IsAt(const Instance& other) const {
    return card == other.card && profile == other.profile && start == other.start &&
           shared == other.shared;
  }
};

bool IsLegalOn(const MigBoard& board, int card, const std::vector<Instance>& instances) {
  std::vector<MigInstance> set;
  for (const Instance& instance : instances) {
    if (instance.card == card) set.push_back({instance.profile, instance.start});
  }
  return IsLegalMigSet(board, set);
}

// As many tries as `tries` says; what is not legal is left out.
std::vector<Instance> RandomInstances(const MigBoard& board, int gpus, bool shared, int tries,
                                      Random& random) {
  std::vector<Instance> instances;
  for (int i = 0; i < tries; ++i) {
    const MigProfile& profile =
        board.profiles[static_cast<std::size_t>(random.Below(std::ssize(board.profiles)))];
    const int start =
        profile.starts[static_cast<std::size_t>(random.Below(std::ssize(profile.starts)))];
    const bool of_many = shared && random.Below(3) == 0;
    instances.push_back(
        {random.Below(gpus), &profile, start, of_many, of_many ? 1 + random.Below(kReplicas) : 1});
    if (!IsLegalOn(board, instances.back().card, instances)) instances.pop_back();
  }
  return instances;
}

InstanceUse UseOfInstance(const Inventory& inventory, const Instance& instance) {
  const int pool =
      inventory.FindPool(FormatMigResource({std::string(instance.profile->name), instance.shared}));
  const auto& slots = inventory.pools[static_cast<std::size_t>(pool)].slots;
  const auto slot = std::ranges::find_if(slots, [&](const MigSlot& place) {
    return place.card == instance.card && place.start == instance.start;
  });
  return {pool, static_cast<int>(slot - slots.begin()), instance.users};
}

Load LoadOf(const Inventory& inventory, const std::vector<Instance>& instances) {
  Load load;
  load.Reset(inventory);
  for (const Instance& instance : instances) {
    AddUse(load, {{}, {UseOfInstance(inventory, instance)}});
  }
  return load;
}

// Up to four instances for up to three containers, roles at random.
PodRequest RandomPod(const MigBoard& board, bool shared, Random& random) {
  PodRequest request = test::EmptyRequest("p");
  request.style = RequestStyle::kNative;
  request.containers.clear();
  const int containers = 1 + random.Below(3);
  int left = 4;
  for (int c = 0; c < containers && left > 0; ++c) {
    const bool last = c + 1 == containers || random.Below(2) == 0;
    const auto role = last ? ContainerRole::kApp : static_cast<ContainerRole>(random.Below(3));
    request.containers.push_back({fmt::format("c{}", c), role, 0});
  }
  std::ranges::stable_sort(request.containers, {}, [](const ContainerInfo& info) {
    return info.role == ContainerRole::kApp;
  });
  for (int c = 0; c < std::ssize(request.containers) && left > 0; ++c) {
    Ask ask;
    ask.container = c;
    ask.resource = Resource::kMig;
    ask.count = 1 + random.Below(left);
    left -= static_cast<int>(ask.count);
    const MigProfile& profile =
        board.profiles[static_cast<std::size_t>(random.Below(std::ssize(board.profiles)))];
    ask.mig = {std::string(profile.name), shared && random.Below(3) == 0};
    request.asks.push_back(ask);
  }
  return request;
}

// Tries every place for every unit. A set that is not legal, or an instance with too many users,
// never gets better by more units.
class BruteForce {
 public:
  BruteForce(const MigBoard& board, int gpus, const PodRequest& request,
             std::vector<Instance> instances)
      : board_(board), gpus_(gpus), request_(request), base_(std::move(instances)) {
    for (const Ask& ask : request.asks) {
      for (int64_t i = 0; i < ask.count; ++i) units_.push_back(&ask);
    }
  }

  bool Fits() {
    if (!Holds()) return false;
    if (own_.size() == units_.size()) return true;
    const Ask& ask = *units_[own_.size()];
    const MigProfile* profile = FindMigProfile(board_, ask.mig.profile);
    for (int card = 0; card < gpus_; ++card) {
      for (const int start : profile->starts) {
        own_.push_back({card, profile, start, ask.mig.shared});
        const bool fits = Fits();
        own_.pop_back();
        if (fits) return true;
      }
    }
    return false;
  }
  // The units at those places, in ask order.
  bool Holds(const std::vector<Instance>& places) {
    own_ = places;
    const bool holds = Holds();
    own_.clear();
    return holds;
  }

 private:
  // All that the pod takes at any moment of its life exists as long as it does; users come and go.
  bool Holds() const {
    std::vector<Instance> all = base_;
    for (const Instance& mine : own_) {
      const auto is_mine = [&mine](const Instance& other) { return other.IsAt(mine); };
      if (std::ranges::none_of(all, is_mine)) all.push_back(mine);
    }
    for (int card = 0; card < gpus_; ++card) {
      if (!IsLegalOn(board_, card, all)) return false;
    }
    for (const Instance& mine : own_) {
      for (int moment = -1; moment < std::ssize(request_.containers); ++moment) {
        if (UsersAt(mine, moment) > (mine.shared ? kReplicas : 1)) return false;
      }
    }
    return true;
  }

  // Moment -1: all long-running containers; else that of an init container.
  int64_t UsersAt(const Instance& instance, int moment) const {
    int64_t users = 0;
    for (const Instance& other : base_) users += other.IsAt(instance) ? other.users : 0;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      users += own_[i].IsAt(instance) && RunsAt(units_[i]->container, moment);
    }
    return users;
  }

  bool RunsAt(int container, int moment) const {
    const auto role = [this](int at) {
      return request_.containers[static_cast<std::size_t>(at)].role;
    };
    if (moment < 0 || role(moment) != ContainerRole::kInit) {
      return role(container) != ContainerRole::kInit;
    }
    return container == moment ||
           (container < moment && role(container) == ContainerRole::kSidecar);
  }

  const MigBoard& board_;
  const int gpus_;
  const PodRequest& request_;
  const std::vector<Instance> base_;
  std::vector<const Ask*> units_;
  std::vector<Instance> own_;
};

std::vector<Instance> PlacesOf(const Inventory& inventory, const MigBoard& board,
                               const Picks& picks) {
  std::vector<Instance> places;
  for (const Pick& pick : picks) {
    const MigPool& pool = inventory.pools[static_cast<std::size_t>(pick.pool)];
    const MigSlot& slot = pool.slots[static_cast<std::size_t>(pick.slot)];
    places.push_back({slot.card, FindMigProfile(board, pool.profile), slot.start,
                      pool.key.ends_with(".shared")});
  }
  return places;
}

// Values of some board at random; nothing in the search may rest on their shape.
LayoutValueMap RandomValues(const MigBoard& board, Random& random) {
  const MigSpace& space = MigSpaceOf(board);
  std::vector<int32_t> values(space.size());
  for (int32_t& value : values) value = random.Below(1000);
  return {{&space, values}};
}

TEST(MigPlanned, PlacerFindsPlacesExactlyWhenThereAreSome) {
  const Seeds seeds(8'000);
  const std::vector<const MigBoard*> boards = NamedBoards();
  const GpuPolicy policy;
  Placer placer;
  uint64_t fitting = 0, never = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    const MigBoard& board = *boards[static_cast<std::size_t>(random.Below(std::ssize(boards)))];
    const int gpus = 1 + random.Below(3);
    const bool shared = random.Below(3) == 0;
    const Inventory inventory = BuildInventory(PlannedNode(board, gpus, shared), 0);
    const std::vector<Instance> base =
        RandomInstances(board, gpus, shared, random.Below(gpus * 6), random);
    const Load load = LoadOf(inventory, base);
    const PodRequest request = RandomPod(board, shared, random);
    const LayoutValueMap values = RandomValues(board, random);
    const PlaceRules rules{.policy = &policy,
                           .layout_values = random.Below(2) == 0 ? &values : nullptr};
    Picks picks;
    const Reason reason = placer.Place(inventory, load, request, rules, picks);
    const bool expected = BruteForce(board, gpus, request, base).Fits();
    ASSERT_EQ(reason == Reason::kNone, expected)
        << "seed " << seed << ": " << Describe(reason).code;
    fitting += expected;
    if (!expected) {
      const bool on_idle = BruteForce(board, gpus, request, {}).Fits();
      ASSERT_EQ(reason, on_idle ? Reason::kNoRoom : Reason::kTooManyPerNode) << "seed " << seed;
      never += !on_idle;
      continue;
    }
    ASSERT_TRUE(BruteForce(board, gpus, request, base).Holds(PlacesOf(inventory, board, picks)))
        << "seed " << seed;
    std::string problem;
    const Allocation record = ToAllocation(inventory, request, picks);
    const auto again = FromAllocation(inventory, request, record, problem);
    ASSERT_TRUE(again.has_value()) << "seed " << seed << ": " << problem;
    ASSERT_EQ(ToAllocation(inventory, request, *again), record) << "seed " << seed;
  }
  // Every answer must be common, or the test says little.
  EXPECT_TRUE(seeds.AtLeast(fitting, 4)) << fitting;
  EXPECT_TRUE(seeds.AtLeast(never, 20)) << never;
  EXPECT_TRUE(seeds.AtLeast(seeds.count - fitting - never, 10)) << fitting << " " << never;
}

TEST(MigPlanned, OneInstanceGoesWhereTheGainIsHighest) {
  const Seeds seeds(5'000);
  const std::vector<const MigBoard*> boards = NamedBoards();
  const GpuPolicy policy;
  Placer placer;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    const MigBoard& board = *boards[static_cast<std::size_t>(random.Below(std::ssize(boards)))];
    const int gpus = 1 + random.Below(4);
    const Inventory inventory = BuildInventory(PlannedNode(board, gpus, false), 0);
    const std::vector<Instance> base =
        RandomInstances(board, gpus, false, random.Below(gpus * 6), random);
    const Load load = LoadOf(inventory, base);
    const MigProfile& profile =
        board.profiles[static_cast<std::size_t>(random.Below(std::ssize(board.profiles)))];
    const LayoutValueMap values = RandomValues(board, random);
    const std::vector<int32_t>& table = values.begin()->second;
    const MigSpace& space = MigSpaceOf(board);
    std::optional<int64_t> best;
    for (int card = 0; card < gpus; ++card) {
      std::vector<MigInstance> set;
      for (const Instance& instance : base) {
        if (instance.card == card) set.push_back({instance.profile, instance.start});
      }
      const LayoutId before = *space.Find(set);
      ASSERT_EQ(load.cards[static_cast<std::size_t>(card)].layout, before) << "seed " << seed;
      for (const int start : profile.starts) {
        set.push_back({&profile, start});
        if (IsLegalMigSet(board, set)) {
          const int64_t gain = int64_t{table[*space.Find(set)]} - table[before];
          best = std::max(best.value_or(gain), gain);
        }
        set.pop_back();
      }
    }
    Picks picks;
    const PodRequest request = test::MigPod("p", std::string(profile.name), 1);
    const Reason reason = placer.Place(inventory, load, request,
                                       {.policy = &policy, .layout_values = &values}, picks);
    ASSERT_EQ(reason == Reason::kNone, best.has_value()) << "seed " << seed;
    if (best) {
      ASSERT_EQ(LayoutGain(inventory, load, picks, values), *best) << "seed " << seed;
    }
  }
}

TEST(MigPlanned, EqualNodesChooseAlikeWhicheverCardIsWhich) {
  const Seeds seeds(5'000);
  const std::vector<const MigBoard*> boards = NamedBoards();
  const GpuPolicy policy;
  Placer placer;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    const MigBoard& board = *boards[static_cast<std::size_t>(random.Below(std::ssize(boards)))];
    const int gpus = 2 + random.Below(4);
    const Inventory inventory = BuildInventory(PlannedNode(board, gpus, true), 0);
    std::vector<Instance> base = RandomInstances(board, gpus, true, random.Below(gpus * 6), random);
    const PodRequest request = RandomPod(board, true, random);
    const LayoutValueMap values = RandomValues(board, random);
    const PlaceRules rules{.policy = &policy,
                           .layout_values = random.Below(2) == 0 ? &values : nullptr};
    const auto outcome = [&] {
      Load load = LoadOf(inventory, base);
      Picks picks;
      const Reason reason = placer.Place(inventory, load, request, rules, picks);
      if (reason == Reason::kNone) AddUse(load, UseOf(request, picks));
      std::vector<std::vector<int64_t>> rows = PlannedRows(inventory, load);
      std::ranges::sort(rows);
      return std::pair(reason, rows);
    };
    const auto expected = outcome();
    const int turn = 1 + random.Below(gpus - 1);
    for (Instance& instance : base) instance.card = (instance.card + turn) % gpus;
    ASSERT_EQ(outcome(), expected) << "seed " << seed;
  }
}

TEST(MigPlanned, NoIllegalSetIsProposedOnAnyLayoutOfAnyBoard) {
  const GpuPolicy policy;
  Placer placer;
  Random random(1);
  for (const MigBoard* board : NamedBoards()) {
    const Inventory inventory = BuildInventory(PlannedNode(*board, 1, false), 0);
    const MigSpace& space = MigSpaceOf(*board);
    const LayoutValueMap values = RandomValues(*board, random);
    std::vector<PodRequest> pods;
    for (const MigProfile& profile : board->profiles) {
      pods.push_back(test::MigPod("p", std::string(profile.name), 1));
    }
    for (std::size_t layout = 0; layout < space.size(); ++layout) {
      std::vector<Instance> base;
      for (const MigInstance& instance : space.instances(static_cast<LayoutId>(layout))) {
        base.push_back({0, instance.profile, instance.start});
      }
      const Load load = LoadOf(inventory, base);
      ASSERT_EQ(load.cards[0].layout, layout) << board->id;
      for (std::size_t p = 0; p < pods.size(); ++p) {
        const bool fits = BruteForce(*board, 1, pods[p], base).Fits();
        Picks picks;
        const Reason reason = placer.Place(
            inventory, load, pods[p],
            {.policy = &policy, .layout_values = layout % 2 == 0 ? &values : nullptr}, picks);
        ASSERT_EQ(reason, fits ? Reason::kNone : Reason::kNoRoom) << board->id << " " << layout;
        if (!fits) continue;
        std::vector<Instance> after = base;
        for (const Instance& place : PlacesOf(inventory, *board, picks)) after.push_back(place);
        ASSERT_EQ(after.size(), base.size() + 1);
        ASSERT_EQ(after.back().profile, &board->profiles[p]);
        ASSERT_TRUE(IsLegalOn(*board, 0, after)) << board->id << " " << layout;
      }
    }
  }
}

TEST(MigPlanned, NodesThatPodsComeToAndLeaveStayLegal) {
  const Seeds seeds(200);
  const std::vector<const MigBoard*> boards = NamedBoards();
  const GpuPolicy policy;
  Placer placer;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    const MigBoard& board = *boards[static_cast<std::size_t>(random.Below(std::ssize(boards)))];
    const int gpus = 1 + random.Below(8);
    const Inventory inventory = BuildInventory(PlannedNode(board, gpus, true), 0);
    const LayoutValueMap values = RandomValues(board, random);
    std::vector<PodUse> pods;
    for (int step = 0; step < 100; ++step) {
      Load load;
      load.Reset(inventory);
      std::ranges::shuffle(pods, std::mt19937_64(seed));
      for (const PodUse& pod : pods) AddUse(load, pod);
      for (const CardLoad& card : load.cards) ASSERT_FALSE(card.layout_broken) << "seed " << seed;
      for (std::size_t p = 0; p < load.slots.size(); ++p) {
        ASSERT_LE(std::ranges::max(load.slots[p]), inventory.pools[p].replicas) << "seed " << seed;
      }
      if (!pods.empty() && random.Below(3) == 0) {
        pods.erase(pods.begin() + random.Below(std::ssize(pods)));
        continue;
      }
      const PodRequest request = RandomPod(board, true, random);
      Picks picks;
      const PlaceRules rules{.policy = &policy,
                             .layout_values = random.Below(2) == 0 ? &values : nullptr};
      if (placer.Place(inventory, load, request, rules, picks) == Reason::kNone) {
        pods.push_back(UseOf(request, picks));
      }
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
