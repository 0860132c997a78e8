// The world with an extender that says yes to everything: it must live, and the same seed must give
// the same run.
#include "test/sim/world/world.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "test/sim/world/toy_extender.h"

namespace tranche::sim {
namespace THIS_FILE {

using std::chrono::seconds;

struct Life {
  explicit Life(uint64_t seed, const char* faults, int64_t lives)
      : loop(seed),
        history(loop),
        script(seed),
        plan(Plan(seed, faults)),
        world(Made(lives, seed)) {
    history.Listen([this](const Happening& happening) {
      ++counts[std::string(NameOf(happening.kind)) + " " + happening.resource];
    });
  }

  static FaultPlan Plan(uint64_t seed, const char* faults) {
    Draws draws(seed);
    std::string problem;
    return DrawFaults(draws, faults, problem);
  }
  WorldOptions Options(int64_t lives, uint64_t seed) const {
    WorldOptions options;
    options.seed = seed;
    options.lives = lives;
    return options;
  }
  World Made(int64_t lives, uint64_t seed) {
    return World(loop, history, script, plan, Options(lives, seed));
  }

  // Until all pods came, then quiet for ten minutes. False: somebody turns in circles.
  bool Live() {
    ToyExtender extender(loop, world.api());
    world.Start(extender);
    for (int i = 0; i < 3'600 && !world.arrived(); ++i) {
      if (!loop.RunUntil(loop.now() + seconds(1), 200'000)) return false;
    }
    world.Quiet();
    return loop.RunUntil(loop.now() + seconds(600), 5'000'000);
  }

  Loop loop;
  History history;
  Script script;
  FaultPlan plan;
  std::map<std::string, int64_t> counts;
  World world;
};

TEST(WorldTest, PodsAreMadeBoundRunAndEnd) {
  int64_t granted = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Life run(seed, "none", 60);
    ASSERT_TRUE(run.Live()) << seed;
    EXPECT_GE(run.world.lives(), 60) << seed;
    EXPECT_GT(run.counts["asked pods"], 0) << seed;
    EXPECT_EQ(run.counts["granted pods"], run.counts["released pods"]) << seed;
    granted += run.counts["granted pods"];
  }
  EXPECT_GT(granted, 100);
}

TEST(WorldTest, PodsOfStatefulSetsComeAgainByTheirNames) {
  int64_t again = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Life run(seed, "none", 60);
    std::set<std::string> removed;
    run.history.Listen([&](const Happening& happening) {
      if (happening.kind != Happening::Kind::kWritten || happening.resource != "pods") return;
      if (happening.after.is_null()) removed.insert(happening.key);
      again += happening.before.is_null() && removed.contains(happening.key) ? 1 : 0;
    });
    ASSERT_TRUE(run.Live()) << seed;
  }
  EXPECT_GT(again, 0);
}

TEST(WorldTest, ClaimsAreAllocatedUsedAndGivenBack) {
  int64_t granted = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Life run(seed, "none", 40);
    ASSERT_TRUE(run.Live()) << seed;
    EXPECT_EQ(run.counts["granted resourceclaims"], run.counts["released resourceclaims"]) << seed;
    granted += run.counts["granted resourceclaims"];
    for (const auto& [key, claim] : run.world.store().All("resourceclaims")) {
      const Json status = claim->object().value("status", Json::object());
      EXPECT_FALSE(status.contains("reservedFor") && !status.at("reservedFor").empty()) << key;
    }
  }
  EXPECT_GT(granted, 5);
}

TEST(WorldTest, SomeWorldsHaveHabitsOfTheirOwn) {
  std::set<std::string> acts;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Life run(seed, "apiserver,users,trial", 30);
    ASSERT_TRUE(run.Live()) << seed;
    for (const Script::Id& id : run.script.done()) acts.insert(id.substr(0, id.find('#')));
  }
  for (const char* const act : {"restart", "policy-hangs", "shrink", "notice"}) {
    EXPECT_TRUE(acts.contains(act)) << act;
  }
}

TEST(WorldTest, OneSeedIsOneRun) {
  for (const char* faults : {"none", "all"}) {
    Life one(7, faults, 40);
    Life other(7, faults, 40);
    Life third(8, faults, 40);
    ASSERT_TRUE(one.Live());
    ASSERT_TRUE(other.Live());
    ASSERT_TRUE(third.Live());
    EXPECT_EQ(one.history.digest(), other.history.digest()) << faults;
    EXPECT_NE(one.history.digest(), third.history.digest()) << faults;
  }
}

TEST(WorldTest, LivesWithEveryFault) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Life run(seed, "network,apiserver,scheduler,agent,users,nodes,strangers", 40);
    ASSERT_TRUE(run.Live()) << seed;
    EXPECT_GE(run.world.lives(), 40) << seed;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
