#include "scheduler/index/load.h"

#include <gtest/gtest.h>

namespace tranche {
namespace {

// One card of 10,000 MiB that two containers may use.
Inventory OneCard() {
  Inventory inventory;
  Card card;
  card.memory = Mebibytes::Of(10'000);
  card.slots = 2;
  inventory.cards.push_back(card);
  return inventory;
}

CardUse Share(int64_t milli, int64_t mib) {
  CardUse use;
  use.milli = MilliGpu::Of(milli);
  use.memory = Mebibytes::Of(mib);
  use.slots = 1;
  return use;
}

CardUse Whole() {
  CardUse use = Share(1'000, 10'000);
  use.exclusive = 1;
  return use;
}

TEST(HasRoomFor, JustTheseDevices) {
  const struct {
    const char* what;
    std::vector<CardUse> before;
    CardUse use;
    bool fits;
  } rows[] = {
      {"a card nobody uses", {}, Whole(), true},
      {"half beside half", {Share(500, 5'000)}, Share(500, 5'000), true},
      {"more than is left of its time", {Share(600, 1'000)}, Share(500, 1'000), false},
      {"more than is left of its memory", {Share(100, 6'000)}, Share(100, 5'000), false},
      {"a share on a card that is somebody's", {Whole()}, Share(0, 0), false},
      {"the whole of a card that is shared", {Share(0, 1'000)}, Whole(), false},
      {"one container too many", {Share(0, 1), Share(0, 1)}, Share(0, 1), false},
  };
  const Inventory inventory = OneCard();
  for (const auto& row : rows) {
    Load load;
    load.Reset(inventory);
    for (const CardUse& use : row.before) AddUse(load, {{use}, {}});
    EXPECT_EQ(HasRoomFor(inventory, load, {{row.use}, {}}), row.fits) << row.what;
  }
}

TEST(HasRoomFor, NotOnACardThatIsClosed) {
  for (const bool healthy : {true, false}) {
    Inventory inventory = OneCard();
    inventory.cards[0].healthy = healthy;
    Load load;
    load.Reset(inventory);
    EXPECT_EQ(HasRoomFor(inventory, load, {{Share(1, 1)}, {}}), healthy);
  }
}

}  // namespace
}  // namespace tranche
