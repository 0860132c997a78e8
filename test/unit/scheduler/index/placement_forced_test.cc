// Pods whose devices are unknown and for which there is no room by the books.
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

// That many containers, each of which asks for that many GPUs.
PodRequest Containers(int containers, int64_t gpus) {
  PodRequest request = test::WholePod("many", gpus);
  const Ask ask = request.asks.front();
  request.containers.clear();
  request.asks.clear();
  for (int i = 0; i < containers; ++i) {
    request.containers.push_back({"c" + std::to_string(i), ContainerRole::kApp, 0});
    request.asks.push_back(ask);
    request.asks.back().container = i;
  }
  return request;
}

Picks Forced(const NodeFacts& node, const PodRequest& request) {
  const Inventory inventory = BuildInventory(node, 0, nullptr);
  Load load;
  load.Reset(inventory);
  Placer placer;
  Picks picks;
  placer.Force(inventory, load, request, picks);
  return picks;
}

int64_t OnCard(const Picks& picks, int card) {
  return std::ranges::count(picks, card, &Pick::card);
}

TEST(PlacementForcedTest, AllOfItAndOneMoreSaysAllThatCanBeSaid) {
  const NodeFacts node = test::StockNode("n", 8);
  const struct {
    const char* what;
    int containers;
    int64_t gpus;
    std::size_t picks;
  } cases[] = {
      {"one more than there are", 1, 9, 9},
      {"far more in one container", 1, 64, 9},
      {"a few more each", 3, 4, 9},
      {"four hundred containers of 64", 400, 64, 9},
  };
  for (const auto& row : cases) {
    const Picks picks = Forced(node, Containers(row.containers, row.gpus));
    EXPECT_EQ(picks.size(), row.picks) << row.what;
    for (int card = 0; card < 8; ++card) EXPECT_GE(OnCard(picks, card), 1) << row.what;
  }
}

TEST(PlacementForcedTest, SmallSharesAllCountUntilTheirCardsAreFull) {
  const NodeFacts node = test::HamiNode("n", 2, 100);
  PodRequest request = test::FractionPod("shares", 100);
  request.asks.front().count = 64;
  const Picks picks = Forced(node, request);
  EXPECT_EQ(picks.size(), 21U) << "ten tenths a card, and one over";
}

}  // namespace THIS_FILE
}  // namespace tranche
