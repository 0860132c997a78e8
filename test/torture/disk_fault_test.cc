// Hazard 50: the disk is full or broken for a while. Nothing is acknowledged that is not there, and
// nothing that was queued is lost once the disk works again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <thread>

#include "test/fakes/power_cut_vfs.h"
#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using fakes::DiskFault;
using fakes::PowerCutVfs;
using ledger::SqliteLedger;
using Opened = absl::StatusOr<std::unique_ptr<SqliteLedger>>;

struct Case {
  const char* name;
  DiskFault fault;
  int64_t times;
};
void PrintTo(const Case& disk_case, std::ostream* out) { *out << disk_case.name; }
// Once, which a second try survives; and until somebody mends it.
constexpr int64_t kUntilMended = 1'000'000;
constexpr Case kCases[] = {
    {"full once", DiskFault::kFull, 1},
    {"full", DiskFault::kFull, kUntilMended},
    {"write error once", DiskFault::kWriteError, 1},
    {"write error", DiskFault::kWriteError, kUntilMended},
    {"short write once", DiskFault::kShortWrite, 1},
    {"short write", DiskFault::kShortWrite, kUntilMended},
    {"failed sync once", DiskFault::kSyncUnsaid, 1},
    {"failed sync", DiskFault::kSyncUnsaid, kUntilMended},
    {"failed sync once, old bytes back", DiskFault::kSyncReverted, 1},
    {"failed sync, old bytes back", DiskFault::kSyncReverted, kUntilMended},
};

class DiskFaults : public testing::TestWithParam<Case> {
 protected:
  // Appends one batch after the other; true answers move story_.acknowledged.
  void Append(SqliteLedger& ledger, Load& load, int batches) {
    for (int i = 0; i < batches; ++i) {
      Batch batch = load.Next();
      story_.log.push_back(batch);
      const bool committed = AppendAndWait(ledger, std::move(batch));
      if (committed) story_.acknowledged = story_.log.size();
      refused_ += committed ? 0 : 1;
    }
    story_.now = load.now();
  }

  // The power goes off now: the disk holds all that was acknowledged.
  void ExpectDurable(const PowerCutVfs::Disk& disk, uint64_t seed) {
    const Folder left;
    PowerCutVfs::Restore(disk, seed, folder_.path(), left.path());
    Story story = story_;
    const Opened ledger = SqliteLedger::Open(NextLife(story, left.ledger()));
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    EXPECT_TRUE(Settle(story, left.ledger(), **ledger));
    (*ledger)->Close();
    EXPECT_TRUE(Verified(left.ledger()));
  }

  // The fault strikes the n-th call after some good batches.
  void Strike(const Case& disk_case, int64_t n) {
    PowerCutVfs vfs;
    const Opened opened = SqliteLedger::Open(NextLife(story_, folder_.ledger()));
    ASSERT_TRUE(opened.ok()) << opened.status();
    SqliteLedger& ledger = **opened;
    Load load(static_cast<uint64_t>(n), story_.lives, story_.now, story_.settled.Open());
    Append(ledger, load, 5);
    ASSERT_EQ(story_.acknowledged, 5U);
    vfs.Inject(disk_case.fault, n, disk_case.times);
    for (int i = 0; i < 100 && vfs.faults() == 0; ++i) Append(ledger, load, 1);
    ASSERT_GT(vfs.faults(), 0);
    if (disk_case.times == kUntilMended) {
      Append(ledger, load, 3);
      EXPECT_GT(refused_, 0);
      EXPECT_FALSE(ledger.health().writable);
      EXPECT_GT(ledger.health().queued, 0);
      EXPECT_NE(ledger.health().problem, "");
      EXPECT_EQ(ledger.health().late, 0);
      load.Pass(std::chrono::minutes(2));
      ledger.Heartbeat(load.now(), {});
    }
    const PowerCutVfs::Disk disk = vfs.disk();
    vfs.Heal();
    ExpectDurable(disk, static_cast<uint64_t>(n));
    for (int tries = 0; !WaitCommitted(ledger); ++tries) {
      ASSERT_LT(tries, 3000) << "expected the queue to be written, found "
                             << ledger.health().problem;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    story_.acknowledged = story_.log.size();
    EXPECT_EQ(ledger.health().late > 0, disk_case.times == kUntilMended);
    Append(ledger, load, 3);
    EXPECT_TRUE(ledger.health().writable);
    EXPECT_EQ(ledger.health().queued, 0);
    EXPECT_EQ(ledger.health().dropped, 0);
    EXPECT_EQ(story_.acknowledged, story_.log.size());
    ExpectDurable(vfs.disk(), static_cast<uint64_t>(n) + 1);
    ledger.Close();
  }

  Folder folder_;
  Story story_;
  int refused_ = 0;
};

TEST_P(DiskFaults, NothingIsAcknowledgedThatIsNotThereAndNothingQueuedIsLost) {
  const bool is_sync =
      GetParam().fault == DiskFault::kSyncUnsaid || GetParam().fault == DiskFault::kSyncReverted;
  const int64_t most = is_sync ? Size(2, 4, 30) : Size(3, 12, 150);
  for (int64_t n = 1; n <= most; ++n) {
    SCOPED_TRACE(fmt::format("{}, call {}", GetParam().name, n));
    Strike(GetParam(), n);
    if (HasFatalFailure()) return;
    // The next life reads all of it.
    const Opened ledger = SqliteLedger::Open(NextLife(story_, folder_.ledger()));
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    ASSERT_TRUE(Settle(story_, folder_.ledger(), **ledger));
    EXPECT_TRUE(story_.log.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Torture, DiskFaults, testing::ValuesIn(kCases), [](const auto& param) {
  std::string name;
  for (const char byte : std::string(param.param.name)) {
    if (byte >= 'a' && byte <= 'z') name.push_back(byte);
  }
  return name;
});

}  // namespace
}  // namespace tranche::torture
