// Gang plans against trying everything, on small random clusters: whether there is one, how narrow
// the domain can be, and how few domains of the level below it takes. One printed seed replays:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='GangPlanOracle*'
#include "scheduler/gangs/gang_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "test/unit/scheduler/gangs/gpu_room.h"

namespace tranche {
namespace THIS_FILE {

using Domains = std::array<int, kGangLevels>;
constexpr Domains kNowhere = {kNoDomain, kNoDomain, kNoDomain, kNoDomain};
constexpr int kCluster = kGangLevels;  // as a level: all nodes

struct Scene {
  GangQuestion question;
  std::vector<int> free;  // GPUs, by node
  std::vector<int> asks;  // by kind
};

// Where nodes of one group lie: the domain of the level or, where none is known, of the next
// narrower one that is; else the node itself.
std::pair<int, int> PlaceAt(const Scene& scene, std::size_t node, int level) {
  if (level == kCluster) return {level, 0};
  for (; level >= 0; --level) {
    const int domain = scene.question.nodes[node].domain[static_cast<std::size_t>(level)];
    if (domain != kNoDomain) return {level, domain};
  }
  return {-1, static_cast<int>(node)};
}

std::set<std::pair<int, int>> PlacesAt(const Scene& scene, const std::vector<std::size_t>& nodes,
                                       int level) {
  std::set<std::pair<int, int>> places;
  for (const std::size_t node : nodes) places.insert(PlaceAt(scene, node, level));
  return places;
}

// Whether all these nodes lie in one domain of the level, one the gang may be in as a whole.
bool IsHome(const Scene& scene, const std::vector<std::size_t>& nodes, int level) {
  if (level == kCluster) return true;
  const auto places = PlacesAt(scene, nodes, level);
  if (places.size() != 1 || places.begin()->first != level) return false;
  const Domains& settled = scene.question.settled;
  if (settled == kNowhere) return true;
  const int known = settled[static_cast<std::size_t>(level)];
  if (known != kNoDomain) return places.begin()->second == known;
  // Those that run are in several domains of this level if they are in one of a wider level.
  return std::all_of(settled.begin() + level, settled.end(), [](int d) { return d == kNoDomain; });
}

// What the best of all placements reach: by level and number of a domain that holds all of the
// gang, the fewest domains of the level below.
class Oracle {
 public:
  explicit Oracle(const Scene& scene) : scene_(scene), left_(scene.free) { Try(0, 0); }

  std::optional<int> narrowest() const {
    return fewest_below_.empty() ? std::nullopt : std::optional(fewest_below_.begin()->first.first);
  }
  std::size_t FewestBelow(std::pair<int, int> home) const { return fewest_below_.at(home); }
  std::size_t FewestBelow(int level) const {
    std::size_t fewest = left_.size();
    for (const auto& [home, below] : fewest_below_) {
      if (home.first == level) fewest = std::min(fewest, below);
    }
    return fewest;
  }

 private:
  void Try(std::size_t member, std::size_t from) {
    const auto& members = scene_.question.members;
    if (member == members.size()) return Note();
    const int ask = scene_.asks[static_cast<std::size_t>(members[member].kind)];
    for (std::size_t node = from; node < left_.size(); ++node) {
      if (left_[node] < ask) continue;
      left_[node] -= ask;
      nodes_.push_back(node);
      // Equal members in a row are interchangeable.
      const bool same =
          member + 1 < members.size() && members[member + 1].kind == members[member].kind;
      Try(member + 1, same ? node : 0);
      nodes_.pop_back();
      left_[node] += ask;
    }
  }

  void Note() {
    for (int level = 0; level <= kCluster; ++level) {
      if (!IsHome(scene_, nodes_, level)) continue;
      const std::size_t below = PlacesAt(scene_, nodes_, level - 1).size();
      const auto home = PlaceAt(scene_, nodes_.front(), level);
      const auto [at, fresh] = fewest_below_.try_emplace(home, below);
      if (!fresh) at->second = std::min(at->second, below);
    }
  }

  const Scene& scene_;
  std::vector<int> left_;
  std::vector<std::size_t> nodes_;
  std::map<std::pair<int, int>, std::size_t> fewest_below_;
};

class GangPlanOracle : public testing::Test {
 protected:
  GangPlanOracle() {
    if (const char* text = std::getenv("TRANCHE_SEED")) seed_ = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TRANCHE_STEPS")) steps_ = std::atoi(text);
    std::cout << "TRANCHE_SEED=" << seed_ << " TRANCHE_STEPS=" << steps_ << "\n";
    random_.seed(seed_);
  }

  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }

  // How nodes are labelled: as a building is laid out, so with some labels missing, or at random.
  enum class Layout { kNested, kGaps, kRandom };

  void Label(Scene& scene, std::size_t nodes, Layout layout) {
    const int fanout = 1 + Below(3);
    const bool nested = layout != Layout::kRandom;
    for (std::size_t i = 0; i < nodes; ++i) {
      GangNode node{.domain = {}, .cost = Below(3)};
      int domain = static_cast<int>(i);
      for (int& at : node.domain) {
        domain = nested ? domain / (1 + fanout) : Below(3);
        at = layout == Layout::kGaps && Below(4) == 0 ? kNoDomain : domain;
      }
      scene.question.nodes.push_back(node);
      scene.free.push_back(Below(9));
    }
    if (nested) std::shuffle(scene.question.nodes.begin(), scene.question.nodes.end(), random_);
  }

  Scene SomeScene(int kinds, Layout layout) {
    Scene scene;
    Label(scene, static_cast<std::size_t>(1 + Below(8)), layout);
    scene.question.kinds = kinds;
    for (int kind = 0; kind < kinds; ++kind) scene.asks.push_back(1 << Below(4));
    const int members = 1 + Below(5);
    for (int i = 0; i < members; ++i) {
      scene.question.members.push_back({.kind = Below(kinds), .rank = Below(6) - 1});
    }
    std::stable_sort(scene.question.members.begin(), scene.question.members.end(),
                     [](const GangMember& a, const GangMember& b) { return a.kind < b.kind; });
    if (Below(2) == 0) scene.question.within = static_cast<GangLevel>(Below(kGangLevels));
    return scene;
  }

  Scene SomeScene(int kinds) { return SomeScene(kinds, static_cast<Layout>(Below(3))); }

  void Settle(Scene& scene) {
    const auto& nodes = scene.question.nodes;
    scene.question.settled =
        nodes[static_cast<std::size_t>(Below(static_cast<int>(nodes.size())))].domain;
    const int several = Below(kGangLevels + 1);  // they run in several domains of these levels
    std::fill_n(scene.question.settled.begin(), several, kNoDomain);
  }

  // What must hold of a plan; nullopt where there is none.
  std::optional<GangPlan> Check(const Scene& scene) {
    test::GpuRoom room(scene.free, scene.asks);
    const std::optional<GangPlan> plan = PlanGang(scene.question, room);
    const Oracle oracle(scene);
    const int widest = scene.question.within ? static_cast<int>(*scene.question.within) : kCluster;
    const bool exists = oracle.narrowest() && *oracle.narrowest() <= widest;
    EXPECT_EQ(plan.has_value(), exists);
    if (!plan || !exists) return std::nullopt;
    std::vector<int> left = scene.free;
    for (std::size_t i = 0; i < plan->node_of.size(); ++i) {
      const int kind = scene.question.members[i].kind;
      left[plan->node_of[i]] -= scene.asks[static_cast<std::size_t>(kind)];
    }
    EXPECT_EQ(room.left(), left);
    EXPECT_GE(*std::min_element(left.begin(), left.end()), 0);
    const int narrowest = *oracle.narrowest();
    EXPECT_TRUE(IsHome(scene, plan->node_of, narrowest)) << "level " << narrowest;
    for (int level = 0; level < kGangLevels; ++level) {
      EXPECT_EQ(static_cast<std::size_t>(plan->spans[static_cast<std::size_t>(level)]),
                PlacesAt(scene, plan->node_of, level).size());
    }
    if (scene.question.kinds == 1 && scene.question.settled == kNowhere) {
      const std::size_t below = PlacesAt(scene, plan->node_of, narrowest - 1).size();
      EXPECT_EQ(below, oracle.FewestBelow(PlaceAt(scene, plan->node_of.front(), narrowest)));
      // Nodes of one clique are alike; there the clique that is filled most exactly goes first.
      if (narrowest > 0) {
        EXPECT_EQ(below, oracle.FewestBelow(narrowest));
      }
    }
    return plan;
  }

  uint64_t seed_ = 1;
  int steps_ = 20'000;
  std::mt19937_64 random_;
};

TEST_F(GangPlanOracle, EqualMembersAreAllPlacedIfTheyCanBeAsNarrowlyAsTheyCanBe) {
  int plans = 0;
  int across = 0;
  for (int step = 0; step < steps_ && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    const auto plan = Check(SomeScene(1));
    plans += plan.has_value();
    across += plan && plan->node_of.front() != plan->node_of.back();
  }
  EXPECT_GT(plans, steps_ / 4);
  EXPECT_GT(across, steps_ / 10);
}

TEST_F(GangPlanOracle, ThoseThatComeLaterJoinTheOthersOrStayOutWhereALevelIsRequired) {
  int plans = 0;
  for (int step = 0; step < steps_ && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    Scene scene = SomeScene(1);
    Settle(scene);
    plans += Check(scene).has_value();
  }
  EXPECT_GT(plans, steps_ / 8);
}

// Of sizes that divide each other, the largest first leaves as many places for the others however
// it is laid; so the plan is exact for several kinds, too.
TEST_F(GangPlanOracle, KindsWhoseSizesDivideEachOtherAreAllPlacedIfTheyCanBe) {
  int mixed = 0;
  for (int step = 0; step < steps_ && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    const Scene scene = SomeScene(2 + Below(2));
    const auto plan = Check(scene);
    mixed += plan && scene.question.members.front().kind != scene.question.members.back().kind;
  }
  EXPECT_GT(mixed, steps_ / 8);
}

// In nested domains, the ranks of every domain follow each other.
TEST_F(GangPlanOracle, MembersOfADomainAreNeighboursByRank) {
  for (int step = 0; step < steps_ && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    Scene scene = SomeScene(1, Layout::kNested);
    for (std::size_t i = 0; i < scene.question.members.size(); ++i) {
      scene.question.members[i].rank = static_cast<int>(i);
    }
    test::GpuRoom room(scene.free, scene.asks);
    const std::optional<GangPlan> plan = PlanGang(scene.question, room);
    if (!plan) continue;
    for (int level = -1; level < kGangLevels; ++level) {
      std::size_t changes = 1;
      for (std::size_t i = 1; i < plan->node_of.size(); ++i) {
        changes +=
            PlaceAt(scene, plan->node_of[i], level) != PlaceAt(scene, plan->node_of[i - 1], level);
      }
      const std::size_t places = PlacesAt(scene, plan->node_of, level).size();
      EXPECT_EQ(changes, places) << "level " << level;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
