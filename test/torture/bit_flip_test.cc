// Hazard 52: a byte of the file or the WAL changes on the disk. Open or Verify says so, or every
// figure is still right; never a wrong answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using ledger::SqliteLedger;
using Opened = absl::StatusOr<std::unique_ptr<SqliteLedger>>;
namespace fs = std::filesystem;

struct Flip {
  std::string file;
  int64_t offset = 0;
  char mask = 0;
};

Flip AnyFlip(const std::string& folder, std::mt19937_64& random) {
  const fs::path wal = folder + "/ledger.db-wal";
  const bool in_wal = fs::exists(wal) && random() % 2 == 0;
  Flip flip;
  flip.file = in_wal ? "ledger.db-wal" : "ledger.db";
  const auto size = fs::file_size(fs::path(folder) / flip.file);
  flip.offset = static_cast<int64_t>(random() % size);
  flip.mask = static_cast<char>(1 + random() % 255);
  return flip;
}

void Do(const Flip& flip, const std::string& folder) {
  std::fstream file(fs::path(folder) / flip.file, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(flip.offset);
  char byte = 0;
  file.get(byte);
  file.seekp(flip.offset);
  file.put(static_cast<char>(byte ^ flip.mask));
}

// Whether somebody noticed; else the figures in `found`.
bool Detected(Story story, const std::string& path, bool verify_first,
              std::vector<std::string>& found) {
  if (verify_first && !Verified(path)) return true;
  const Opened ledger = SqliteLedger::Open(NextLife(story, path));
  if (!ledger.ok()) return true;
  const auto figures = FiguresOf(path, (*ledger)->history(), story.now);
  if (!figures.ok()) return true;
  found = *figures;
  (*ledger)->Close();
  return !Verified(path);
}

void FlipMany(const Story& story, const std::string& folder, int64_t flips,
              std::mt19937_64& random) {
  const std::vector<std::string> expected = story.settled.Figures(story.now);
  int64_t detected = 0;
  for (int64_t i = 0; i < flips; ++i) {
    const Folder copy;
    CopyLedger(folder, copy.path());
    const Flip flip = AnyFlip(copy.path(), random);
    Do(flip, copy.path());
    std::vector<std::string> found;
    if (Detected(story, copy.ledger(), random() % 2 == 0, found)) {
      ++detected;
      continue;
    }
    EXPECT_TRUE(SameFigures(found, expected))
        << fmt::format("{} at offset {} xor {:#04x}", flip.file, flip.offset,
                       static_cast<unsigned char>(flip.mask));
  }
  fmt::print("{} flips, {} detected, the others harmless\n", flips, detected);
  EXPECT_GT(detected, 0);
}

class BitFlips : public testing::Test {
 protected:
  // A ledger of two lives; `living` gets a copy taken while the last one has all in its WAL.
  void SetUp() override {
    for (int life = 0; life < 2; ++life) {
      const Opened ledger = SqliteLedger::Open(NextLife(story_, folder_.ledger()));
      ASSERT_TRUE(ledger.ok()) << ledger.status();
      Load load(random_(), story_.lives, story_.now, story_.settled.Open());
      for (int i = 0; i < 60; ++i) {
        Batch batch = load.Next();
        story_.settled.Apply(batch);
        ASSERT_TRUE(AppendAndWait(**ledger, std::move(batch)));
      }
      story_.now = load.now();
      if (life == 1) CopyLedger(folder_.path(), living_.path());
      (*ledger)->Close();
    }
  }

  std::mt19937_64 random_{PrintedSeed()};
  Folder folder_;
  Folder living_;
  Story story_;
};

TEST_F(BitFlips, AfterACloseAreDetectedOrHarmless) {
  FlipMany(story_, folder_.path(), Size(10, 100, 500), random_);
}

TEST_F(BitFlips, AfterAKillAreDetectedOrHarmless) {
  FlipMany(story_, living_.path(), Size(10, 100, 500), random_);
}

}  // namespace
}  // namespace tranche::torture
