// The choice of GPUs against a slow, obviously right search by the key as it is written down
// (machine_table.h, KeepValue in set_values.h): every free set, size and goal of every captured
// machine of up to 8 GPUs; drawn free sets of larger ones and of 16 GPUs linked at random. Rings
// are found by trying every order, groups by trying every division. Seeds are printed.
#include "topology/machine/machine_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <tuple>

#include "test/fakes/places.h"
#include "test/unit/topology/machine/captured.h"
#include "topology/machine/ring.h"

namespace tranche {
namespace THIS_FILE {

using Key = std::vector<int64_t>;  // most important first, larger is better

struct Seeds {
  uint64_t first = 1;
  uint64_t count = 0;

  explicit Seeds(uint64_t usual) : count(usual) {
    if (const char* text = std::getenv("TRANCHE_SEED")) first = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TRANCHE_STEPS")) count = std::strtoull(text, nullptr, 10);
    std::cout << "seeds " << first << " to " << first + count - 1 << " (TRANCHE_SEED)\n";
  }
};

std::vector<int> Members(GpuSet set) {
  std::vector<int> members;
  for (const int gpu : set) members.push_back(gpu);
  return members;
}

// Everything by trying all; what was found is remembered, so that whole machines can be swept.
class Slow {
 public:
  explicit Slow(const Machine& machine) : machine_(machine) {
    const uint64_t sets = uint64_t{1} << machine.size();
    for (uint64_t bits = 1; bits < sets; ++bits) {
      const GpuSet set = GpuSet::Of(bits);
      const auto size = std::find(kSizes.begin(), kSizes.end(), set.size());
      if (size != kSizes.end() && AllLinked(set)) {
        groups_[static_cast<std::size_t>(set.first())].push_back(set);
      }
    }
  }

  Ring BestRingOf(GpuSet set) const {
    Ring best;
    best.weakest = -1;
    std::vector<int> order = Members(set);
    do {
      const Ring ring = Around(order);
      if (std::tuple(ring.weakest, ring.links) > std::tuple(best.weakest, best.links)) best = ring;
    } while (std::next_permutation(order.begin() + 1, order.end()));
    return best;
  }

  const SetQuality& Quality(GpuSet set) {
    const auto known = qualities_.find(set.bits());
    if (known != qualities_.end()) return known->second;
    SetQuality quality;
    quality.connected = AllLinked(set);
    quality.worst_path = PathClass::kBoard;
    std::map<std::optional<int>, int> nodes;
    for (const int left : set) {
      ++nodes[machine_.gpu(left).numa];
      quality.nic_distance += NicDistance(left);
      for (const int right : set) {
        if (right >= left) continue;
        const Link link = machine_.link(left, right);
        quality.links += link.nvlinks;
        if (link.nvlinks == 0) quality.worst_path = std::min(quality.worst_path, link.path);
      }
    }
    quality.numa_nodes = static_cast<int>(nodes.size());
    if (set.size() > 1) {
      std::vector<int> order = Members(set);
      do {
        const Ring ring = Around(order);
        quality.ring_weakest = std::max(quality.ring_weakest, ring.weakest);
        quality.ring_links = std::max(quality.ring_links, ring.links);
      } while (std::next_permutation(order.begin() + 1, order.end()));
    }
    return qualities_[set.bits()] = quality;
  }

  Key ToTake(GpuSet set) {
    const SetQuality& quality = Quality(set);
    return {quality.connected,
            quality.ring_links,
            quality.links,
            quality.ring_weakest,
            static_cast<int64_t>(quality.worst_path),
            -quality.numa_nodes,
            -quality.nic_distance};
  }

  Key ToKeep(GpuSet free, GpuSet set) {
    const Key whole = Packing(machine_.all() - set);
    Key key = {whole[0], whole[1]};
    const auto append = [&](const Key& more) { key.insert(key.end(), more.begin(), more.end()); };
    append(Packing(free - set));
    key.push_back(LinksIn(free - set));
    append(whole);
    key.push_back(NearnessIn(free - set));
    key.push_back(NearnessIn(machine_.all() - set));
    return key;
  }

  bool Obeys(GpuSet set, const SetRules& rules) const {
    for (const int left : set) {
      if (rules.nic_floor && NicPath(left) < static_cast<int>(*rules.nic_floor)) return false;
      if (rules.one_numa && !machine_.gpu(left).numa) return false;
      for (const int right : set) {
        if (right == left) continue;
        const Link link = machine_.link(left, right);
        if (rules.require_nvlink && link.nvlinks == 0) return false;
        if (rules.floor && !rules.floor->Admits(link)) return false;
        if (rules.one_numa && machine_.gpu(left).numa != machine_.gpu(right).numa) return false;
      }
    }
    return true;
  }

  std::optional<GpuSet> Best(GpuSet free, int count, const SetRules& rules) {
    const bool keep_first = rules.goal == SetGoal::kPreserve || count == 1;
    std::optional<GpuSet> best;
    Key most;
    for (const GpuSet set : SetsOf(free, count)) {
      if (!Obeys(set, rules)) continue;
      Key key = keep_first ? ToKeep(free, set) : ToTake(set);
      const Key rest = keep_first ? ToTake(set) : ToKeep(free, set);
      key.insert(key.end(), rest.begin(), rest.end());
      if (best && key <= most) continue;
      best = set;
      most = key;
    }
    return best;
  }

 private:
  static constexpr std::array<int, 4> kSizes = {8, 4, 3, 2};

  // By their lowest GPUs: {0, 1, 5} before {0, 2, 3}.
  static std::vector<GpuSet> SetsOf(GpuSet free, int count) {
    const std::vector<int> members = Members(free);
    std::vector<GpuSet> sets;
    std::vector<bool> mask(members.size(), false);
    std::fill_n(mask.begin(), count, true);
    do {
      GpuSet set;
      for (std::size_t i = 0; i < mask.size(); ++i) {
        if (mask[i]) set.Add(members[i]);
      }
      sets.push_back(set);
    } while (std::prev_permutation(mask.begin(), mask.end()));
    return sets;
  }

  Ring Around(const std::vector<int>& order) const {
    Ring ring;
    ring.order = order;
    ring.weakest = kMaxNvlinks;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int hop = machine_.link(order[i], order[(i + 1) % order.size()]).nvlinks;
      ring.weakest = std::min(ring.weakest, hop);
      ring.links += hop;
    }
    return ring;
  }

  bool AllLinked(GpuSet set) const {
    for (const int left : set) {
      for (const int right : set) {
        if (left != right && machine_.link(left, right).nvlinks == 0) return false;
      }
    }
    return true;
  }

  int64_t LinksIn(GpuSet set) const {
    int64_t links = 0;
    for (const int left : set) {
      for (const int right : set) links += left < right ? machine_.link(left, right).nvlinks : 0;
    }
    return links;
  }

  int64_t NearnessIn(GpuSet set) const {
    int64_t sum = 0;
    for (const int left : set) {
      for (const int right : set) {
        if (left >= right) continue;
        auto nearness = static_cast<int>(machine_.link(left, right).path);
        const std::optional<int> node = machine_.gpu(left).numa;
        if (node && node == machine_.gpu(right).numa) nearness = std::max(nearness, 1);
        for (const MachineNic& nic : machine_.nics()) {
          const auto path = [&](int gpu) {
            return static_cast<int>(nic.paths[static_cast<std::size_t>(gpu)]);
          };
          if (nic.fabric) nearness = std::max(nearness, std::min(path(left), path(right)));
        }
        sum += nearness;
      }
    }
    return sum;
  }

  // The best path to a fabric NIC; -1: there is none.
  int NicPath(int gpu) const {
    int best = -1;
    for (const MachineNic& nic : machine_.nics()) {
      if (!nic.fabric) continue;
      best = std::max(best, static_cast<int>(nic.paths[static_cast<std::size_t>(gpu)]));
    }
    return best;
  }
  int NicDistance(int gpu) const {
    const int path = NicPath(gpu);
    return path < 0 ? 0 : std::max(0, static_cast<int>(PathClass::kPix) - path);
  }

  // Octets, quads, triples, pairs, links inside them.
  const Key& Packing(GpuSet set) {
    const auto known = packings_.find(set.bits());
    if (known != packings_.end()) return known->second;
    Key best(5, 0);
    if (!set.empty()) {
      GpuSet rest = set;
      rest.Remove(set.first());
      best = Packing(rest);
      for (const GpuSet group : groups_[static_cast<std::size_t>(set.first())]) {
        if (!set.Contains(group)) continue;
        Key with = Packing(set - group);
        const auto size = std::find(kSizes.begin(), kSizes.end(), group.size());
        with[static_cast<std::size_t>(size - kSizes.begin())] += 1;
        with[4] += LinksIn(group);
        best = std::max(best, with);
      }
    }
    return packings_[set.bits()] = best;
  }

  const Machine& machine_;
  std::array<std::vector<GpuSet>, 16> groups_;  // by lowest GPU
  std::map<uint64_t, SetQuality> qualities_;
  std::map<uint64_t, Key> packings_;
};

std::vector<std::string> CapturedNames() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(fakes::SourceFolder() + "/test/cases/topologies")) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<SetRules>& SomeRules() {
  static const std::vector<SetRules> rules = {
      {},
      {.goal = SetGoal::kPreserve},
      {.require_nvlink = true},
      {.goal = SetGoal::kPreserve, .require_nvlink = true, .one_numa = true},
      {.floor = LinkFloor{PathClass::kSys, 2}},
      {.floor = LinkFloor{PathClass::kPxb, 0}},
      {.nic_floor = PathClass::kPxb},
      {.one_numa = true},
  };
  return rules;
}

// Returns whether there was a set.
bool Compare(MachineTable& table, Slow& slow, GpuSet free, int count, const SetRules& rules) {
  const std::optional<SetChoice> found = table.Best(free, count, rules);
  const std::optional<GpuSet> expected = slow.Best(free, count, rules);
  const auto where = [&] {
    return "free " + std::to_string(free.bits()) + ", of " + std::to_string(count);
  };
  EXPECT_EQ(found.has_value(), expected.has_value()) << where();
  if (!found || !expected) {
    const bool enough = free.size() >= count;
    EXPECT_EQ(table.Missing(free, count, rules).has_value(), enough) << where();
    return false;
  }
  EXPECT_EQ(found->set.bits(), expected->bits()) << where();
  EXPECT_EQ(found->quality, slow.Quality(*expected)) << where();
  EXPECT_TRUE(found->exact);
  EXPECT_EQ(table.Missing(free, count, rules), std::nullopt) << where();
  return true;
}

TEST(MachineTableProperty, EveryChoiceOnEveryCapturedMachineOfUpToEightGpus) {
  int found = 0;
  for (const std::string& name : CapturedNames()) {
    const auto machine = std::make_shared<const Machine>(CapturedMachine(name));
    if (machine->size() > 8) continue;
    SCOPED_TRACE(name);
    MachineTable table(machine);
    Slow slow(*machine);
    for (uint64_t bits = 1; bits <= machine->all().bits(); ++bits) {
      for (int count = 1; count <= GpuSet::Of(bits).size(); ++count) {
        for (const SetRules& rules : SomeRules()) {
          found += Compare(table, slow, GpuSet::Of(bits), count, rules) ? 1 : 0;
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(found, 60'000);
}

TEST(MachineTableProperty, EveryRingOnEveryCapturedMachineOfUpToEightGpus) {
  for (const std::string& name : CapturedNames()) {
    const Machine machine = CapturedMachine(name);
    if (machine.size() > 8) continue;
    const Slow slow(machine);
    for (uint64_t bits = 1; bits <= machine.all().bits(); ++bits) {
      const GpuSet set = GpuSet::Of(bits);
      if (set.size() < 2) continue;
      const Ring found = BestRing(machine, set);
      const Ring expected = slow.BestRingOf(set);
      ASSERT_EQ(found.weakest, expected.weakest) << name << " " << bits;
      ASSERT_EQ(found.links, expected.links) << name << " " << bits;
      ASSERT_EQ(found.order, expected.order) << name << " " << bits;
    }
  }
}

// A free set of 6 to 9 GPUs.
GpuSet DrawFree(std::mt19937_64& random, const Machine& machine) {
  GpuSet free = machine.all();
  const int left = 6 + static_cast<int>(random() % 4);
  while (free.size() > left) {
    const int gpu = static_cast<int>(random() % static_cast<uint64_t>(machine.size()));
    if (free.Has(gpu)) free.Remove(gpu);
  }
  return free;
}

void CompareDrawn(const Machine& machine, std::mt19937_64& random, int free_sets) {
  MachineTable table(std::make_shared<const Machine>(machine));
  Slow slow(machine);
  for (int i = 0; i < free_sets; ++i) {
    const GpuSet free = DrawFree(random, machine);
    for (int count = 1; count <= std::min(8, free.size()); ++count) {
      const SetRules& rules = SomeRules()[random() % SomeRules().size()];
      Compare(table, slow, free, count, rules);
      Compare(table, slow, free, count, {});
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(MachineTableProperty, DrawnFreeSetsOfCapturedMachinesOfSixteenGpus) {
  const Seeds seeds(4);
  for (const std::string& name : CapturedNames()) {
    const Machine machine = CapturedMachine(name);
    if (machine.size() <= 8) continue;
    ASSERT_EQ(machine.size(), 16) << name;
    for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      CompareDrawn(machine, random, 2);
    }
  }
}

// Links of few strengths, some machines dense and some sparse, NUMA nodes partly unknown.
Machine DrawMachine(std::mt19937_64& random) {
  constexpr std::size_t kGpus = 16;
  std::vector<MachineGpu> gpus(kGpus);
  for (MachineGpu& gpu : gpus) {
    if (random() % 8 != 0) gpu.numa = static_cast<int>(random() % 3);
  }
  const uint64_t density = 2 + random() % 7;
  std::vector<Link> links(kGpus * kGpus);
  for (std::size_t left = 0; left < kGpus; ++left) {
    for (std::size_t right = 0; right < left; ++right) {
      Link link = {static_cast<PathClass>(random() % 5), 0};
      if (random() % 10 < density) link.nvlinks = static_cast<uint8_t>(1 + random() % 3);
      links[left * kGpus + right] = links[right * kGpus + left] = link;
    }
  }
  std::vector<MachineNic> nics(2);
  for (MachineNic& nic : nics) {
    for (std::size_t gpu = 0; gpu < kGpus; ++gpu) {
      nic.paths.push_back(static_cast<PathClass>(random() % 5));
    }
  }
  nics.back().fabric = random() % 2 == 0;
  return Machine(std::move(gpus), std::move(links), std::move(nics));
}

TEST(MachineTableProperty, DrawnFreeSetsOfSixteenGpusLinkedAtRandom) {
  const Seeds seeds(8);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Machine machine = DrawMachine(random);
    CompareDrawn(machine, random, 3);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
