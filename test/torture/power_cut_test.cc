// Hazard 48: the power goes off at any write. What was acknowledged is there, nothing is there in
// part, every rule holds, and the ledger goes on from there.
//   TRANCHE_TORTURE=nightly TRANCHE_SEED=7 torture_tests --gtest_filter='PowerCut*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

#include "test/fakes/power_cut_vfs.h"
#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using fakes::PowerCutVfs;
using ledger::SqliteLedger;
namespace fs = std::filesystem;

// One moment at which the power could have gone off.
struct Cut {
  int64_t operation = 0;
  PowerCutVfs::Disk disk;
  std::optional<std::string> head;  // of the file beside the database
  std::size_t acknowledged = 0;
};

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class PowerCuts {
 public:
  explicit PowerCuts(uint64_t seed) : random_(seed) {}

  // One life under load from where the last one ended, with cuts on the way; checks each of them
  // and goes on from the last.
  int64_t Live(int64_t most_cuts) {
    const std::string path = folder_->ledger();
    // Lives have few commits or enough of them for checkpoints on the way.
    const auto bursts = static_cast<int64_t>(Below(8) == 0 ? 400 : 5 + Below(60));
    next_cut_ = 1 + static_cast<int64_t>(Below(60));
    mean_gap_ = 1 + static_cast<uint64_t>(bursts * 40 / most_cuts);
    std::vector<Cut> cuts;
    const Story before = story_;
    {
      PowerCutVfs vfs;
      acknowledged_ = 0;
      vfs.SetWatcher([&](int64_t operation) {
        if (operation != next_cut_ || static_cast<int64_t>(cuts.size()) == most_cuts) return;
        next_cut_ += 1 + static_cast<int64_t>(cut_random_() % (2 * mean_gap_));
        cuts.push_back(Take(vfs, operation));
      });
      RunLoad(path, bursts);
    }
    std::unique_ptr<Folder> next_folder;
    Story next_story;
    for (const Cut& cut : cuts) {
      SCOPED_TRACE(fmt::format("life {}, cut at operation {}", story_.lives, cut.operation));
      auto to = std::make_unique<Folder>();
      Story story = before;
      story.log = story_.log;
      story.lives = story_.lives;
      story.now = story_.now;
      story.acknowledged = cut.acknowledged;
      const auto earlier = Below(static_cast<uint64_t>(&cut - cuts.data()) + 1);
      CheckAfter(cut, cuts[earlier], story, *to);
      if (testing::Test::HasFailure()) return 0;
      next_story = std::move(story);
      next_folder = std::move(to);
    }
    if (next_folder != nullptr) {
      folder_ = std::move(next_folder);
      story_ = std::move(next_story);
    } else {
      for (const Batch& batch : story_.log) story_.settled.Apply(batch);
    }
    return static_cast<int64_t>(cuts.size());
  }

 private:
  uint64_t Below(uint64_t limit) { return random_() % limit; }

  Cut Take(const PowerCutVfs& vfs, int64_t operation) {
    const fs::path head = folder_->ledger() + ".head";
    Cut cut{operation, vfs.disk(), std::nullopt, acknowledged_};
    if (fs::exists(head)) cut.head = ReadAll(head);
    return cut;
  }

  void RunLoad(const std::string& path, int64_t bursts) {
    absl::StatusOr<std::unique_ptr<SqliteLedger>> ledger =
        SqliteLedger::Open(NextLife(story_, path));
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    story_.log.clear();
    Load load(random_(), story_.lives, story_.now, story_.settled.Open());
    for (int64_t burst = 0; burst < bursts; ++burst) {
      for (uint64_t i = 1 + Below(5); i > 0; --i) {
        Batch batch = load.Next();
        story_.log.push_back(batch);
        (*ledger)->Append(std::move(batch.events), std::move(batch.closings));
      }
      (*ledger)->WhenCommitted([this, count = story_.log.size()](bool done) {
        if (done) acknowledged_ = count;
      });
      if (Below(10) == 0) (*ledger)->Heartbeat(load.now(), {{"team-a", {}}});
      if (Below(3) == 0) continue;
      ASSERT_TRUE(WaitCommitted(**ledger));
    }
    story_.now = load.now();
    (*ledger)->Close();
    EXPECT_EQ(acknowledged_, story_.log.size());
  }

  // The ledger writes this file beside itself, syncs it and renames it: it is as it was or older.
  // A disk that forgets a sync leaves less of it, which a check of the ledger must name and a start
  // must live with. True: all of it is there.
  bool RestoreHead(const Cut& cut, const Cut& earlier, const Folder& folder) {
    std::optional<std::string> head = Below(3) == 0 ? earlier.head : cut.head;
    if (!head.has_value()) return true;
    const std::size_t whole = head->size();
    if (Below(4) == 0) head->resize(Below(whole + 1));
    std::ofstream(folder.ledger() + ".head") << *head;
    return head->size() == whole;
  }

  // Power is back: opens what is left, looks at it, and brings in what was lost.
  void CheckAfter(const Cut& cut, const Cut& earlier, Story& story, const Folder& folder) {
    PowerCutVfs::Restore(cut.disk, random_(), folder_->path(), folder.path());
    const bool whole_head = RestoreHead(cut, earlier, folder);
    const Log log = story.log;
    if (whole_head && cut.acknowledged > 0 && Below(2) == 0) {
      EXPECT_TRUE(Verified(folder.ledger()));
    }
    const absl::StatusOr<std::unique_ptr<SqliteLedger>> opened =
        SqliteLedger::Open(NextLife(story, folder.ledger()));
    ASSERT_TRUE(opened.ok()) << opened.status();
    SqliteLedger& ledger = **opened;
    ASSERT_TRUE(Settle(story, folder.ledger(), ledger));
    const Log lost = std::move(story.log);
    story.log.clear();
    const Log kept(log.begin(), log.end() - static_cast<std::ptrdiff_t>(lost.size()));
    EXPECT_TRUE(RepeatsChangeNothing(kept, ledger));
    for (const Batch& batch : lost) {
      ledger.Append(batch.events, batch.closings);
      story.settled.Apply(batch);
    }
    EXPECT_TRUE(WaitCommitted(ledger));
    ledger.Close();
    EXPECT_TRUE(Verified(folder.ledger()));
  }

  std::mt19937_64 random_;
  std::mt19937_64 cut_random_{random_()};  // of the writer's thread
  std::unique_ptr<Folder> folder_ = std::make_unique<Folder>();
  Story story_;
  std::atomic<std::size_t> acknowledged_ = 0;
  int64_t next_cut_ = 0;
  uint64_t mean_gap_ = 1;
};

TEST(PowerCut, LosesNothingThatWasAcknowledgedAndLeavesNothingHalfDone) {
  const int64_t wanted = Size(30, 300, 10'000);
  std::mt19937_64 random(PrintedSeed());
  int64_t done = 0;
  while (done < wanted) {
    // A file has a few lives, then a new one begins.
    PowerCuts cuts(random());
    for (int life = 0; life < 5 && done < wanted; ++life) {
      done += cuts.Live(10);
      if (HasFailure()) return;
    }
  }
  fmt::print("{} power cuts\n", done);
}

}  // namespace
}  // namespace tranche::torture
