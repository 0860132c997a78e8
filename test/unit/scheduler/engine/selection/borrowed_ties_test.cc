// Where nodes are alike in all else, borrowed work stays with what borrowers hold.
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;
using test::StockNode;

// Team a owns 6 and b nothing. On n1 stands work of a, on n2 of b: the same charge on each.
class BorrowedTies : public EngineQuotaTest {
 protected:
  void SetUp() override {
    Nodes({StockNode("n1", 4), StockNode("n2", 4)});
    Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "6"),
                        Quota("team-b").Under("org").Owns("b").Line("h100", "0")}});
    ASSERT_TRUE(Place(Pod("a", "own", 2), "n1"));
    ASSERT_TRUE(Place(Pod("b", "lent", 2), "n2"));
  }
};

TEST_F(BorrowedTies, ABorrowerGoesToItsLike) { EXPECT_EQ(Try(Pod("b", "more", 1)), "n2 n1"); }

TEST_F(BorrowedTies, WhatIsATeamsOwnGoesByName) { EXPECT_EQ(Try(Pod("a", "more", 1)), "n1 n2"); }

TEST_F(BorrowedTies, ABetterPackedNodeComesFirst) {
  ASSERT_TRUE(Place(Pod("a", "third", 1), "n1"));
  EXPECT_EQ(Try(Pod("b", "more", 1)), "n1 n2") << "it is full then, and n2 keeps two together";
}

TEST_F(BorrowedTies, WhereNobodyIsOverNominalNamesDecide) {
  Declare({.quotas = {Quota("org").Line("h100", "4"),
                      Quota("team-a").Under("org").Owns("a").Line("h100", "2"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "2")}});
  EXPECT_EQ(Try(Pod("b", "more", 1)), "n1 n2") << "b borrows with this pod, and not yet";
}

}  // namespace THIS_FILE
}  // namespace tranche
