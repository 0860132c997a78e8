#include "scheduler/host/turn_lock.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tranche {
namespace THIS_FILE {

// Callers that come while the lock is held, in the order of a text: F comes first, t in turn. The
// answer is the order in which they had it.
class TurnLockTest : public testing::Test {
 protected:
  std::string Order(const std::string& callers) {
    std::vector<std::thread> threads;
    lock_.LockInTurn();
    for (std::size_t i = 0; i < callers.size(); ++i) {
      threads.emplace_back([this, kind = callers[i], i] {
        kind == 'F' ? lock_.LockFirst() : lock_.LockInTurn();
        had_ += kind == 'F' ? "F" : std::to_string(i);
        lock_.Unlock();
      });
      while (lock_.waiting() <= static_cast<int64_t>(i)) std::this_thread::yield();
    }
    lock_.Unlock();
    for (std::thread& thread : threads) thread.join();
    return had_;
  }

  TurnLock lock_;
  std::string had_;  // under lock_
};

TEST_F(TurnLockTest, TheOthersTakeTurnsInTheOrderTheyCame) { EXPECT_EQ(Order("tttt"), "0123"); }

TEST_F(TurnLockTest, WhoComesFirstOvertakesThoseInTurn) { EXPECT_EQ(Order("ttFtFF"), "FFF013"); }

TEST_F(TurnLockTest, WhoGivesItBackComesBehindThoseWhoWaited) {
  lock_.LockInTurn();
  std::thread other([this] {
    lock_.LockInTurn();
    had_ += "other ";
    lock_.Unlock();
  });
  while (lock_.waiting() == 0) std::this_thread::yield();
  lock_.Unlock();
  lock_.LockInTurn();
  had_ += "again";
  lock_.Unlock();
  other.join();
  EXPECT_EQ(had_, "other again");
}

// Two callers, of whom always one waits, would keep those in turn out for ever.
TEST_F(TurnLockTest, ThoseInTurnComeInTheEnd) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([this, &stop] {
      while (!stop) {
        lock_.LockFirst();
        for (int spins = 0; spins < 1'000 && lock_.waiting() == 0; ++spins) {
          std::this_thread::yield();
        }
        lock_.Unlock();
      }
    });
  }
  for (int i = 0; i < 3; ++i) {
    lock_.LockInTurn();
    had_ += "t";
    lock_.Unlock();
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(had_, "ttt");
}

}  // namespace THIS_FILE
}  // namespace tranche
