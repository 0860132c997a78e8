#include "scheduler/index/load.h"

#include <gtest/gtest.h>

#include "test/builders/cluster.h"
#include "topology/mig.h"

namespace tranche {
namespace THIS_FILE {

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
  struct Row {
    bool healthy, cordoned, fits;
  };
  for (const Row& row :
       {Row{true, false, true}, Row{false, false, false}, Row{true, true, false}}) {
    Inventory inventory = OneCard();
    inventory.cards[0].healthy = row.healthy;
    inventory.cards[0].cordoned = row.cordoned;
    Load load;
    load.Reset(inventory);
    EXPECT_EQ(HasRoomFor(inventory, load, {{Share(1, 1)}, {}}), row.fits);
  }
}

TEST(HasRoomFor, MemoryAndUsersOfACardThatDeclaresNeitherHaveNoBound) {
  Inventory inventory = OneCard();
  inventory.cards[0].memory = Mebibytes::Zero();
  inventory.cards[0].slots = 0;
  Load load;
  load.Reset(inventory);
  for (int i = 0; i < 3; ++i) AddUse(load, {{Share(100, 90'000)}, {}});
  EXPECT_TRUE(HasRoomFor(inventory, load, {{Share(700, 90'000)}, {}}));
  EXPECT_FALSE(HasRoomFor(inventory, load, {{Share(701, 0)}, {}})) << "its time has";
}

PodUse Instance(int slot, int64_t users = 1) { return {{}, {{0, slot, users}}}; }

TEST(HasRoomFor, AnInstanceTakesAsManyAsItHasReplicas) {
  Inventory inventory = BuildInventory(test::MigNode("n", 1, 0, {{"3g.40gb", 2, 2}}), 0);
  Load load;
  load.Reset(inventory);
  AddUse(load, Instance(0));
  EXPECT_TRUE(HasRoomFor(inventory, load, Instance(0)));
  EXPECT_FALSE(HasRoomFor(inventory, load, Instance(0, 2)));
  EXPECT_TRUE(HasRoomFor(inventory, load, Instance(1, 2)));
  inventory.cards[0].cordoned = true;
  EXPECT_FALSE(HasRoomFor(inventory, load, Instance(1)));
}

// On a node of planned layouts the places of a pool lie over each other.
TEST(HasRoomFor, AnInstanceGoesWhereTheOthersLeaveItAPlace) {
  NodeFacts facts = test::MigNode("n", 1, 0, {{"3g.40gb", 2}, {"4g.40gb", 1}});
  facts.mig_planned = true;
  const Inventory inventory = BuildInventory(facts, 0);
  Load load;
  load.Reset(inventory);
  const int large = inventory.FindPool("nvidia.com/mig-4g.40gb");
  AddUse(load, {{}, {{large, 0, 1}}});
  const int small = inventory.FindPool("nvidia.com/mig-3g.40gb");
  EXPECT_FALSE(HasRoomFor(inventory, load, {{}, {{small, 0, 1}}})) << "it lies under the other";
  EXPECT_TRUE(HasRoomFor(inventory, load, {{}, {{small, 1, 1}}}));
  AddUse(load, {{}, {{small, 0, 1}}});
  EXPECT_FALSE(HasRoomFor(inventory, load, {{}, {{small, 1, 1}}})) << "nobody can have both";
}

// Somebody else put pods there: the card is closed until they are gone, however many come.
TEST(AddUse, ASetOfInstancesThatCannotBeStaysBroken) {
  const MigSpace& space = MigSpaceOf(*FindMigBoard("NVIDIA-A100-SXM4-40GB", Mebibytes::Of(40960)));
  const int whole =
      static_cast<int>(FindMigProfile(space.board(), "7g.40gb") - space.board().profiles.data());
  Inventory inventory = OneCard();
  Load load;
  load.Reset(inventory);
  for (const bool broken : {false, true, true}) {
    CardUse use = Share(0, 0);
    use.places = {MigPlace{&space, whole, 0}};
    AddUse(load, {{use}, {}});
    EXPECT_EQ(load.cards[0].layout_broken, broken);
  }
  CardUse nothing;
  EXPECT_FALSE(HasRoomFor(inventory, load, {{nothing}, {}}));
}

TEST(PlannedRows, OnlyPlannedNodesHaveAny) {
  const NodeFacts facts = test::MigNode("n", 1, 0, {{"3g.40gb", 2}});
  for (const bool planned : {false, true}) {
    NodeFacts node = facts;
    node.mig_planned = planned;
    const Inventory inventory = BuildInventory(node, 0);
    Load load;
    load.Reset(inventory);
    EXPECT_EQ(PlannedRows(inventory, load).size(), planned ? 1U : 0U);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
