// What a ledger takes over from checkpoints of another one.
#include <gmock/gmock.h>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Of = RestoredUse::Of;

const std::string kLost = "0000000000000000000000000000000a";
constexpr Int128 kGpuMinute = kGpuHour / 60;
GpuTime Minutes(int64_t count) { return {kGpuMinute * count, kGpuMinute * count}; }

RestoredUse OfLeaf(int64_t minutes, Instant until = kTen) {
  RestoredUse use;
  use.of = Of::kLeaf;
  use.name = "team-a";
  use.mark = {kLost, 40, until};
  use.use = {"h200", {kTen - std::chrono::hours(10), until}, Minutes(minutes)};
  return use;
}

RestoredUse OfBudget(Instant at = kTen) {
  RestoredUse use;
  use.name = "budget-uid";
  use.mark = {kLost, 40, at};
  use.stand.at = at;
  use.stand.window = {kTen - std::chrono::hours(10), kTen + std::chrono::hours(14)};
  use.stand.parts = {{{use.stand.window.start, at - Millis(1)}, {1, kMostCheckpointed / 2}},
                     {{at - Millis(1), at}, {7, 0}}};
  use.stand.carried_in = {0, 5};
  use.stand.debt_in = 3;
  return use;
}

class RestoredTest : public LedgerTest {
 protected:
  static void Restore(Ledger& ledger, std::vector<RestoredUse> uses) {
    ledger.Restore(std::move(uses));
    EXPECT_TRUE(Committed(ledger)) << ledger.health().problem;
  }
  std::vector<ReportRow> Report(std::optional<Instant> from, Instant to) {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    ReportQuery query;
    query.from = from;
    query.to = to;
    query.now = to;
    return reader->Report(query).value();
  }
  VerifyReport Verify() {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader->Verify([](int64_t, int64_t) {}).value();
  }
};

TEST_F(RestoredTest, AFileHasAnIdOfItsOwnThatCopiesShare) {
  std::string id;
  {
    const auto ledger = MustOpen();
    id = ledger->health().id;
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(ledger->history().ledger, id);
    EXPECT_EQ(ledger->history().last_entry, 0);
  }
  EXPECT_EQ(MustOpen()->health().id, id);
  std::filesystem::copy_file(options_.path, options_.path + ".copy");
  const std::string path = options_.path;
  options_.path = path + ".copy";
  EXPECT_EQ(MustOpen()->health().id, id);
  options_.path = path + ".other";
  EXPECT_NE(MustOpen()->health().id, id);
}

TEST_F(RestoredTest, ItIsEnteredOnceReadAgainAndVerified) {
  const std::vector<RestoredUse> uses = {OfBudget(), OfLeaf(120)};
  {
    const auto ledger = MustOpen();
    Restore(*ledger, uses);
    EXPECT_EQ(ledger->health().restored, 2);
    Restore(*ledger, uses);
    EXPECT_EQ(ledger->health().last_entry, 2);
    // An earlier checkpoint of the same ledger tells nothing new.
    Restore(*ledger, {OfBudget(kTen - std::chrono::minutes(1)), OfLeaf(100)});
    EXPECT_EQ(ledger->health().last_entry, 2);
  }
  const auto ledger = MustOpen();
  EXPECT_EQ(ledger->health().restored, 2);
  ASSERT_EQ(ledger->history().restored.size(), 2U);
  EXPECT_TRUE(ledger->history().restored[0] == uses[0]);
  EXPECT_TRUE(ledger->history().restored[1] == uses[1]);
  Restore(*ledger, uses);
  EXPECT_EQ(ledger->health().last_entry, 2);
  const VerifyReport report = Verify();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(report.restored, 2);
}

TEST_F(RestoredTest, OfALeafOnlyWhatIsLackingIsEntered) {
  struct Case {
    const char* name;
    std::vector<MeterEvent> events;
    int64_t told;       // minutes on one GPU until ten
    int64_t in_report;  // thereafter, until ten
    int64_t entered;
  };
  const Case cases[] = {
      {"a new file", {}, 120, 120, 120},
      {"a pod that runs on is part of it", {Open("a", Minute(-30))}, 120, 120, 90},
      {"one that began later is not", {Open("a", Minute(5))}, 120, 120, 120},
      {"an old file", {Open("a", Minute(-60)), Close("a", Minute(-20))}, 120, 120, 80},
      {"a file that has more", {Open("a", Minute(-200))}, 120, 200, 0},
      {"nothing told", {Open("a", Minute(-10))}, 0, 10, 0},
  };
  int number = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    options_.path = folder_ + "/" + std::to_string(number++);
    const auto ledger = MustOpen();
    Write(*ledger, c.events);
    for (int again = 0; again < 2; ++again) {
      Restore(*ledger, {OfLeaf(c.told)});
      const std::vector<ReportRow> rows = Report(std::nullopt, kTen);
      ASSERT_EQ(rows.size(), 1U);
      EXPECT_TRUE(rows[0].time == Minutes(c.in_report)) << FormatGpuHours(rows[0].time.compute);
      EXPECT_TRUE(rows[0].restored == Minutes(c.entered));
    }
    EXPECT_THAT(Verify().faults, IsEmpty());
  }
}

TEST_F(RestoredTest, AnOldFileThatComesBackIsNotCountedTwice) {
  // The first ledger ran to minute 10 and was lost; its checkpoint is of minute 0.
  const std::vector<MeterEvent> lived = {Open("a", Minute(-60)), Close("a", Minute(-20)),
                                         Open("b", Minute(-30))};
  WriteFile(lived);
  const std::string first = options_.path;
  // The second one goes on: b still runs.
  options_.path = folder_ + "/second";
  {
    const auto second = MustOpen();
    Write(*second, {Open("b", Minute(-30))});
    Restore(*second, {OfLeaf(70)});
    Write(*second, {Close("b", Minute(20))});
  }
  EXPECT_TRUE(Report(std::nullopt, Minute(60))[0].time == Minutes(90));
  // The first one comes back and is told what the second had.
  options_.path = first;
  const auto ledger = MustOpen();
  Write(*ledger, {Close("b", Minute(20))});
  RestoredUse told = OfLeaf(90, Minute(30));
  told.mark.ledger = "0000000000000000000000000000000b";
  Restore(*ledger, {told});
  EXPECT_EQ(ledger->health().restored, 0);
  EXPECT_TRUE(Report(std::nullopt, Minute(60))[0].time == Minutes(90));
}

TEST_F(RestoredTest, ReportsShowItEvenlyOverItsTime) {
  const auto ledger = MustOpen();
  Restore(*ledger, {OfLeaf(600)});  // ten hours on one GPU
  EXPECT_TRUE(Report(Minute(-60), kTen)[0].time == Minutes(60));
  EXPECT_TRUE(Report(Minute(-90), Minute(-60))[0].restored == Minutes(30));
  EXPECT_THAT(Report(kTen, Minute(60)), IsEmpty());
  auto reader = Reader::Open(options_.path);
  ReportQuery query;
  query.now = Minute(60);
  const auto rows = reader->Restored(query);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].mark.ledger, kLost);
  query.leaf = "team-b";
  EXPECT_THAT(*reader->Restored(query), IsEmpty());
}

TEST_F(RestoredTest, WhatTheTablesCannotHoldIsRefused) {
  const auto ledger = MustOpen();
  const std::pair<const char*, void (*)(RestoredUse&)> wrong[] = {
      {"name", [](RestoredUse& use) { use.name = ""; }},
      {"ends after its start", [](RestoredUse& use) { use.use.span.end = use.use.span.start; }},
      {"ends after its start", [](RestoredUse& use) { use.mark.at = Instant::max(); }},
      {"0 to 10^36, found -1", [](RestoredUse& use) { use.use.time.memory = -1; }},
      {"0 to 10^36", [](RestoredUse& use) { use.use.time.compute = kMostCheckpointed + 1; }},
  };
  for (const auto& [problem, spoil] : wrong) {
    RestoredUse use = OfLeaf(5);
    spoil(use);
    ledger->Restore({use});
    EXPECT_THAT(ledger->health().problem, HasSubstr(problem));
    EXPECT_EQ(ledger->health().last_entry, 0);
  }
}

TEST_F(RestoredTest, VerifyFindsWhatWasChanged) {
  {
    const auto ledger = MustOpen();
    Restore(*ledger, {OfBudget(), OfLeaf(120)});
  }
  const std::pair<const char*, const char*> changes[] = {
      {"UPDATE restored SET compute = '1', detail = '3 2 0 5 1 ' || start || ' ' || until || "
       "' 1 7' , memory = '7' WHERE entry = 1",
       "rule 6: entry 1"},
      {"UPDATE restored SET name = 'team-b' WHERE entry = 2", "rule 6: entry 2"},
      {"UPDATE restored SET source = 'x' WHERE entry = 2", "rule 6: entry 2"},
      {"UPDATE restored SET detail = 'x' WHERE entry = 1", "restored of entry 1"},
      {"DELETE FROM restored WHERE entry = 2", "rule 6: entry 2"},
      {"INSERT INTO restored SELECT 9, of, name, model, start, until, compute, memory, detail, "
       "source, source_entry FROM restored WHERE entry = 2",
       "FOREIGN"},
  };
  const std::string whole = options_.path;
  for (const auto& [change, fault] : changes) {
    SCOPED_TRACE(change);
    options_.path = whole + ".changed";
    std::filesystem::copy_file(whole, options_.path,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(Sql("UPDATE restored SET name = 'x'"), HasSubstr("append-only"));
    Sql("DROP TRIGGER restored_update; DROP TRIGGER restored_delete");
    Sql(change);
    const std::vector<std::string> faults = Verify().faults;
    std::string all;
    for (const std::string& one : faults) all += one + '\n';
    if (fault != std::string("FOREIGN")) {
      EXPECT_THAT(all, HasSubstr(fault));
    }
    EXPECT_FALSE(faults.empty());
    std::filesystem::remove(options_.path + "-wal");
    std::filesystem::remove(options_.path + "-shm");
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
