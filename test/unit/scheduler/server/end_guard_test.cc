#include "scheduler/server/end_guard.h"

#include <gtest/gtest.h>

#include <future>

namespace tranche {
namespace THIS_FILE {

TEST(EndGuardTest, SpeaksUpWhenTheEndHangs) {
  std::promise<void> overdue;
  const EndGuard guard(std::chrono::milliseconds(1), [&overdue] { overdue.set_value(); });
  EXPECT_EQ(overdue.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(EndGuardTest, IsSilentWhenTheEndComesInTime) {
  bool spoke = false;
  {
    const EndGuard guard(std::chrono::hours(1), [&spoke] { spoke = true; });
  }
  EXPECT_FALSE(spoke);
}

}  // namespace THIS_FILE
}  // namespace tranche
