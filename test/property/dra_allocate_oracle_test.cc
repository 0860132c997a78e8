// The predicted first fit against a slow, obviously right search: every choice and every ascending
// set of devices for each request is written down in order, and the first one that holds as a whole
// is what the allocator picks. Small nodes with overlapping placements, shares and constraints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "scheduler/dra/allocate.h"
#include "scheduler/dra/charge.h"
#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

constexpr int kCases = 20'000;

struct Case {
  Slice slice;
  std::vector<Claim> holders;
  std::vector<Claim> claims;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int Below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  bool Chance(int percent) { return Below(100) < percent; }

 private:
  std::mt19937_64 random_;
};

std::string Letter(int i) { return std::string(1, static_cast<char>('a' + i)); }

Device RandomDevice(int index, Dice& dice) {
  Device device = MigDevice(fmt::format("d{}", index), Letter(dice.Below(2)), Letter(dice.Below(2)),
                            "NVIDIA X", 4);
  if (dice.Chance(25)) {
    device.shareable = true;
    device.capacities[0].policy =
        RequestPolicy{Mib(1 + dice.Below(4)), {}, RequestPolicy::Range{Mib(1), {}, Mib(1)}};
  }
  for (int counter = 0; dice.Chance(60) && counter < 3; ++counter) {
    if (device.consumes.empty()) device.consumes = {{"set", {}}};
    device.consumes[0].counters.push_back({Letter(counter), Quantity::Whole(1 + dice.Below(2))});
  }
  return device;
}

RequestChoice RandomChoice(Dice& dice) {
  RequestChoice choice = Choice("any", {}, 1 + dice.Below(2));
  if (dice.Chance(60)) {
    choice.selectors = {
        fmt::format("device.attributes['gpu.nvidia.com'].profile == '{}'", Letter(dice.Below(2)))};
  }
  if (dice.Chance(15)) choice.all = true;
  if (dice.Chance(20)) {
    choice.count = 1;
    choice.capacity = {{{"", "memory"}, Mib(1 + dice.Below(4))}};
  }
  return choice;
}

Claim RandomClaim(int index, Dice& dice) {
  Claim claim = ClaimOf(fmt::format("c{}", index), {});
  const int requests = 1 + dice.Below(2);
  for (int r = 0; r < requests; ++r) {
    Request request{Letter(r), {}};
    const int choices = dice.Chance(30) ? 2 : 1;
    for (int i = 0; i < choices; ++i) {
      request.choices.push_back(RandomChoice(dice));
      if (choices > 1) request.choices.back().name = fmt::format("s{}", i);
    }
    claim.requests.push_back(std::move(request));
  }
  if (dice.Chance(40)) {
    claim.constraints = {{{}, {std::string(kGpuDriver), "parentUUID"}, dice.Chance(50)}};
    if (dice.Chance(30)) claim.constraints[0].requests = {"a"};
  }
  return claim;
}

Case RandomCase(uint64_t seed) {
  Dice dice(seed);
  std::vector<Device> devices;
  const int count = 1 + dice.Below(5);
  for (int i = 0; i < count; ++i) devices.push_back(RandomDevice(i, dice));
  Case result;
  result.slice = NodeSlice("n1", std::move(devices));
  result.slice.counters = {{"set", {}}};
  for (int counter = 0; counter < 3; ++counter) {
    result.slice.counters[0].counters.push_back(
        {Letter(counter), Quantity::Whole(1 + dice.Below(4))});
  }
  for (const Device& device : result.slice.devices) {
    if (!dice.Chance(20)) continue;
    AllocatedDevice held = Held("r", "n1", device.name);
    held.shared = device.shareable;
    if (held.shared) held.consumed = {{device.capacities[0].name, Mib(1 + dice.Below(3))}};
    result.holders.push_back(Holding(ClaimOf("h" + device.name, {}), {held}));
  }
  const int claims = 1 + dice.Below(2);
  for (int i = 0; i < claims; ++i) result.claims.push_back(RandomClaim(i, dice));
  return result;
}

// One device for one request.
struct Pick {
  std::size_t claim = 0;
  std::size_t request = 0;
  std::size_t choice = 0;
  std::size_t device = 0;
};

class Oracle {
 public:
  explicit Oracle(const Case& scene) : scene_(scene) {}

  // The first assignment that holds; false: none does.
  bool Find() { return FromRequest(0, 0); }
  const std::vector<Pick>& picks() const { return picks_; }

 private:
  bool FromRequest(std::size_t claim, std::size_t request) {
    if (claim == scene_.claims.size()) return Holds();
    if (request == scene_.claims[claim].requests.size()) return FromRequest(claim + 1, 0);
    const Request& asked = scene_.claims[claim].requests[request];
    for (std::size_t i = 0; i < asked.choices.size(); ++i) {
      const RequestChoice& choice = asked.choices[i];
      std::size_t count = static_cast<std::size_t>(choice.count);
      if (choice.all) {
        count = 0;
        for (const Device& device : scene_.slice.devices) {
          const bool suits =
              Matches(choice, device) && Taken(choice, device) <= device.capacities[0].value;
          count += suits ? 1 : 0;
        }
        if (count == 0) continue;
      }
      if (Devices(claim, request, i, 0, count)) return true;
    }
    return false;
  }

  bool Devices(std::size_t claim, std::size_t request, std::size_t choice, std::size_t start,
               std::size_t left) {
    if (left == 0) return FromRequest(claim, request + 1);
    for (std::size_t device = start; device < scene_.slice.devices.size(); ++device) {
      picks_.push_back({claim, request, choice, device});
      if (Devices(claim, request, choice, device + 1, left - 1)) return true;
      picks_.pop_back();
    }
    return false;
  }

  static bool Matches(const RequestChoice& choice, const Device& device) {
    // The selectors of this test end in a letter and its closing quote.
    return choice.selectors.empty() ||
           GpuText(device, "profile") ==
               std::string(1, choice.selectors[0][choice.selectors[0].size() - 2]);
  }

  const RequestChoice& ChoiceOf(const Pick& pick) const {
    return scene_.claims[pick.claim].requests[pick.request].choices[pick.choice];
  }

  // What a pick takes of the device's memory.
  static Quantity Taken(const RequestChoice& choice, const Device& device) {
    if (!choice.capacity.empty()) return choice.capacity[0].amount;
    const Capacity& memory = device.capacities[0];
    return memory.policy ? *memory.policy->usual : memory.value;
  }

  bool Holds() const {
    std::vector<int> exclusive(scene_.slice.devices.size());
    std::vector<int> shares(scene_.slice.devices.size());
    std::vector<Quantity> memory(scene_.slice.devices.size());
    for (const Claim& holder : scene_.holders) {
      const AllocatedDevice& held = holder.allocation->devices[0];
      const auto index = static_cast<std::size_t>(held.id.device[1] - '0');
      (held.shared ? shares : exclusive)[index] += 1;
      if (held.shared) memory[index] = memory[index] + held.consumed[0].amount;
    }
    std::set<std::size_t> touched;
    for (const Pick& pick : picks_) {
      const Device& device = scene_.slice.devices[pick.device];
      const RequestChoice& choice = ChoiceOf(pick);
      if (!Matches(choice, device)) return false;
      const Quantity taken = Taken(choice, device);
      if (taken > device.capacities[0].value) return false;
      (device.shareable ? shares : exclusive)[pick.device] += 1;
      if (device.shareable) memory[pick.device] = memory[pick.device] + taken;
      touched.insert(pick.device);
    }
    for (const std::size_t index : touched) {
      if (exclusive[index] > 1) return false;
      if (memory[index] > scene_.slice.devices[index].capacities[0].value) return false;
    }
    return CountersHold(exclusive, shares, touched) && ConstraintsHold();
  }

  // Counters may be overdrawn by what others hold, as long as nothing new takes any.
  bool CountersHold(const std::vector<int>& exclusive, const std::vector<int>& shares,
                    const std::set<std::size_t>& touched) const {
    std::map<std::string, Quantity> used;
    bool takes = false;
    for (std::size_t index = 0; index < exclusive.size(); ++index) {
      if (exclusive[index] + shares[index] == 0) continue;
      for (const CounterSet& use : scene_.slice.devices[index].consumes) {
        for (const Counter& counter : use.counters) {
          used[counter.name] = used[counter.name] + counter.value;
          const bool was_held = std::ranges::any_of(scene_.holders, [&](const Claim& holder) {
            return holder.allocation->devices[0].id.device == fmt::format("d{}", index);
          });
          takes |= touched.contains(index) && !was_held;
        }
      }
    }
    return std::ranges::all_of(scene_.slice.counters[0].counters, [&](const Counter& counter) {
      return !takes || used[counter.name] <= counter.value;
    });
  }

  bool ConstraintsHold() const {
    for (std::size_t c = 0; c < scene_.claims.size(); ++c) {
      for (const Constraint& constraint : scene_.claims[c].constraints) {
        std::vector<std::string_view> values;
        for (const Pick& pick : picks_) {
          if (pick.claim != c) continue;
          const std::string& request = scene_.claims[c].requests[pick.request].name;
          if (!constraint.requests.empty() && constraint.requests[0] != request) continue;
          values.push_back(GpuText(scene_.slice.devices[pick.device], "parentUUID"));
        }
        const std::set<std::string_view> kinds(values.begin(), values.end());
        if (constraint.distinct ? kinds.size() != values.size() : kinds.size() > 1) return false;
      }
    }
    return true;
  }

  const Case& scene_;
  std::vector<Pick> picks_;
};

std::string TextOf(const Case& scene, const std::vector<Pick>& picks) {
  std::string text;
  for (const Pick& pick : picks) {
    const Request& request = scene.claims[pick.claim].requests[pick.request];
    const std::string& choice = request.choices[pick.choice].name;
    text += fmt::format("{}.{}{}{}={} ", pick.claim, request.name, choice.empty() ? "" : "/",
                        choice, scene.slice.devices[pick.device].name);
  }
  return text;
}

std::string TextOf(const Prediction& prediction) {
  std::string text;
  for (std::size_t c = 0; c < prediction.devices.size(); ++c) {
    for (const AllocatedDevice& device : prediction.devices[c]) {
      text += fmt::format("{}.{}={} ", c, device.request, device.id.device);
    }
  }
  return text;
}

Prediction Predicted(const Case& scene, Selectors& selectors) {
  std::vector<const Claim*> holders, claims;
  for (const Claim& claim : scene.holders) holders.push_back(&claim);
  for (const Claim& claim : scene.claims) claims.push_back(&claim);
  const Slice* slices[] = {&scene.slice};
  return Predict(BooksOf(PoolsOf(slices, {"n1"}), Occupancy(holders)), claims, selectors);
}

TEST(DraAllocateOracle, FindsTheFirstFit) {
  Selectors selectors(std::vector<DeviceClass>{ClassOf("any", {})});
  int fits = 0, misfits = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    const Case scene = RandomCase(seed);
    const Prediction prediction = Predicted(scene, selectors);
    // Several shares for one request, and "all" against a constraint, are not the oracle's.
    if (prediction.kind == Prediction::Kind::kUnknown) continue;
    if (prediction.kind == Prediction::Kind::kAborts) continue;
    Oracle oracle(scene);
    const bool found = oracle.Find();
    ASSERT_EQ(prediction.kind == Prediction::Kind::kFits, found)
        << "seed " << seed << ": " << prediction.why << " " << TextOf(scene, oracle.picks());
    if (!found) {
      ++misfits;
      continue;
    }
    ++fits;
    ASSERT_EQ(TextOf(prediction), TextOf(scene, oracle.picks())) << "seed " << seed;
  }
  EXPECT_GT(fits, kCases / 10);
  EXPECT_GT(misfits, kCases / 10);
}

// What is charged before allocation is never less than what is charged after it.
TEST(DraAllocateOracle, ChargeBeforeCoversChargeAfter) {
  Selectors selectors(std::vector<DeviceClass>{ClassOf("any", {})});
  for (uint64_t seed = 1; seed <= kCases / 4; ++seed) {
    const Case scene = RandomCase(seed);
    const Prediction prediction = Predicted(scene, selectors);
    if (prediction.kind != Prediction::Kind::kFits) continue;
    const Slice* slices[] = {&scene.slice};
    const NodeBooks books = BooksOf(PoolsOf(slices, {"n1"}), Occupancy());
    for (std::size_t c = 0; c < scene.claims.size(); ++c) {
      const std::vector<ModelCharge> most = ChargeAtMost(scene.claims[c], books, selectors);
      const std::vector<ModelCharge> real =
          ChargeOfAllocation(Holding(scene.claims[c], prediction.devices[c]), DeviceTable(slices));
      ASSERT_EQ(most.size(), 1U) << "seed " << seed;
      ASSERT_EQ(real.size(), 1U) << "seed " << seed;
      EXPECT_GE(most[0].charge.compute, real[0].charge.compute) << "seed " << seed;
      EXPECT_GE(most[0].charge.memory, real[0].charge.memory) << "seed " << seed;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
