// The instruments themselves: a database that does not sync loses rows in a power cut, one that
// does loses none; faults come when they were ordered.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "test/fakes/faulty_malloc.h"
#include "test/fakes/power_cut_vfs.h"
#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using fakes::DiskFault;
using fakes::FaultyMalloc;
using fakes::PowerCutVfs;

class Database {
 public:
  explicit Database(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
  }
  ~Database() { sqlite3_close(database_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  int Do(const std::string& sql) {
    return sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  // The number a query gives; -1: it failed.
  int64_t Ask(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    int64_t answer = -1;
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
      answer = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return answer;
  }

 private:
  sqlite3* database_ = nullptr;
};

// Cuts at any operation while 30 rows are committed one by one; how many cuts lost a committed row
// or left a broken file.
int CutsWithLoss(const std::string& settings) {
  const Folder folder;
  struct Cut {
    PowerCutVfs::Disk disk;
    int64_t committed;
  };
  std::vector<Cut> cuts;
  {
    PowerCutVfs vfs;
    int64_t committed = -1;
    vfs.SetWatcher([&](int64_t operation) {
      if (operation % 7 == 0 && committed >= 0) cuts.push_back({vfs.disk(), committed});
    });
    Database database(folder.ledger());
    EXPECT_EQ(database.Do(settings + "CREATE TABLE t(x INTEGER PRIMARY KEY);"), SQLITE_OK);
    for (committed = 0; committed < 30; ++committed) {
      EXPECT_EQ(database.Do("INSERT INTO t VALUES(NULL)"), SQLITE_OK);
    }
  }
  EXPECT_GT(cuts.size(), 5U);
  int losses = 0;
  for (uint64_t seed = 0; seed < 4 * cuts.size(); ++seed) {
    const Cut& cut = cuts[seed / 4];
    const Folder left;
    PowerCutVfs::Restore(cut.disk, seed, folder.path(), left.path());
    Database database(left.ledger());
    const bool sound =
        database.Ask("SELECT integrity_check = 'ok' FROM pragma_integrity_check") == 1;
    const int64_t rows = database.Ask("SELECT count(*) FROM t");
    losses += sound && rows >= cut.committed && rows <= cut.committed + 1 ? 0 : 1;
  }
  return losses;
}

TEST(Instruments, APowerCutHarmsNothingThatSyncsEveryCommit) {
  EXPECT_EQ(CutsWithLoss("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"), 0);
  EXPECT_EQ(CutsWithLoss("PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA;"), 0);
}

TEST(Instruments, APowerCutTakesCommitsThatWereNotSynced) {
  EXPECT_GT(CutsWithLoss("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"), 0);
  EXPECT_GT(CutsWithLoss("PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF;"), 0);
}

TEST(Instruments, DiskFaultsComeWhenOrderedAndEndWhenHealed) {
  struct Row {
    DiskFault fault;
    int code;
  };
  for (const Row& row :
       {Row{DiskFault::kFull, SQLITE_FULL}, Row{DiskFault::kShortWrite, SQLITE_FULL},
        Row{DiskFault::kWriteError, SQLITE_IOERR}, Row{DiskFault::kSyncUnsaid, SQLITE_IOERR},
        Row{DiskFault::kSyncReverted, SQLITE_IOERR}}) {
    const Folder folder;
    PowerCutVfs vfs;
    Database database(folder.ledger());
    ASSERT_EQ(database.Do("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                          "CREATE TABLE t(x); INSERT INTO t VALUES(1)"),
              SQLITE_OK);
    vfs.Inject(row.fault, 1, 2);
    EXPECT_EQ(database.Do("INSERT INTO t VALUES(2)"), row.code);
    EXPECT_EQ(database.Do("INSERT INTO t VALUES(2)"), row.code);
    EXPECT_EQ(vfs.faults(), 2);
    EXPECT_EQ(database.Do("INSERT INTO t VALUES(3)"), SQLITE_OK);
    vfs.Inject(row.fault, 1, 1);
    vfs.Heal();
    EXPECT_EQ(database.Do("INSERT INTO t VALUES(4)"), SQLITE_OK);
    EXPECT_EQ(database.Ask("SELECT count(*) FROM t"), 3);
  }
}

TEST(Instruments, MemoryFailsWhenOrdered) {
  const Folder folder;
  Database database(folder.ledger());
  FaultyMalloc::Inject(1, 1'000'000);
  EXPECT_EQ(database.Do("CREATE TABLE t AS SELECT zeroblob(100000) AS x"), SQLITE_NOMEM);
  EXPECT_GT(FaultyMalloc::faults(), 0);
  FaultyMalloc::Heal();
  EXPECT_EQ(database.Do("CREATE TABLE t AS SELECT zeroblob(100000) AS x"), SQLITE_OK);
}

}  // namespace
}  // namespace tranche::torture
