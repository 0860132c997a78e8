// The lock HAMi's agent goes by: what its texts say, and when it may be taken.
#include "scheduler/wire/agents/node_lock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace tranche::wire {
namespace THIS_FILE {

const Instant kNow =
    std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12);
constexpr Millis kStale = std::chrono::minutes(5);
constexpr std::string_view kWanted = "2026-03-01T12:00:00Z,team,train";

std::string Said(std::string_view text) {
  const std::optional<NodeLock> lock = ParseNodeLock(text);
  if (!lock) return "malformed";
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(kNow - lock->taken).count();
  return std::to_string(age) + "s " + std::string(lock->ns) + "/" + std::string(lock->pod);
}

TEST(NodeLockText, ReadsTimeNamespaceAndPod) {
  struct Case {
    std::string_view text;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"2026-03-01T11:59:00Z,team,train", "60s team/train"},
      {"2026-03-01T13:59:00+02:00,team,train", "60s team/train"},
      {"2026-03-01T11:59:00Z", "60s /"},  // before namespace and pod were written with it
      {"", "malformed"},
      {"team,train", "malformed"},
      {"2026-03-01T11:59:00Z,train", "malformed"},
      {"2026-03-01T11:59:00Z,team,", "malformed"},
      {"2026-03-01T11:59:00Z,,train", "malformed"},
      {"2026-03-01T11:59:00Z,team,train,main", "malformed"},
      {"yesterday,team,train", "malformed"},
      {",team,train", "malformed"},
  };
  for (const Case& one : cases) EXPECT_EQ(Said(one.text), one.expected) << one.text;
}

TEST(NodeLockText, IsTakenWhereNobodyHoldsIt) {
  using enum LockVerdict;
  struct Case {
    const char* what;
    std::optional<std::string_view> current;
    LockVerdict expected;
  };
  const std::vector<Case> cases = {
      {"no lock", std::nullopt, kFree},
      {"an empty one", "", kFree},
      {"just ours", kWanted, kOurs},
      {"ours from an earlier try", "2026-03-01T11:59:59Z,team,train", kFree},
      {"another pod's", "2026-03-01T11:59:59Z,team,serve", kHeld},
      {"a namesake's in another namespace", "2026-03-01T11:59:59Z,other,train", kHeld},
      {"five minutes old to the second", "2026-03-01T11:55:00Z,team,serve", kHeld},
      {"older", "2026-03-01T11:54:59Z,team,serve", kFree},
      {"older, with the time alone", "2026-03-01T11:54:59Z", kFree},
      {"younger, with the time alone", "2026-03-01T11:59:59Z", kHeld},
      {"by a clock ahead of ours", "2026-03-01T12:09:00Z,team,serve", kHeld},
      {"one nobody can read", "2020-01-01T00:00:00Z,serve", kHeld},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(JudgeLock(one.current, kWanted, kStale, kNow), one.expected) << one.what;
  }
}

// Also by a clock that stands still, or that is behind the one that took it.
TEST(NodeLockText, IsAlwaysTooOldWhereItsHolderNeedsItNoMore) {
  for (const char* taken : {"2026-03-01T12:00:00Z,team,serve", "2026-03-01T12:09:00Z,team,serve",
                            "2026-03-01T12:00:00Z"}) {
    EXPECT_EQ(JudgeLock(taken, kWanted, Millis(0), kNow), LockVerdict::kFree) << taken;
  }
  EXPECT_EQ(JudgeLock("serve", kWanted, Millis(0), kNow), LockVerdict::kHeld);
}

TEST(NodeLockText, IsNeverTooOldWithoutALimit) {
  EXPECT_EQ(JudgeLock("2020-01-01T00:00:00Z,team,serve", kWanted, std::nullopt, kNow),
            LockVerdict::kHeld);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
