#include "topology/base/mark.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tranche {
namespace THIS_FILE {

int TimesReached(const std::string& name) {
  int times = 0;
  for (const CoverageMark* mark = CoverageMark::Last(); mark != nullptr; mark = mark->next()) {
    times += mark->name() == name;
  }
  return times;
}

TEST(MarkTest, IsListedOnceReachedAndOnlyOnce) {
  static constinit CoverageMark seldom("of_a_test_seldom"), never("of_a_test_never");
  EXPECT_EQ(TimesReached("of_a_test_seldom"), 0);
  for (int i = 0; i < 3; ++i) seldom.Reach();
  EXPECT_EQ(TimesReached("of_a_test_seldom"), 1);
  EXPECT_EQ(TimesReached(never.name()), 0);
}

TEST(MarkTest, ThreadsLoseNoneAndListNoneTwice) {
  static constinit CoverageMark marks[] = {
      CoverageMark("of_threads_0"), CoverageMark("of_threads_1"), CoverageMark("of_threads_2"),
      CoverageMark("of_threads_3")};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (CoverageMark& mark : marks) mark.Reach();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CoverageMark& mark : marks) EXPECT_EQ(TimesReached(mark.name()), 1) << mark.name();
}

}  // namespace THIS_FILE
}  // namespace tranche
