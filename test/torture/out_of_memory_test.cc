// Hazard 51: SQLite gets no memory at its n-th request. Nothing crashes, and nothing that was
// acknowledged is lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "test/fakes/faulty_malloc.h"
#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using fakes::FaultyMalloc;
using ledger::SqliteLedger;
using Opened = absl::StatusOr<std::unique_ptr<SqliteLedger>>;

class OutOfMemory : public testing::Test {
 protected:
  void TearDown() override { FaultyMalloc::Heal(); }

  // A life in which requests fail somewhere; everything appended is in the story.
  void LiveWithLittleMemory(Story& story, const std::string& path) {
    const Opened ledger = SqliteLedger::Open(NextLife(story, path));
    if (!ledger.ok()) return;
    Load load(3, story.lives, story.now, story.settled.Open());
    for (int i = 0; i < 12; ++i) {
      Batch batch = load.Next();
      story.log.push_back(batch);
      if (AppendAndWait(**ledger, std::move(batch))) story.acknowledged = story.log.size();
      if (i == 6) (*ledger)->Heartbeat(load.now(), {{"team-a", {}}});
    }
    story.now = load.now();
    const bool failed_for_long = FaultyMalloc::faults() > 1;
    FaultyMalloc::Heal();
    for (int tries = 0; !WaitCommitted(**ledger); ++tries) {
      ASSERT_LT(tries, 3000) << (*ledger)->health().problem;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    story.acknowledged = story.log.size();
    if (failed_for_long) (*ledger)->Close();
  }
};

TEST_F(OutOfMemory, NeverCrashesAndLosesNothingAcknowledged) {
  const Folder folder;
  const std::string path = folder.ledger();
  Story story;
  FaultyMalloc::Inject(1'000'000'000, 1);
  LiveWithLittleMemory(story, path);
  const int64_t requests = FaultyMalloc::allocations();
  const int64_t places = std::min(requests, Size(10, 80, 1500));
  int64_t struck = 0;
  for (int64_t place = 0; place < places; ++place) {
    const int64_t n = 1 + place * requests / places;
    SCOPED_TRACE(fmt::format("request {} of {}", n, requests));
    FaultyMalloc::Inject(n, place % 2 == 0 ? 1 : 100);
    LiveWithLittleMemory(story, path);
    if (HasFatalFailure()) return;
    struck += FaultyMalloc::faults() > 0 ? 1 : 0;
    FaultyMalloc::Heal();
    const Opened ledger = SqliteLedger::Open(NextLife(story, path));
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    ASSERT_TRUE(Settle(story, path, **ledger));
    EXPECT_TRUE(story.log.empty());
    (*ledger)->Close();
    ASSERT_TRUE(Verified(path));
  }
  fmt::print("{} of {} places struck\n", struck, places);
  EXPECT_GT(struck, places / 2);
}

}  // namespace
}  // namespace tranche::torture
