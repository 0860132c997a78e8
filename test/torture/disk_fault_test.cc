// Hazard 50: the disk is full or broken for a while. Nothing is acknowledged that is not there, and
// nothing that was queued is lost once the disk works again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

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

// The power goes off at any moment after a sync has failed, above all while the log that may be in
// the cache alone is moved into the database.
class FailedSyncs : public DiskFaults {
 protected:
  struct Cut {
    PowerCutVfs::Disk disk;
    std::size_t acknowledged = 0;
  };

  // Cuts from the n-th sync on, which fails, until some further batches are written.
  std::vector<Cut> Cuts(int64_t n) {
    constexpr std::size_t kMost = 150;
    std::vector<Cut> cuts;
    std::atomic<std::size_t> acknowledged = 0;
    PowerCutVfs vfs;
    vfs.SetWatcher([&](int64_t) {
      if (vfs.faults() > 0 && cuts.size() < kMost) cuts.push_back({vfs.disk(), acknowledged});
    });
    const Opened opened = SqliteLedger::Open(NextLife(story_, folder_.ledger()));
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return {};
    Load load(static_cast<uint64_t>(n), story_.lives, story_.now, story_.settled.Open());
    const auto append = [&] {
      Append(**opened, load, 1);
      acknowledged = story_.acknowledged;
    };
    for (int i = 0; i < 30; ++i) append();  // a log that takes some writes to be moved
    vfs.Inject(GetParam().fault, n, GetParam().times);
    for (int i = 0; i < 100 && vfs.faults() == 0; ++i) append();
    EXPECT_GT(vfs.faults(), 0);
    while (!WaitCommitted(**opened)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    story_.acknowledged = story_.log.size();
    acknowledged = story_.acknowledged;
    for (int i = 0; i < 3; ++i) append();
    (*opened)->Close();
    return cuts;
  }
};

TEST_P(FailedSyncs, ACutWhileTheLogIsMovedLosesNothing) {
  for (int64_t n = 1; n <= Size(1, 2, 10); ++n) {
    const std::vector<Cut> cuts = Cuts(n);
    EXPECT_GT(cuts.size(), 20U);
    const std::size_t in_the_end = story_.acknowledged;
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      SCOPED_TRACE(fmt::format("sync {}, cut {}", n, i));
      story_.acknowledged = cuts[i].acknowledged;
      ExpectDurable(cuts[i].disk, i);
      if (HasFatalFailure()) return;
    }
    story_.acknowledged = in_the_end;
    const Opened ledger = SqliteLedger::Open(NextLife(story_, folder_.ledger()));
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    ASSERT_TRUE(Settle(story_, folder_.ledger(), **ledger));
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name;
  for (const char byte : std::string(info.param.name)) {
    if (byte >= 'a' && byte <= 'z') name.push_back(byte);
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Torture, FailedSyncs,
                         testing::Values(Case{"said once", DiskFault::kSyncUnsaid, 1},
                                         Case{"said once and again", DiskFault::kSyncUnsaid, 2},
                                         Case{"old bytes back", DiskFault::kSyncReverted, 1}),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Torture, DiskFaults, testing::ValuesIn(kCases), NameOf);

}  // namespace
}  // namespace tranche::torture
