// How much a table of node states remembers of states that come and go.
#include "scheduler/index/state_table.h"

#include <gtest/gtest.h>

#include <string>

namespace tranche {
namespace THIS_FILE {

TEST(StateTable, AStateThatComesAndGoesTakesNoMoreRoom) {
  StateTable table(16);
  const StateId idle = table.Acquire("idle");
  table.Release(idle);
  for (int i = 0; i < 100'000; ++i) table.Release(table.Acquire("busy"));
  EXPECT_LE(table.orders(), 64U);
  EXPECT_EQ(table.size(), 2U);
}

TEST(StateTable, ForgettingOvertakenPlacesKeepsWhatIsIdleReusable) {
  StateTable table(2);
  for (int round = 0; round < 1'000; ++round) {
    const StateId a = table.Acquire("a"), b = table.Acquire("b"), c = table.Acquire("c");
    EXPECT_NE(a, b);
    EXPECT_NE(b, c);
    table.Release(a);
    table.Release(b);
    table.Release(c);
    table.Release(table.Acquire("new " + std::to_string(round)));
  }
  EXPECT_LE(table.size(), 5U);
}

}  // namespace THIS_FILE
}  // namespace tranche
