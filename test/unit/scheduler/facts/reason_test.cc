#include "scheduler/facts/reason.h"

#include <gtest/gtest.h>

#include <set>

namespace tranche {
namespace THIS_FILE {

// Every reason for which `holds` is true.
template <typename Predicate>
std::set<Reason> Those(Predicate holds) {
  std::set<Reason> found;
  for (int i = 0; i < static_cast<int>(Reason::kCount); ++i) {
    if (holds(static_cast<Reason>(i))) found.insert(static_cast<Reason>(i));
  }
  return found;
}

TEST(ReasonTest, TeamsQuotaAndBudget) {
  EXPECT_EQ(Those(IsQuotaReason),
            (std::set{Reason::kNoLeaf, Reason::kLeafConflict, Reason::kLedgerClosed,
                      Reason::kBudgetExhausted, Reason::kExceedsMaxQuota, Reason::kBorrowLimit,
                      Reason::kLenderLimit, Reason::kWaitingForQuota}));
}

TEST(ReasonTest, AnEmptierNodeWouldDo) {
  EXPECT_EQ(Those(MoreRoomWouldHelp),
            (std::set{Reason::kNoRoom, Reason::kNumaMismatch, Reason::kBrokenSet}));
}

TEST(ReasonTest, WhatMoreRoomHelpsIsNeverQuotas) {
  for (const Reason reason : Those(MoreRoomWouldHelp)) {
    EXPECT_FALSE(IsQuotaReason(reason)) << Describe(reason).code;
    EXPECT_TRUE(Describe(reason).preemption_may_help) << Describe(reason).code;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
