// Hazards 49, 53 and 54: the process is killed at any instruction, the file is opened twice, or an
// older file is put back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "test/torture/process.h"
#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using ledger::SqliteLedger;
using Opened = absl::StatusOr<std::unique_ptr<SqliteLedger>>;
namespace fs = std::filesystem;

// Batches of a line of the writer; anything else fails the test.
std::size_t BatchesOf(const std::string& line) {
  const bool is_number = !line.empty() && line.find_first_not_of("0123456789") == std::string::npos;
  EXPECT_TRUE(is_number) << "expected a number of batches, found " << line;
  return is_number ? std::stoul(line) : 0;
}

// Starts a writer, kills it somewhere, and puts into the story what it may have written.
void LiveUntilKilled(const std::string& path, Story& story, std::mt19937_64& random) {
  const uint64_t seed = random();
  story.now = Noon() + std::chrono::hours(story.lives);
  WriterProcess writer({path, ++story.lives, seed, story.now});
  const bool while_opening = random() % 5 == 0;
  if (!while_opening) story.acknowledged = BatchesOf(writer.ReadLine());
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
  writer.Kill();
  for (std::string line = writer.ReadLine(); !line.empty(); line = writer.ReadLine()) {
    story.acknowledged = BatchesOf(line);
  }
  Load load(seed, story.lives, story.now, story.settled.Open());
  while (story.log.size() < story.acknowledged + kMostUnacknowledged) {
    story.log.push_back(load.Next());
  }
  story.now = load.now();
}

TEST(Kill, AtAnyInstructionLosesNothingThatWasAcknowledged) {
  const int64_t kills = Size(8, 50, 500);
  std::mt19937_64 random(PrintedSeed());
  const Folder folder;
  const std::string path = folder.ledger();
  Story story;
  std::size_t acknowledged = 0;
  for (int64_t kill = 1; kill <= kills; ++kill) {
    SCOPED_TRACE(fmt::format("kill {}", kill));
    LiveUntilKilled(path, story, random);
    acknowledged += story.acknowledged;
    const Log log = story.log;
    const Opened ledger = SqliteLedger::Open(NextLife(story, path));
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    ASSERT_TRUE(Settle(story, path, **ledger));
    const Log kept(log.begin(), log.end() - static_cast<std::ptrdiff_t>(story.log.size()));
    EXPECT_TRUE(RepeatsChangeNothing(kept, **ledger));
    story.log.clear();
    (*ledger)->Close();
    ASSERT_TRUE(Verified(path));
  }
  fmt::print("{} kills, {} batches acknowledged\n", kills, acknowledged);
  EXPECT_GT(acknowledged, static_cast<std::size_t>(kills));
}

TEST(SecondProcess, IsRefusedWhileTheFirstLivesAndAdmittedOnceItIsKilled) {
  const Folder folder;
  Story story;
  WriterProcess first({folder.ledger(), ++story.lives, 1, story.now});
  BatchesOf(first.ReadLine());
  const Opened refused = SqliteLedger::Open(NextLife(story, folder.ledger()));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << refused.status();
  EXPECT_NE(first.ReadLine(), "") << "expected the first process to go on";
  first.Kill();
  const Opened admitted = SqliteLedger::Open(NextLife(story, folder.ledger()));
  EXPECT_TRUE(admitted.ok()) << admitted.status();
}

// Writes some batches in a life of its own.
void Live(const std::string& path, Story& story, int batches) {
  const Opened ledger = SqliteLedger::Open(NextLife(story, path));
  ASSERT_TRUE(ledger.ok()) << ledger.status();
  Load load(7, story.lives, story.now, story.settled.Open());
  for (int i = 0; i < batches; ++i) {
    Batch batch = load.Next();
    story.settled.Apply(batch);
    ASSERT_TRUE(AppendAndWait(**ledger, std::move(batch)));
  }
  story.now = load.now();
  (*ledger)->Close();
}

TEST(OlderFile, IsRefusedUntilTheRollbackIsAccepted) {
  const Folder folder;
  const Folder kept;
  const std::string path = folder.ledger();
  Story story;
  Live(path, story, 20);
  fs::copy_file(path, kept.ledger());
  Story older = story;
  Live(path, story, 20);

  fs::copy_file(kept.ledger(), path, fs::copy_options::overwrite_existing);
  older.lives = story.lives;
  ledger::Options options = NextLife(older, path);
  const Opened refused = SqliteLedger::Open(options);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss) << refused.status();

  options.accept_rollback = true;
  {
    const Opened accepted = SqliteLedger::Open(options);
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    EXPECT_TRUE(Settle(older, path, **accepted));
  }
  EXPECT_TRUE(SqliteLedger::Open(NextLife(older, path)).ok()) << "accepted once is accepted";
}

}  // namespace
}  // namespace tranche::torture
