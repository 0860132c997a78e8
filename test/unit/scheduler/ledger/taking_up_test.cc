// What a start makes of files and places that are not as they should be: which error, with which
// words, and that nothing is written to what is not trusted.
#include <gmock/gmock.h>

#include <functional>

#include "scheduler/ledger/backup.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/history.h"
#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/schema.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Overwrite(const std::string& path, std::size_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file << bytes;
}

class TakingUp : public LedgerTest {
 protected:
  // Files as a process leaves them that is killed: what it committed last is in the log alone.
  void KilledWith(std::vector<MeterEvent> events) {
    const std::string kept = folder_ + "/kept";
    std::filesystem::create_directory(kept);
    {
      const auto ledger = MustOpen();
      for (MeterEvent& event : events) Write(*ledger, {std::move(event)});
      for (const char* end : {"", "-wal", ".head"}) {
        std::filesystem::copy_file(options_.path + end, kept + "/ledger.db" + end);
      }
    }
    std::filesystem::remove_all(options_.path + "-shm");
    for (const char* end : {"", "-wal", ".head"}) {
      std::filesystem::rename(kept + "/ledger.db" + end, options_.path + end);
    }
  }
};

struct Place {
  const char* name;
  std::function<void(const std::string& path)> damage;
  absl::StatusCode code;
  const char* says;
  // Where the log has the page, the one in the file is not even looked at.
  enum class Log : uint8_t { kBeside, kFoldedIn } log;
};

const Place kPlaces[] = {
    {"magic zeroed", [](const std::string& path) { Overwrite(path, 0, std::string(16, '\0')); },
     absl::StatusCode::kDataLoss, "found no SQLite database", Place::Log::kFoldedIn},
    {"page size zeroed", [](const std::string& path) { Overwrite(path, 16, std::string(2, '\0')); },
     absl::StatusCode::kDataLoss, "found no SQLite database", Place::Log::kFoldedIn},
    {"cut to nothing", [](const std::string& path) { std::filesystem::resize_file(path, 0); },
     absl::StatusCode::kDataLoss, "found an empty file", Place::Log::kBeside},
    {"gone", [](const std::string& path) { std::filesystem::remove(path); },
     absl::StatusCode::kDataLoss, "found no file", Place::Log::kBeside},
    {"another application's", [](const std::string& path) { Overwrite(path, 68, "ABCD"); },
     absl::StatusCode::kDataLoss, "expected a Tranche ledger", Place::Log::kFoldedIn},
    {"a version that cannot be", [](const std::string& path) { Overwrite(path, 60, "\1"); },
     absl::StatusCode::kDataLoss, "version 1677722", Place::Log::kFoldedIn},
    {"a newer version",
     [](const std::string& path) {
       Overwrite(path, 63, std::string(1, static_cast<char>(kSchemaVersion + 1)));
     },
     absl::StatusCode::kFailedPrecondition, "written by a newer Tranche", Place::Log::kFoldedIn},
    {"a log with a flipped bit",
     [](const std::string& path) { Overwrite(path + "-wal", 4'200, "x"); },
     absl::StatusCode::kDataLoss, "an older or another file was put in its place",
     Place::Log::kBeside},
    {"no log", [](const std::string& path) { std::filesystem::remove(path + "-wal"); },
     absl::StatusCode::kDataLoss, "", Place::Log::kBeside},
};

TEST_F(TakingUp, WhatIsNotTrustedIsLeftAsItIsAndItsLogIsKept) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    KilledWith({Open("a", Minute(0)), Open("b", Minute(1))});
    if (place.log == Place::Log::kFoldedIn) Sql("PRAGMA wal_checkpoint(TRUNCATE)");
    place.damage(options_.path);
    const std::string file = BytesOf(options_.path);
    const std::string log = BytesOf(options_.path + "-wal");
    for (int i = 0; i < 2; ++i) {
      const absl::Status refused = OpenError();
      EXPECT_EQ(refused.code(), place.code) << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr(place.says));
    }
    EXPECT_EQ(BytesOf(options_.path), file);
    EXPECT_EQ(BytesOf(options_.path + "-wal.kept"), log);
  }
}

TEST_F(TakingUp, AnIdThatIsDamagedIsFoundBeforeAnythingIsWritten) {
  WriteFile({Open("a", Minute(0))});  // closed in order, which a writer takes back first
  Sql("UPDATE meta SET seal = seal / 2 + 1 WHERE key = 'id_low'");
  const std::string file = BytesOf(options_.path);
  const absl::Status refused = OpenError();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("id_low"));
  EXPECT_EQ(BytesOf(options_.path), file);
}

TEST_F(TakingUp, PlacesThatCanNeverHoldALedgerAreWrongPaths) {
  const std::string path = options_.path;
  std::filesystem::create_directory(path);
  EXPECT_TRUE(absl::IsInvalidArgument(OpenError())) << OpenError();
  options_.path = "/dev/null";
  EXPECT_TRUE(absl::IsInvalidArgument(OpenError())) << OpenError();
  options_.path = folder_ + "/none/ledger.db";
  EXPECT_TRUE(absl::IsNotFound(OpenError())) << OpenError();
}

TEST_F(TakingUp, FileSystemsOverANetworkAreToldApart) {
  for (const auto& [magic, name] : {std::pair<uint64_t, const char*>{0x6969, "NFS"},
                                    {0x517b, "SMB"},
                                    {0xff534d42, "CIFS"},
                                    {0xfe534d42, "SMB2"},
                                    {0x65735546, "FUSE"},
                                    {0xef53, ""},         // ext4
                                    {0x58465342, ""},     // XFS
                                    {0x9123683e, ""},     // Btrfs
                                    {0x01021994, ""},     // tmpfs
                                    {0x794c7630, ""}}) {  // overlayfs
    EXPECT_EQ(NetworkFileSystem(magic), name) << magic;
  }
  EXPECT_TRUE(CheckPlace(options_.path, NetworkFiles::kRefuse).ok());
}

TEST_F(TakingUp, AnOlderFileThatIsAcceptedGoesItsOwnWay) {
  WriteFile({Open("a", Minute(0))});
  std::filesystem::copy_file(options_.path, folder_ + "/old");
  std::string id;
  {
    const auto ledger = MustOpen();
    id = ledger->health().id;
    Write(*ledger, {Open("b", Minute(1))});
  }
  std::filesystem::rename(folder_ + "/old", options_.path);
  options_.accept_rollback = true;
  const std::string fork = MustOpen()->health().id;
  // Checkpoints of the file that went on are news to it.
  EXPECT_NE(fork, id);
  // Accepted again, there is nothing to accept.
  EXPECT_EQ(MustOpen()->health().id, fork);
}

TEST_F(TakingUp, AMomentTooFarAheadIsNotBelieved) {
  {
    const auto ledger = MustOpen();
    Write(*ledger, {Open("a", Minute(0))});
    ledger->Heartbeat(kTen + std::chrono::hours(24 * 365 * 70), {{"team-a", {}}});
    EXPECT_TRUE(Committed(*ledger));
  }
  options_.most_ahead = std::chrono::hours(24);
  EXPECT_TRUE(absl::IsDataLoss(OpenError()));
  EXPECT_THAT(std::string(OpenError().message()), HasSubstr("repair-clock"));
  const absl::StatusOr<Instant> repaired = SqliteLedger::RepairClock(options_.path, Minute(2));
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  const auto ledger = MustOpen();
  ASSERT_NE(ledger, nullptr);
  EXPECT_LE(ledger->last_time(), Minute(2));
  EXPECT_THAT(ledger->history().decay, IsEmpty());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      SqliteLedger::RepairClock(options_.path, Minute(2)).status()));  // it is in use
}

TEST_F(TakingUp, EntriesOfAWrongClockCannotBeTakenBack) {
  WriteFile({Open("a", Minute(0)), Open("b", kTen + std::chrono::hours(24 * 400))});
  const absl::Status refused = SqliteLedger::RepairClock(options_.path, Minute(2)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(MustOpen()->last_time(), kTen + std::chrono::hours(24 * 400));
}

TEST_F(TakingUp, TheEpochOfAnOldFileCountsToo) {
  options_.epoch = 5;
  WriteFile({Open("a", Minute(0)), Close("a", Minute(1))});
  options_.now = kTen + 2 * kMeterHorizon;
  options_.epoch = 4;
  EXPECT_TRUE(absl::IsAborted(OpenError())) << OpenError();
  options_.epoch = 5;
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(TakingUp, AHeadFileThatIsGarbageIsTold) {
  WriteFile({Open("a", Minute(0))});
  std::ofstream(options_.path + ".head", std::ios::trunc) << "garbage";
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("rule 6: expected an entry's number and hash")));
  {
    const auto ledger = MustOpen();
    EXPECT_EQ(ledger->health().problems.count(LedgerFault::kHead), 1U);
    Write(*ledger, {Open("b", Minute(1))});
    EXPECT_THAT(ledger->health().problems, IsEmpty());
  }
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(TakingUp, AHeadFileThatRemembersMoreIsTold) {
  WriteFile({Open("a", Minute(0))});
  std::ofstream(options_.path + ".head", std::ios::trunc) << "7 " << std::string(64, 'a') << '\n';
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("rule 6: expected entry 7")));
}

// ---- intervals whose end got lost
// ----------------------------------------------------------------

TEST_F(TakingUp, APodThatIsOpenedAgainEndsWhatWasOpen) {
  WriteFile({Open("a", Minute(0)), Open("a", Minute(5), 1), Open("b", Minute(5))});
  EXPECT_THAT(Faults(), IsEmpty());
  EXPECT_EQ(Report(Minute(10)), "team-a h200 0.250");  // a 5 and 5 minutes, b 5
  const auto ledger = MustOpen();
  const std::vector<OpenInterval>& open = ledger->history().open;
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(open[0].interval, 1);
  const auto lost =
      std::find_if(ledger->history().events.begin(), ledger->history().events.end(),
                   [](const MeterEvent& event) { return event.kind == MeterKind::kClose; });
  ASSERT_NE(lost, ledger->history().events.end());
  EXPECT_TRUE(lost->estimated);
  EXPECT_EQ(lost->note, "EndLost");
  EXPECT_EQ(lost->at, Minute(5));
}

TEST_F(TakingUp, ALostEndIsNeverAfterTheNextBeginning) {
  WriteFile({Open("a", Minute(5)), Open("a", Minute(3), 1)});
  EXPECT_THAT(Faults(), IsEmpty());
  const auto ledger = MustOpen();
  EXPECT_EQ(ledger->history().open[0].since, Minute(5));
}

// Files written before have such pairs.
TEST(HistoryBuilderTest, OfTwoOpenIntervalsOfAPodTheNewestStays) {
  const AccountTable accounts;
  HistoryBuilder builder(kTen, accounts, [](int64_t, EntryKind) { return EntryRow(); });
  int64_t id = 0;
  for (const auto& [uid, number, minute] : {std::tuple{"a", 0, 0}, {"a", 2, 7}, {"b", 0, 1}}) {
    EntryRow entry;
    entry.id = ++id;
    entry.interval = id;
    entry.at = Minute(minute).time_since_epoch().count();
    entry.opened = {id, uid, number, {"ns-a", uid}, "node-1", "team-a", "training", ""};
    ASSERT_TRUE(builder.Add(entry).ok());
  }
  MeterHistory history;
  const auto ends = builder.Finish({1, 2, 3}, history);
  ASSERT_TRUE(ends.ok()) << ends.status();
  ASSERT_EQ(ends->size(), 1U);
  EXPECT_EQ(ends->front().uid, PodUid("a"));
  EXPECT_EQ(ends->front().interval, 0);
  EXPECT_EQ(ends->front().at, Minute(7));
  ASSERT_EQ(history.open.size(), 2U);
  EXPECT_EQ(history.open[0].interval, 2);
  EXPECT_EQ(history.events.size(), 4U);
}

// ---- copies
// --------------------------------------------------------------------------------------

TEST_F(TakingUp, TheNewestCopyIsKnownByItsName) {
  EXPECT_EQ(NewestBackup(options_.path), std::nullopt);
  const auto ledger = MustOpen();
  Write(*ledger, {Open("a", Minute(0))});
  ASSERT_TRUE(ledger->Backup(Minute(0)).ok());
  ASSERT_TRUE(ledger->Backup(Minute(3)).ok());
  std::ofstream(options_.path + ".backup-20990101T000000.000Z.part").flush();
  EXPECT_EQ(NewestBackup(options_.path), Minute(3));
  // Somebody's own copies beside them.
  std::ofstream(options_.path + ".backup-20990101T000000Z").flush();
  std::ofstream(options_.path + ".backup-before-the-move").flush();
  EXPECT_EQ(NewestBackup(options_.path), Minute(3));
  EXPECT_EQ(NewestBackup("no-ledger-here.db"), std::nullopt) << "in the folder of the process";
}

TEST_F(TakingUp, ACopyIsNamedAfterItsMoment) {
  WriteFile({Open("a", Minute(0))});
  const std::pair<Instant, const char*> rows[] = {
      {Minute(0), ".backup-20260301T100000.000Z"},
      {Minute(0) + Millis(7), ".backup-20260301T100000.007Z"},
      {Instant(Millis(-1)), ".backup-19691231T235959.999Z"},
  };
  for (const auto& [at, name] : rows) {
    const absl::StatusOr<std::string> copy = BackupLedger(options_.path, at, 7);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(*copy, options_.path + name);
  }
}

TEST_F(TakingUp, ACopyThatCannotHaveItsNameOrIsDamagedIsNone) {
  WriteFile({Open("a", Minute(0))});
  const std::string taken = options_.path + ".backup-20260301T100000.000Z";
  std::filesystem::create_directories(taken + "/somebodys");
  EXPECT_EQ(BackupLedger(options_.path, Minute(0), 7).status().code(),
            absl::StatusCode::kUnavailable);
  std::filesystem::remove_all(taken);
  EXPECT_EQ(Sql("INSERT INTO posting VALUES (99, 1, 1, 1)"), "");
  const absl::Status damaged = BackupLedger(options_.path, Minute(1), 7).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_EQ(NewestBackup(options_.path), std::nullopt);
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
