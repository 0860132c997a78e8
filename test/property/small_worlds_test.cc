// Every small world: clusters of up to four GPUs, four pods of three sizes in every order.
//
// The engine places one pod after the other by its real verbs; after each step its answer is held
// against a count that is obviously right: a node fits exactly if it has room in what the engine
// itself gave out so far. Then every single pod is taken away, each size is asked for again, and
// at the end the engine is as new. Nothing is random here, so there is no seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/engine/engine.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;

constexpr int kMostGpus = 4;
constexpr int kMostPods = 4;
constexpr std::size_t kSizes = 3;

// One way to cut and to ask for GPUs.
struct Fleet {
  std::string name;
  std::function<NodeFacts(const std::string& node, int gpus)> node;
  std::function<PodRequest(const std::string& pod, std::size_t size)> pod;
  // Does the size fit on what is left of a node, given how much of each of its GPUs is taken?
  std::function<bool(const std::vector<Allocation>& held, int gpus, std::size_t size)> fits;
};

std::vector<const Device*> DevicesOf(const std::vector<Allocation>& held) {
  std::vector<const Device*> devices;
  for (const Allocation& allocation : held) {
    for (const ContainerDevices& container : allocation.containers) {
      for (const Device& device : container.devices) devices.push_back(&device);
    }
  }
  return devices;
}

// Thousandths of compute taken, by GPU of the node.
std::vector<int64_t> MilliOf(const std::vector<Allocation>& held, int gpus) {
  std::vector<int64_t> milli(static_cast<std::size_t>(gpus));
  for (const Device* device : DevicesOf(held)) {
    milli.at(static_cast<std::size_t>(device->card)) += device->milli.count();
  }
  return milli;
}

constexpr std::array<int64_t, kSizes> kShares = {250, 500, 1000};

bool ShareFits(const std::vector<Allocation>& held, int gpus, std::size_t size) {
  return std::ranges::any_of(MilliOf(held, gpus),
                             [size](int64_t taken) { return taken + kShares[size] <= 1000; });
}

Fleet Fractions() {
  return {"fractions of GPUs that nothing divides",
          [](const std::string& node, int gpus) { return test::StockNode(node, gpus); },
          [](const std::string& pod, std::size_t size) {
            return test::FractionPod(pod, kShares[size]);
          },
          ShareFits};
}

Fleet AgentShares() {
  return {"shares of GPUs that HAMi divides",
          [](const std::string& node, int gpus) { return test::HamiNode(node, gpus); },
          [](const std::string& pod, std::size_t size) {
            return test::HamiPod(pod, 1, 15'109 * kShares[size] / 1000, kShares[size] / 10);
          },
          ShareFits};
}

Fleet WholeGpus() {
  constexpr std::array<int, kSizes> kCounts = {1, 2, 4};
  return {
      "whole GPUs", [](const std::string& node, int gpus) { return test::StockNode(node, gpus); },
      [=](const std::string& pod, std::size_t size) { return test::WholePod(pod, kCounts[size]); },
      [=](const std::vector<Allocation>& held, int gpus, std::size_t size) {
        return static_cast<int>(DevicesOf(held).size()) + kCounts[size] <= gpus;
      }};
}

// Every GPU is cut into one 3g, one 2g and two 1g.
Fleet Slices() {
  constexpr std::array<const char*, kSizes> kProfiles = {"1g.10gb", "2g.20gb", "3g.40gb"};
  constexpr std::array<int, kSizes> kEach = {2, 1, 1};
  return {"MIG slices",
          [=](const std::string& node, int gpus) {
            std::vector<test::MigCount> counts;
            for (std::size_t i = 0; i < kSizes; ++i) {
              counts.push_back({kProfiles[i], int64_t{kEach[i]} * gpus});
            }
            return test::MigNode(node, gpus, 0, counts);
          },
          [=](const std::string& pod, std::size_t size) {
            return test::MigPod(pod, kProfiles[size], 1);
          },
          [=](const std::vector<Allocation>& held, int gpus, std::size_t size) {
            const auto taken = std::ranges::count_if(DevicesOf(held), [&](const Device* d) {
              return d->mig->profile == kProfiles[size];
            });
            return taken < kEach[size] * gpus;
          }};
}

// All ways to spread 1 to kMostGpus GPUs over nodes in a row.
std::vector<std::vector<int>> Clusters() {
  std::vector<std::vector<int>> clusters;
  std::vector<int> nodes;
  const std::function<void(int)> extend = [&](int left) {
    if (!nodes.empty()) clusters.push_back(nodes);
    for (int gpus = 1; gpus <= left; ++gpus) {
      nodes.push_back(gpus);
      extend(left - gpus);
      nodes.pop_back();
    }
  };
  extend(kMostGpus);
  return clusters;
}

class World {
 public:
  World(const Fleet& fleet, const std::vector<int>& gpus) : fleet_(fleet), gpus_(gpus) {
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    test::SetPolicy(engine_, policy);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      names_.push_back(fmt::format("n{}", i));
      engine_.UpsertNode(fleet.node(names_[i], gpus[i]), now_);
    }
    candidates_.assign(names_.begin(), names_.end());
    empty_ = engine_.Digest();
  }

  // Is the pod placed where there is room, and refused where there is none?
  void Place(const std::string& name, std::size_t size) {
    const PodRequest request = fleet_.pod(name, size);
    engine_.UpsertPod(test::Pending(request), now_);
    const std::set<std::size_t> room = RoomFor(size);
    const std::vector<std::size_t> chosen = Ask(request);
    ASSERT_EQ(std::set<std::size_t>(chosen.begin(), chosen.end()), room) << name;
    if (chosen.empty()) return;
    const NodeName node(names_[chosen.front()]);
    const BindPlan plan = engine_.Bind(request.name, request.uid, node, now_);
    ASSERT_EQ(plan.kind, BindPlan::Kind::kWrite) << name << ": " << plan.detail;
    engine_.SettleBind(request.uid, node, BindOutcome::kBound, now_);
    engine_.UpsertPod(test::Bound(request, node.str(), plan.allocation), now_);
    held_[name] = {chosen.front(), plan.allocation};
    ExpectSound();
  }

  void Delete(const std::string& name) {
    engine_.DeletePod(PodUid("uid-" + name), now_);
    held_.erase(name);
    ExpectSound();
  }

  // Would a pod of each size be answered rightly now?
  void AskEachSize() {
    for (std::size_t size = 0; size < kSizes; ++size) {
      const PodRequest request = fleet_.pod(fmt::format("asked-{}", asked_++), size);
      const std::vector<std::size_t> chosen = Ask(request);
      EXPECT_EQ(std::set<std::size_t>(chosen.begin(), chosen.end()), RoomFor(size)) << size;
      engine_.DeletePod(request.uid, now_);
    }
  }

  void ExpectAsNew() { EXPECT_EQ(engine_.Digest(), empty_); }

 private:
  struct Held {
    std::size_t node = 0;
    Allocation allocation;
  };

  std::vector<Allocation> HeldOn(std::size_t node) const {
    std::vector<Allocation> held;
    for (const auto& [name, pod] : held_) {
      if (pod.node == node) held.push_back(pod.allocation);
    }
    return held;
  }
  std::set<std::size_t> RoomFor(std::size_t size) const {
    std::set<std::size_t> room;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (fleet_.fits(HeldOn(i), gpus_[i], size)) room.insert(i);
    }
    return room;
  }
  // Positions of the nodes that filter names, the best first.
  std::vector<std::size_t> Ask(const PodRequest& request) {
    engine_.Filter(request, candidates_, now_, answer_);
    EXPECT_EQ(answer_.chosen.size() + answer_.refused.size(), gpus_.size());
    return {answer_.chosen.begin(), answer_.chosen.end()};
  }
  // The engine's own books hold, and no GPU and no slice is given out twice.
  void ExpectSound() const {
    EXPECT_EQ(engine_.Audit(), std::vector<std::string>());
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const std::vector<Allocation> held = HeldOn(i);
      std::set<std::array<int, 2>> slices;
      for (const Device* device : DevicesOf(held)) {
        if (!device->mig) continue;
        for (int unit = device->mig->start; unit < device->mig->start + device->mig->size; ++unit) {
          EXPECT_TRUE(slices.insert({device->card, unit}).second);
        }
      }
      for (const int64_t milli : MilliOf(held, gpus_[i])) EXPECT_LE(milli, 1000);
    }
  }

  const Fleet& fleet_;
  const std::vector<int>& gpus_;
  const Instant now_ = At(0);
  Engine engine_{EngineOptions()};
  std::vector<std::string> names_;
  std::vector<std::string_view> candidates_;
  FilterAnswer answer_;
  std::map<std::string, Held> held_;
  int asked_ = 0;
  std::string empty_;
};

std::string PodNumber(int pod) { return fmt::format("p{}", pod); }

// One cluster and one order of sizes: all arrive, one leaves, the others leave after it.
void Live(const Fleet& fleet, const std::vector<int>& gpus, const std::vector<std::size_t>& sizes,
          int first_to_leave) {
  World world(fleet, gpus);
  for (int pod = 0; pod < kMostPods; ++pod) {
    ASSERT_NO_FATAL_FAILURE(world.Place(PodNumber(pod), sizes[static_cast<std::size_t>(pod)]));
  }
  world.Delete(PodNumber(first_to_leave));
  world.AskEachSize();
  for (int pod = 0; pod < kMostPods; ++pod) {
    if (pod != first_to_leave) world.Delete(PodNumber(pod));
  }
  world.AskEachSize();
  world.ExpectAsNew();
}

TEST(SmallWorlds, EveryAnswerIsThatOfACount) {
  int64_t worlds = 0;
  const std::vector<std::vector<int>> clusters = Clusters();
  ASSERT_EQ(clusters.size(), 15U);
  for (const Fleet& fleet : {Fractions(), AgentShares(), WholeGpus(), Slices()}) {
    for (const std::vector<int>& gpus : clusters) {
      for (std::size_t order = 0; order < kSizes * kSizes * kSizes * kSizes; ++order) {
        std::vector<std::size_t> sizes;
        for (std::size_t rest = order; sizes.size() < kMostPods; rest /= kSizes) {
          sizes.push_back(rest % kSizes);
        }
        for (int leaver = 0; leaver < kMostPods; ++leaver) {
          SCOPED_TRACE(fmt::format("{}, nodes of {} GPUs, sizes {}, pod {} leaves first",
                                   fleet.name, fmt::join(gpus, "+"), fmt::join(sizes, ","),
                                   leaver));
          Live(fleet, gpus, sizes, leaver);
          if (testing::Test::HasFailure()) return;
          ++worlds;
        }
      }
    }
  }
  std::cout << worlds << " worlds\n";
}

}  // namespace THIS_FILE
}  // namespace tranche
