// Memory runs out while a ledger is asked, copied, opened or mended: the answer is the right one or
// an error, a file is never accused of what it does not have, and it stays as good as it was.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/ledger/backup.h"
#include "test/fakes/faulty_malloc.h"
#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using fakes::FaultyMalloc;
using ledger::Reader;
using ledger::SqliteLedger;
using Told = absl::StatusOr<std::string>;

class QuestionsOutOfMemory : public testing::Test {
 protected:
  QuestionsOutOfMemory() {
    const auto ledger = SqliteLedger::Open(NextLife(story_, path_));
    EXPECT_TRUE(ledger.ok()) << ledger.status();
    RestoredUse use;
    use.of = RestoredUse::Of::kLeaf;
    use.name = "team-a";
    use.mark = {"0000000000000000000000000000000a", 40, Noon()};
    use.use = {"h200", {Noon() - std::chrono::hours(10), Noon()}, {kGpuHour, kGpuHour}};
    (*ledger)->Restore({use});
    Load load(5, story_.lives, story_.now, {});
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(AppendAndWait(**ledger, load.Next()));
    story_.now = load.now();
    (*ledger)->Heartbeat(story_.now, {{"team-a", {}}});
    EXPECT_TRUE(WaitCommitted(**ledger));
    (*ledger)->Close();
  }
  void TearDown() override { FaultyMalloc::Heal(); }

  Told Asked(const std::function<Told(Reader&)>& question) const {
    absl::StatusOr<Reader> reader = Reader::Open(path_);
    if (!reader.ok()) return reader.status();
    return question(*reader);
  }
  ledger::ReportQuery Query() const {
    ledger::ReportQuery query;
    query.from = Noon() - std::chrono::hours(3);
    query.now = story_.now;
    return query;
  }
  // The same at every place where memory can run out, for good.
  void Ask(const char* what, const std::function<Told()>& question) const {
    FaultyMalloc::Inject(1'000'000'000, 1);
    const Told healthy = question();
    const int64_t requests = FaultyMalloc::allocations();
    FaultyMalloc::Heal();
    ASSERT_TRUE(healthy.ok()) << what << ": " << healthy.status();
    const int64_t places = std::min(requests, Size(20, 400, 100'000));
    int64_t refused = 0;
    for (int64_t place = 0; place < places; ++place) {
      FaultyMalloc::Inject(1 + place * requests / places, 1'000'000'000);
      const Told told = question();
      FaultyMalloc::Heal();
      if (told.ok()) {
        EXPECT_EQ(*told, *healthy) << what << ", place " << place;
      } else {
        ++refused;
        EXPECT_FALSE(absl::IsDataLoss(told.status())) << what << ": " << told.status();
      }
    }
    EXPECT_GT(refused, places / 2) << what << ": memory hardly mattered";
    EXPECT_TRUE(Verified(path_)) << what;
  }

  Folder folder_;
  std::string path_ = folder_.ledger();
  Story story_;
};

TEST_F(QuestionsOutOfMemory, AreAnsweredRightOrNotAtAll) {
  Ask("the rules", [&] {
    return Asked([](Reader& reader) -> Told {
      const auto report = reader.Verify([](int64_t, int64_t) {});
      if (!report.ok()) return report.status();
      EXPECT_TRUE(report->faults.empty()) << report->faults.front();
      return fmt::format("{} {} {}", report->entries, report->postings, report->head);
    });
  });
  Ask("the usage", [&] {
    return Asked([&](Reader& reader) -> Told {
      const auto rows = reader.Report(Query());
      if (!rows.ok()) return rows.status();
      std::string text;
      for (const auto& row : *rows) text += ReportLine(row.leaf, row.model, row.time) + "\n";
      return text;
    });
  });
  Ask("what was taken over", [&] {
    return Asked([&](Reader& reader) -> Told {
      const auto rows = reader.Restored(Query());
      if (!rows.ok()) return rows.status();
      std::string text;
      for (const auto& row : *rows) text += ReportLine(row.leaf, row.model, row.time) + "\n";
      return text;
    });
  });
  Ask("the intervals", [&] {
    return Asked([&](Reader& reader) -> Told {
      std::string text;
      const absl::Status status = reader.Export(Query(), [&](const ledger::ExportRow& row) {
        text += IntervalLine(row.interval, row.interval.parts.at(0), row.end, row.estimated,
                             row.devices, row.time, row.refunded) +
                "\n";
      });
      if (!status.ok()) return status;
      return text;
    });
  });
  Ask("the newest time", [&] {
    return Asked([](Reader& reader) -> Told {
      const auto last = reader.LastTime();
      if (!last.ok()) return last.status();
      return fmt::format("{}", last->time_since_epoch().count());
    });
  });
}

TEST_F(QuestionsOutOfMemory, ACopyIsWholeOrIsNone) {
  Ask("a copy", [&]() -> Told {
    const auto name = ledger::BackupLedger(path_, story_.now, 1);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string file = entry.path().filename().string();
      EXPECT_FALSE(file.ends_with(".part")) << file;
    }
    return name;
  });
  const std::optional<Instant> newest = ledger::NewestBackup(path_);
  ASSERT_TRUE(newest.has_value());
}

TEST_F(QuestionsOutOfMemory, AStartHandsOutTheWholeHistoryOrFails) {
  for (const ledger::PastForm form : {ledger::PastForm::kEvents, ledger::PastForm::kShort}) {
    Ask("a start", [&]() -> Told {
      ledger::Options options = NextLife(story_, path_);
      options.past = form;
      const auto ledger = SqliteLedger::Open(options);
      FaultyMalloc::Heal();  // the close is not what is asked
      if (!ledger.ok()) return ledger.status();
      const MeterHistory& history = (*ledger)->history();
      std::string text =
          fmt::format("{} open, {} events", history.open.size(), history.events.size());
      (*ledger)->Close();
      return text;
    });
  }
}

TEST_F(QuestionsOutOfMemory, AClockIsMendedOrLeft) {
  Ask("the clock", [&]() -> Told {
    const auto now = SqliteLedger::RepairClock(path_, story_.now);
    if (!now.ok()) return now.status();
    return fmt::format("{}", now->time_since_epoch().count());
  });
  EXPECT_EQ(SqliteLedger::LastEpoch(path_), 1);
}

}  // namespace
}  // namespace tranche::torture
