#include "quota/tree/marking.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "quota/tree/limits.h"

namespace tranche {
namespace THIS_FILE {

constexpr LineId kH200Line{1};
constexpr LineId kL4{2};

Charge GpuCharge(int64_t count) { return {count * kQuantaPerGpu, count * kQuantaPerGpu}; }

MarkUnit Gang(std::string key, int64_t gpus, int64_t start = 0) {
  MarkUnit unit;
  unit.key = std::move(key);
  unit.rank = 2;
  unit.start = Instant(Millis(start));
  unit.parts = {{kH200Line, GpuCharge(gpus)}};
  return unit;
}

// The marks of a leaf with so many H200, L4 and GPUs of any kind, a letter per unit.
std::string Marks(const std::vector<MarkUnit>& units, const ChargeLimit& h200,
                  const ChargeLimit& l4 = {}, const ChargeLimit& any = {}) {
  const std::vector<QuotaState> states = Mark(units, [&](LineId line) {
    EXPECT_NE(line, kNoLine);
    return line == kH200Line ? h200 : line == kL4 ? l4 : any;
  });
  std::string letters;
  for (const QuotaState state : states) letters += QuotaStateName(state).front();
  return letters;
}

TEST(MarkingTest, AGangLargerThanNominalIsAlwaysBorrowed) {
  EXPECT_EQ(Marks({Gang("a", 4)}, GpuCharge(3)), "b");
  EXPECT_EQ(Marks({Gang("a", 3)}, GpuCharge(3)), "i");
}

TEST(MarkingTest, AGangThatDoesNotFitIsPassedOverAndLaterOnesMayFit) {
  EXPECT_EQ(
      Marks({Gang("a", 2, 1), Gang("b", 4, 2), Gang("c", 1, 3), Gang("d", 1, 4)}, GpuCharge(3)),
      "ibib");
}

TEST(MarkingTest, NominalGoesToNonPreemptibleThenRankThenAgeThenKey) {
  MarkUnit young = Gang("a", 1, 9);
  MarkUnit old = Gang("b", 1, 1);
  MarkUnit high = Gang("c", 1, 9);
  high.rank = 3;
  MarkUnit pinned = Gang("d", 1, 9);
  pinned.rank = 1;
  pinned.preemptible = false;
  MarkUnit twin = Gang("aa", 1, 9);
  const std::vector<MarkUnit> units = {young, old, high, pinned, twin};
  EXPECT_EQ(Marks(units, GpuCharge(0)), "bbbbb");
  EXPECT_EQ(Marks(units, GpuCharge(1)), "bbbib");
  EXPECT_EQ(Marks(units, GpuCharge(2)), "bbiib");
  EXPECT_EQ(Marks(units, GpuCharge(3)), "biiib");
  EXPECT_EQ(Marks(units, GpuCharge(4)), "iiiib");
  EXPECT_EQ(Marks(units, GpuCharge(5)), "iiiii");
}

TEST(MarkingTest, ScavengersNeverCountAsNominal) {
  MarkUnit scavenger = Gang("a", 1);
  scavenger.rank = 0;
  scavenger.preemptible = false;
  EXPECT_EQ(Marks({scavenger, Gang("b", 1)}, GpuCharge(1)), "si");
}

TEST(MarkingTest, WorkOfAnExhaustedBudgetIsBorrowedAndFillsNothing) {
  MarkUnit demoted = Gang("a", 1, 1);
  demoted.demoted = true;
  MarkUnit scavenger = demoted;
  scavenger.rank = 0;
  EXPECT_EQ(Marks({demoted, scavenger, Gang("b", 1, 2)}, GpuCharge(1)), "bsi");
}

TEST(MarkingTest, TheWeakerMarkOfTheLinesHolds) {
  const MarkUnit h200 = Gang("a", 2, 1);
  MarkUnit l4 = Gang("b", 1, 2);
  l4.parts = {{kL4, GpuCharge(1)}};
  // Room on the model line alone, on `any` alone, and on both.
  EXPECT_EQ(Marks({h200}, GpuCharge(2), GpuCharge(0), GpuCharge(1)), "b");
  EXPECT_EQ(Marks({h200}, GpuCharge(1), GpuCharge(0), GpuCharge(2)), "b");
  EXPECT_EQ(Marks({h200}, GpuCharge(2), GpuCharge(0), GpuCharge(2)), "i");
  // "2 of any kind" are taken by the first; the L4 line has room, `any` has not.
  EXPECT_EQ(Marks({h200, l4}, GpuCharge(2), GpuCharge(5), GpuCharge(2)), "ib");
  // Passed over on its model line, the gang still fills `any`: lines are filled one by one.
  EXPECT_EQ(Marks({h200, l4}, GpuCharge(1), GpuCharge(5), GpuCharge(2)), "bb");
  // Likewise a gang over two models, on the line on which it fits.
  MarkUnit small = Gang("a", 1, 1);
  small.parts = {{kL4, GpuCharge(1)}};
  MarkUnit gang = Gang("b", 2, 2);
  gang.parts.push_back({kL4, GpuCharge(1)});
  EXPECT_EQ(Marks({small, gang, Gang("c", 1, 3), Gang("d", 1, 4)}, GpuCharge(3), GpuCharge(1)),
            "ibib");
}

TEST(MarkingTest, AGangOverTwoModelsNeedsRoomOnBothAndItsSumOnAny) {
  MarkUnit gang = Gang("a", 1);
  gang.parts.push_back({kL4, GpuCharge(2)});
  EXPECT_EQ(Marks({gang}, GpuCharge(1), GpuCharge(2), GpuCharge(3)), "i");
  EXPECT_EQ(Marks({gang}, GpuCharge(1), GpuCharge(1), GpuCharge(3)), "b");
  EXPECT_EQ(Marks({gang}, GpuCharge(1), GpuCharge(2), GpuCharge(2)), "b");
}

TEST(MarkingTest, AModelNobodyNamesIsHeldToAnyAlone) {
  MarkUnit unit = Gang("a", 1);
  unit.parts.front().line = kNoLine;
  EXPECT_EQ(Marks({unit}, GpuCharge(0), GpuCharge(0), GpuCharge(1)), "i");
  EXPECT_EQ(Marks({unit}, GpuCharge(9), GpuCharge(9), GpuCharge(0)), "b");
}

TEST(MarkingTest, BothDimensionsMustFitAndUnlimitedIsNeverUsedUp) {
  MarkUnit memory = Gang("a", 0);
  memory.parts.front().charge = {0, 5};
  MarkUnit both = Gang("b", 0, 1);
  both.parts.front().charge = {kQuantaPerGpu, 4};
  EXPECT_EQ(Marks({memory, both}, {{}, 9}), "ii");
  EXPECT_EQ(Marks({memory, both}, {{}, 8}), "ib");
  EXPECT_EQ(Marks({memory, both}, {kQuantaPerGpu - 1, 9}), "ib");
}

TEST(MarkingTest, TheOrderOfTheInputChangesNothing) {
  const MarkUnit a = Gang("a", 2, 1);
  const MarkUnit b = Gang("b", 2, 2);
  const MarkUnit c = Gang("c", 1, 3);
  EXPECT_EQ(Marks({a, b, c}, GpuCharge(3)), "ibi");
  EXPECT_EQ(Marks({c, b, a}, GpuCharge(3)), "ibi");
  EXPECT_EQ(Marks({b, a, c}, GpuCharge(3)), "bii");
  EXPECT_EQ(Marks({}, GpuCharge(3)), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
