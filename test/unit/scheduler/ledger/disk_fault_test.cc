// A disk that refuses writes or syncs for a while: nothing acknowledged, nothing lost, no crash.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The real file system, whose writes or syncs answer with an error while it is set.
std::atomic<int> write_error{SQLITE_OK};
std::atomic<int> sync_error{SQLITE_OK};
// Syncs do not return while it is true.
std::atomic<bool> hanging{false};

// The real file's own bytes follow.
struct FaultyFile {
  sqlite3_file base;
};
sqlite3_vfs* real_vfs = nullptr;

sqlite3_file* Real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<FaultyFile*>(file) + 1);
}

const sqlite3_io_methods kMethods = {
    2,
    [](sqlite3_file* f) { return Real(f)->pMethods->xClose(Real(f)); },
    [](sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
      return Real(f)->pMethods->xRead(Real(f), to, n, at);
    },
    [](sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
      const int error = write_error;
      return error != SQLITE_OK ? error : Real(f)->pMethods->xWrite(Real(f), from, n, at);
    },
    [](sqlite3_file* f, sqlite3_int64 size) { return Real(f)->pMethods->xTruncate(Real(f), size); },
    [](sqlite3_file* f, int flags) {
      hanging.wait(/*old=*/true);
      const int error = sync_error;
      return error != SQLITE_OK ? error : Real(f)->pMethods->xSync(Real(f), flags);
    },
    [](sqlite3_file* f, sqlite3_int64* size) {
      return Real(f)->pMethods->xFileSize(Real(f), size);
    },
    [](sqlite3_file* f, int level) { return Real(f)->pMethods->xLock(Real(f), level); },
    [](sqlite3_file* f, int level) { return Real(f)->pMethods->xUnlock(Real(f), level); },
    [](sqlite3_file* f, int* out) { return Real(f)->pMethods->xCheckReservedLock(Real(f), out); },
    [](sqlite3_file* f, int op, void* arg) {
      return Real(f)->pMethods->xFileControl(Real(f), op, arg);
    },
    [](sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); },
    [](sqlite3_file* f) { return Real(f)->pMethods->xDeviceCharacteristics(Real(f)); },
    [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
      return Real(f)->pMethods->xShmMap(Real(f), page, size, extend, out);
    },
    [](sqlite3_file* f, int offset, int n, int flags) {
      return Real(f)->pMethods->xShmLock(Real(f), offset, n, flags);
    },
    [](sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); },
    [](sqlite3_file* f, int remove) { return Real(f)->pMethods->xShmUnmap(Real(f), remove); },
    nullptr,
    nullptr,
};

int OpenFaulty(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
  file->pMethods = nullptr;
  const int result = real_vfs->xOpen(real_vfs, name, Real(file), flags, out);
  if (Real(file)->pMethods != nullptr) file->pMethods = &kMethods;
  return result;
}

class DiskFaultTest : public LedgerTest {
 protected:
  DiskFaultTest() {
    write_error = SQLITE_OK;
    sync_error = SQLITE_OK;
    hanging = false;
    real_vfs = sqlite3_vfs_find(nullptr);
    faulty_ = *real_vfs;
    faulty_.zName = "faulty";
    faulty_.szOsFile = static_cast<int>(sizeof(FaultyFile)) + real_vfs->szOsFile;
    faulty_.xOpen = OpenFaulty;
    faulty_.pNext = nullptr;
    sqlite3_vfs_register(&faulty_, 1);
  }
  ~DiskFaultTest() override {
    sqlite3_vfs_register(real_vfs, 1);
    sqlite3_vfs_unregister(&faulty_);
  }

  static void WaitUntilWritable(const Ledger& ledger) {
    for (int i = 0; i < 2'000 && !ledger.health().writable; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(ledger.health().writable) << ledger.health().problem;
  }

  sqlite3_vfs faulty_;
};

TEST_F(DiskFaultTest, AFullDiskDelaysEntriesButLosesNone) {
  const auto ledger = MustOpen();
  EXPECT_EQ(std::filesystem::file_size(options_.path + ".reserve"), 16U << 20);
  Write(*ledger, {Open("a", Minute(0))});
  write_error = SQLITE_FULL;
  ledger->Append({Open("b", Minute(1))}, {});
  EXPECT_FALSE(Committed(*ledger));
  const LedgerHealth sick = ledger->health();
  EXPECT_FALSE(sick.writable);
  EXPECT_THAT(sick.problem, HasSubstr("disk is full"));
  EXPECT_EQ(sick.queued, 1);
  EXPECT_GE(sick.failures, 1);
  EXPECT_EQ(sick.last_entry, 1);
  ledger->Append({Close("a", Minute(2))}, {});
  EXPECT_FALSE(Committed(*ledger));  // at once
  ledger->Heartbeat(Minute(9), {});
  write_error = SQLITE_OK;
  WaitUntilWritable(*ledger);
  EXPECT_TRUE(Committed(*ledger));
  EXPECT_FALSE(std::filesystem::exists(options_.path + ".reserve"));
  const LedgerHealth well = ledger->health();
  EXPECT_EQ(well.last_entry, 3);
  EXPECT_EQ(well.late, 2);
  EXPECT_EQ(well.problem, "");
  ledger->Close();
  EXPECT_EQ(Report(Minute(60)), "team-a h200 1.017");  // a 2 minutes, b 59
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(DiskFaultTest, AfterAFailedSyncTheBatchIsWrittenOnceAgain) {
  const auto ledger = MustOpen();
  sync_error = SQLITE_IOERR_FSYNC;
  ledger->Append({Open("a", Minute(0)), Refund("a", Minute(0), Minute(1))}, {});
  EXPECT_FALSE(Committed(*ledger));
  sync_error = SQLITE_OK;
  WaitUntilWritable(*ledger);
  EXPECT_TRUE(Committed(*ledger));
  EXPECT_EQ(ledger->health().last_entry, 3);
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(DiskFaultTest, ADiskThatHangsIsAnsweredForAndLosesNothing) {
  options_.times.hang_after = std::chrono::milliseconds(10);
  const auto ledger = MustOpen();
  Write(*ledger, {Open("a", Minute(0))});
  hanging = true;
  ledger->Append({Open("b", Minute(1))}, {});
  EXPECT_FALSE(Committed(*ledger));  // though the commit never fails
  ledger->Append({Close("b", Minute(2)), Close("a", Minute(2))}, {});
  EXPECT_FALSE(Committed(*ledger));  // at once
  const LedgerHealth sick = ledger->health();
  EXPECT_FALSE(sick.writable);
  EXPECT_THAT(sick.problems.at(LedgerFault::kHung), HasSubstr("still under way"));
  EXPECT_EQ(sick.queued, 3);
  hanging = false;
  hanging.notify_all();
  WaitUntilWritable(*ledger);
  EXPECT_TRUE(Committed(*ledger));
  EXPECT_EQ(ledger->health().last_entry, 4);
  EXPECT_THAT(ledger->health().problems, IsEmpty());
  EXPECT_EQ(Sql("SELECT group_concat(kind, '') FROM entry"), "1133");
  EXPECT_THAT(Faults(), IsEmpty());
}

// A bind that was promised while there was no room, refused by the server, and made again.
TEST_F(DiskFaultTest, AFullQueueDropsWholeLivesAndNoEnds) {
  options_.queue_limit = 3;
  const auto ledger = MustOpen();
  Write(*ledger, {Open("old", Minute(0))});
  write_error = SQLITE_FULL;
  for (const char* uid : {"b", "c", "d", "late"}) ledger->Append({Open(uid, Minute(1))}, {});
  EXPECT_FALSE(Committed(*ledger));
  ledger->Append({Close("old", Minute(2)), Void("b", Minute(2)), Running("late", Minute(2))}, {});
  ledger->Append({Void("late", Minute(2)), Refund("old", Minute(1), Minute(2))}, {});
  EXPECT_EQ(ledger->health().queued, 6);
  EXPECT_EQ(ledger->health().dropped, 3);  // the whole life of "late"
  write_error = SQLITE_OK;
  for (int i = 0; i < 1'000 && ledger->health().queued > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  Write(*ledger, {Open("b", Minute(5), 1), Open("late", Minute(5), 1)});
  ledger->Close();
  EXPECT_THAT(Faults(), IsEmpty());
  std::string open;
  const auto next = MustOpen();
  for (const OpenInterval& interval : next->history().open) {
    open += fmt::format("{}{} ", interval.uid.str(), interval.interval);
  }
  EXPECT_EQ(open, "b1 c0 d0 late1 ");
}

TEST_F(DiskFaultTest, AFullDiskAtStartGivesTheReserveAway) {
  WriteFile({Open("a", Minute(0))});
  const std::string reserve = options_.path + ".reserve";
  EXPECT_EQ(std::filesystem::file_size(reserve), 16U << 20);
  write_error = SQLITE_FULL;
  const absl::Status refused = OpenError();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_FALSE(std::filesystem::exists(reserve));
  write_error = SQLITE_OK;
  EXPECT_EQ(MustOpen()->history().open.size(), 1U);
}

TEST_F(DiskFaultTest, TheQueueIsBoundedAndWhatItDropsIsCounted) {
  options_.queue_limit = 3;
  const auto ledger = MustOpen();
  write_error = SQLITE_IOERR_WRITE;
  for (int i = 0; i < 5; ++i) ledger->Append({Open(fmt::format("pod-{}", i), Minute(i))}, {});
  EXPECT_FALSE(Committed(*ledger));
  EXPECT_EQ(ledger->health().dropped, 2);
  EXPECT_EQ(ledger->health().queued, 3);
  write_error = SQLITE_OK;
  WaitUntilWritable(*ledger);
  for (int i = 0; i < 1'000 && ledger->health().queued > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  Write(*ledger, {Open("after", Minute(9))});
  EXPECT_EQ(ledger->health().last_entry, 4);
}

TEST_F(DiskFaultTest, ClosingOnADeadDiskEnds) {
  auto ledger = MustOpen();
  Write(*ledger, {Open("a", Minute(0))});
  write_error = SQLITE_IOERR_WRITE;
  ledger->Heartbeat(Minute(1), {});
  const auto start = std::chrono::steady_clock::now();
  ledger.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(6));
  write_error = SQLITE_OK;
  EXPECT_EQ(MustOpen()->history().open.size(), 1U);
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
