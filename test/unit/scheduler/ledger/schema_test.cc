// Settings, versions and the way from one to the next.
#include "scheduler/ledger/schema.h"

#include <gmock/gmock.h>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::HasSubstr;

class SchemaTest : public LedgerTest {
 protected:
  Database Create() {
    auto database = Database::Open(options_.path, Access::kCreate);
    EXPECT_TRUE(database.ok()) << database.status();
    return std::move(*database);
  }
};

TEST_F(SchemaTest, EverySettingHoldsOnTheConnectionThatWrites) {
  Database database = Create();
  ASSERT_TRUE(ApplySettings(database).ok());
  const std::pair<const char*, const char*> settings[] = {
      {"journal_mode", "wal"},
      {"synchronous", "2"},
      {"foreign_keys", "1"},
      {"busy_timeout", "5000"},
      {"wal_autocheckpoint", "1000"},
      {"journal_size_limit", "67108864"},
      {"trusted_schema", "0"},
      {"cell_size_check", "1"},
      {"secure_delete", "0"},
      {"temp_store", "2"},
      {"mmap_size", "0"},
  };
  for (const auto& [name, value] : settings) {
    EXPECT_EQ(database.Text(fmt::format("PRAGMA {}", name)).value(), value) << name;
  }
}

TEST_F(SchemaTest, ASettingThatDoesNotHoldIsNamed) {
  // An immutable file stays in the journal mode it has.
  Create().Execute("CREATE TABLE one(a)").IgnoreError();
  auto database = Database::Open(options_.path, Access::kImmutable);
  ASSERT_TRUE(database.ok()) << database.status();
  const absl::Status status = ApplySettings(*database);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("journal_mode"));
}

TEST_F(SchemaTest, StepsRunOnceInOrderEachWithItsVersionAfterOneBackup) {
  const MigrationStep steps[] = {
      {1, "CREATE TABLE one(a);"}, {2, "CREATE TABLE two(a);"}, {3, "INSERT INTO two VALUES (3);"}};
  Database database = Create();
  int backups = 0;
  const auto backup = [&backups] {
    ++backups;
    return absl::OkStatus();
  };
  ASSERT_TRUE(Migrate(database, std::span(steps, 1), backup).ok());
  EXPECT_EQ(backups, 0);  // nothing to lose yet
  EXPECT_EQ(database.Integer("PRAGMA user_version").value(), 1);
  ASSERT_TRUE(Migrate(database, steps, backup).ok());
  EXPECT_EQ(backups, 1);
  EXPECT_EQ(database.Integer("PRAGMA user_version").value(), 3);
  EXPECT_EQ(database.Integer("PRAGMA application_id").value(), kApplicationId);
  ASSERT_TRUE(Migrate(database, steps, backup).ok());
  EXPECT_EQ(backups, 1);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM two").value(), 1);
}

TEST_F(SchemaTest, AFileOfVersionOneKeepsItsEntriesAndTakesTheNewKind) {
  Database database = Create();
  const auto backup = [] { return absl::OkStatus(); };
  ASSERT_TRUE(Migrate(database, MigrationSteps().first(1), backup).ok());
  const auto add = [&database](int id, int kind) {
    return database.Execute(fmt::format(
        "INSERT INTO entry VALUES ({}, NULL, {}, 1, 1, 1, 0, '', zeroblob(32))", id, kind));
  };
  ASSERT_TRUE(add(1, 7).ok());
  EXPECT_FALSE(add(2, 8).ok());
  ASSERT_TRUE(Migrate(database, MigrationSteps(), backup).ok());
  EXPECT_EQ(database.Integer("SELECT count(*) FROM entry").value(), 1);
  EXPECT_TRUE(add(2, 8).ok());
  EXPECT_TRUE(add(3, 11).ok());
  EXPECT_FALSE(add(4, 12).ok());
  EXPECT_FALSE(database.Execute("DELETE FROM entry WHERE id = 1").ok());
  EXPECT_EQ(database.Text("PRAGMA integrity_check").value(), "ok");
  EXPECT_EQ(database.Text("PRAGMA writable_schema").value(), "0");
}

TEST_F(SchemaTest, AStepThatFailsLeavesTheVersionBeforeIt) {
  const MigrationStep steps[] = {{1, "CREATE TABLE one(a);"},
                                 {2, "CREATE TABLE two(a); CREATE TABLE one(a);"}};
  Database database = Create();
  const auto backup = [] { return absl::OkStatus(); };
  EXPECT_FALSE(Migrate(database, steps, backup).ok());
  EXPECT_EQ(database.Integer("PRAGMA user_version").value(), 1);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM sqlite_schema").value(), 1);
}

TEST_F(SchemaTest, WithoutABackupNothingIsMigrated) {
  const MigrationStep steps[] = {{1, "CREATE TABLE one(a);"}, {2, "CREATE TABLE two(a);"}};
  Database database = Create();
  const auto refuse = [] { return absl::ResourceExhaustedError("no room"); };
  ASSERT_TRUE(Migrate(database, std::span(steps, 1), refuse).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Migrate(database, steps, refuse)));
  EXPECT_EQ(database.Integer("PRAGMA user_version").value(), 1);
}

TEST_F(SchemaTest, ThisVersionsStepsLeadFromAnEmptyFileToThisVersion) {
  Database database = Create();
  ASSERT_TRUE(CheckIdentity(database, IfEmpty::kAccept).ok());
  EXPECT_FALSE(CheckIdentity(database, IfEmpty::kRefuse).ok());
  ASSERT_TRUE(Migrate(database, MigrationSteps(), [] { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(CheckIdentity(database, IfEmpty::kRefuse).ok());
  EXPECT_EQ(database.Integer("PRAGMA user_version").value(), kSchemaVersion);
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
