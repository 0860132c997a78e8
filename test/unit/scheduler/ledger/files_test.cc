// The small files beside a ledger, where the disk or somebody's hands are in the way.
#include "scheduler/ledger/files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

namespace fs = std::filesystem;
using Code = absl::StatusCode;

class FilesTest : public LedgerTest {
 protected:
  void Put(const std::string& suffix, const std::string& text) const {
    std::ofstream(options_.path + suffix, std::ios::binary) << text;
  }
  // In place of a file of ours stands something else.
  void Link(const std::string& target, const std::string& suffix) const {
    fs::remove_all(options_.path + suffix);
    fs::create_symlink(target, options_.path + suffix);
  }
  const std::string hash_ = std::string(64, 'a');
  const Head head_{7, hash_};
};

TEST_F(FilesTest, AHeadIsReadAsItWasWrittenOrNotAtAll) {
  EXPECT_EQ(ReadHead(options_.path).value(), std::nullopt);
  ASSERT_TRUE(WriteHead(options_.path, head_).ok());
  EXPECT_EQ(ReadHead(options_.path).value(), head_);
  const std::string texts[] = {"",
                               "7",
                               "7 ",
                               "x " + hash_ + "\n",
                               "0 " + hash_ + "\n",
                               "-7 " + hash_ + "\n",
                               "7x" + hash_ + "\n",
                               "7 " + hash_,
                               "7 " + hash_ + "a\n",
                               "7 " + hash_ + "aa",
                               "99999999999999999999 " + hash_ + "\n"};
  for (const std::string& text : texts) {
    Put(".head", text);
    EXPECT_TRUE(absl::IsDataLoss(ReadHead(options_.path).status())) << text;
  }
}

TEST_F(FilesTest, AHeadThatCannotBeReadIsNotTakenForNone) {
  Link(options_.path + ".head", ".head");  // to itself
  EXPECT_EQ(ReadHead(options_.path).status().code(), Code::kUnavailable);
  fs::remove(options_.path + ".head");
  fs::create_directory(options_.path + ".head");
  EXPECT_EQ(ReadHead(options_.path).status().code(), Code::kUnavailable);
}

TEST_F(FilesTest, AHeadThatCannotBeWrittenIsToldByItsCause) {
  EXPECT_EQ(WriteHead(folder_ + "/gone/ledger.db", head_).code(), Code::kNotFound);
  // A file system where nobody may make files.
  EXPECT_EQ(WriteHead("/sys/ledger.db", head_).code(), Code::kPermissionDenied);
  Link("/dev/full", ".head.new");
  EXPECT_EQ(WriteHead(options_.path, head_).code(), Code::kUnavailable) << "no room";
  Link("/dev/null", ".head.new");
  EXPECT_EQ(WriteHead(options_.path, head_).code(), Code::kUnavailable) << "cannot be synced";
  fs::remove(options_.path + ".head.new");
  fs::create_directories(options_.path + ".head/somebodys");
  EXPECT_EQ(WriteHead(options_.path, head_).code(), Code::kUnavailable) << "the name is taken";
}

TEST_F(FilesTest, ALockThatCannotBeMadeIsNotAnothersProcess) {
  fs::create_directory(options_.path + ".lock");
  EXPECT_EQ(LockLedger(options_.path).status().code(), Code::kUnavailable);
}

TEST_F(FilesTest, AReserveIsThereInFullOrNotAtAll) {
  MakeReserve(options_.path);
  EXPECT_GT(FileBytes(options_.path + ".reserve"), 0);
  EXPECT_TRUE(FreeReserve(options_.path));
  EXPECT_FALSE(FreeReserve(options_.path));
  Link("/dev/null", ".reserve");
  MakeReserve(options_.path);
  EXPECT_FALSE(fs::exists(fs::symlink_status(options_.path + ".reserve")));
  MakeReserve(folder_ + "/gone/ledger.db");
  EXPECT_FALSE(fs::exists(folder_ + "/gone"));
}

TEST_F(FilesTest, AFolderIsSyncedOrTheFailureTold) {
  EXPECT_TRUE(SyncFolder(options_.path).ok());
  EXPECT_TRUE(SyncFolder("ledger.db").ok()) << "the folder of the process";
  EXPECT_EQ(SyncFolder(folder_ + "/gone/ledger.db").code(), Code::kNotFound);
  EXPECT_EQ(SyncFolder("/proc/ledger.db").code(), Code::kUnavailable);
}

TEST_F(FilesTest, ALogIsCopiedAsideOnceOrTheFailureTold) {
  EXPECT_TRUE(KeepWalAside(options_.path).ok()) << "there is none";
  Put("-wal", "pages");
  fs::create_directories(options_.path + "-wal.kept/somebodys");
  EXPECT_FALSE(KeepWalAside(options_.path).ok());
  fs::remove_all(options_.path + "-wal.kept");
  EXPECT_TRUE(KeepWalAside(options_.path).ok());
  EXPECT_EQ(FileBytes(options_.path + "-wal.kept"), 5);
}

TEST_F(FilesTest, ADiskThatDoesNotAnswerIsNoWrongPath) {
  EXPECT_EQ(CheckPlace(folder_ + "/gone/ledger.db", NetworkFiles::kRefuse).code(), Code::kNotFound);
  EXPECT_TRUE(
      CheckPlace(folder_ + "/" + std::string(300, 'x') + "/ledger.db", NetworkFiles::kRefuse).ok());
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
