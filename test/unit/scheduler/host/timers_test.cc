#include "scheduler/host/timers.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

TEST(TimersTest, CallsComeInTheOrderTheyAreDue) {
  std::string order;
  std::promise<void> last;
  ThreadTimers timers;
  timers.After(30ms, [&] {
    order += 'c';
    last.set_value();
  });
  timers.After(20ms, [&] { order += 'b'; });
  timers.After(0ms, [&] { order += 'a'; });
  ASSERT_EQ(last.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_EQ(order, "abc");
}

TEST(TimersTest, CallMayAskForAnother) {
  std::promise<void> second;
  ThreadTimers timers;
  timers.After(0ms, [&] { timers.After(0ms, [&] { second.set_value(); }); });
  EXPECT_EQ(second.get_future().wait_for(10s), std::future_status::ready);
}

TEST(TimersTest, WhatIsNotDueAtStopIsDropped) {
  bool called = false;
  ThreadTimers timers;
  timers.After(1h, [&] { called = true; });
  timers.Stop();
  timers.After(0ms, [&] { called = true; });
  timers.Stop();
  EXPECT_FALSE(called);
}

}  // namespace THIS_FILE
}  // namespace tranche
