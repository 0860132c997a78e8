// The ledger among several processes: who may write, with which epoch, and who has the file.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

TEST_F(LedgerTest, NothingIsCommittedWithoutTheRightToWrite) {
  std::atomic<bool> may_write = true;
  options_.may_write = [&may_write] { return may_write.load(); };
  {
    const auto ledger = MustOpen();
    Write(*ledger, {Open("a", Minute(0))});
    may_write = false;
    ledger->Append({Open("b", Minute(1))}, {});
    EXPECT_FALSE(Committed(*ledger));
    EXPECT_FALSE(ledger->health().writable);
    EXPECT_EQ(Sql("SELECT count(*) FROM entry"), "1");
    // The right comes back (a renewal was late): what was queued is written.
    may_write = true;
    for (int i = 0; i < 500 && !Committed(*ledger); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(Sql("SELECT count(*) FROM entry"), "2");
    may_write = false;
    ledger->Append({Open("c", Minute(2))}, {});
  }
  EXPECT_EQ(Sql("SELECT count(*) FROM entry"), "2") << "not at the end of the process either";
  EXPECT_THAT(Faults(), testing::IsEmpty());
}

TEST_F(LedgerTest, EpochsAreContinuedOrMustNotFall) {
  EXPECT_EQ(SqliteLedger::LastEpoch(options_.path), 0);
  options_.epoch = 7;
  WriteFile({Open("a", Minute(0))});
  EXPECT_EQ(SqliteLedger::LastEpoch(options_.path), 7);
  options_.epoch = 3;
  EXPECT_TRUE(absl::IsAborted(OpenError()));
  options_.continue_epoch = true;
  EXPECT_EQ(MustOpen()->epoch(), 7);
  options_.epoch = 9;
  EXPECT_EQ(MustOpen()->epoch(), 9);
}

TEST_F(LedgerTest, SaysWhetherAnotherHasTheFile) {
  EXPECT_FALSE(SqliteLedger::InUse(options_.path));
  auto ledger = MustOpen();
  EXPECT_TRUE(SqliteLedger::InUse(options_.path));
  ledger.reset();
  EXPECT_FALSE(SqliteLedger::InUse(options_.path));
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
