// Which work of a team that borrows R1 may choose, as the checker of evictions judges it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "test/sim/check/scene.h"

namespace tranche::sim {
namespace {

void TwoTeams(Scene& scene) {
  scene.StockNode("n1", 8).Quota("org", "", 0).Quota("red", "org", 2, 1).Quota("blue", "org", 2);
  scene.Namespace("red", "red").Namespace("blue", "blue");
  scene.Class("low", 1, "Always").Class("high", 3, "Always");
}

// Without red/one its two of a lower class are in quota. With what comes of a higher class they are
// not, as soon as that was let in, and it is bound later.
TEST(SimEvictions, WhatIsLetInAfterwardsFilledNoQuotaBefore) {
  for (const int let_in : {101, 95}) {
    Scene scene({.lag = std::chrono::seconds(2)});
    TwoTeams(scene);
    scene.Pod("red/one", 1).Pod("red/two", 2).Pod("red/late", 1).Pod("blue/wants", 2);
    scene.Edit("pods", "red/one", "/spec/priorityClassName", "high");
    scene.Edit("pods", "red/two", "/spec/priorityClassName", "low");
    scene.Edit("pods", "red/late", "/spec/priorityClassName", "high");
    scene.At(10).Bind("red/one", "n1", Cards(0, 1), "red");
    scene.At(20).Bind("red/two", "n1", Cards(1, 2), "red");
    const auto let = [&] {
      scene.At(let_in).Say({.kind = Happening::Kind::kAsked,
                            .key = "red/late",
                            .text = "filter",
                            .after = Json::object()});
    };
    if (let_in < 100) let();
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/one"}).Evict("red/one");
    if (let_in > 100) let();
    scene.At(103).Bind("red/late", "n1", Cards(3, 1), "red");
    EXPECT_EQ(scene.Found().contains("evictions"), let_in < 100) << scene.Texts();
  }
}

// Once red/leaves is gone red/two fills the nominal, if red/one goes as well. As long as it stays
// red/one is in quota, and red/two is not without it.
TEST(SimEvictions, WhatLeavesIsCountedOrNot) {
  for (const bool leaves : {true, false}) {
    Scene scene({.lag = std::chrono::seconds(2)});
    TwoTeams(scene);
    scene.Pod("red/leaves", 1).Pod("red/one", 1).Pod("red/two", 2).Pod("blue/wants", 2);
    scene.Edit("pods", "red/two", "/spec/priorityClassName", "low");
    scene.At(10).Bind("red/leaves", "n1", Cards(0, 1), "red");
    scene.At(20).Bind("red/one", "n1", Cards(1, 1), "red");
    scene.At(30).Bind("red/two", "n1", Cards(2, 2), "red");
    if (leaves) scene.At(50).Evict("red/leaves", "user");
    scene.At(100).Reclaim("r1", "R1", "blue", "blue/wants", "n1", {"red/one"}).Evict("red/one");
    EXPECT_EQ(scene.Found().contains("evictions"), !leaves) << scene.Texts();
  }
}

}  // namespace
}  // namespace tranche::sim
