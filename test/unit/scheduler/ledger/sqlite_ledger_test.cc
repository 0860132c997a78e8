// Scenarios of a ledger's life: what is written, what a restart finds, what is refused.
#include "scheduler/ledger/sqlite_ledger.h"

#include <gmock/gmock.h>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Words(const std::vector<MeterEvent>& events) {
  std::vector<std::string> words;
  for (const MeterEvent& event : events) {
    const char* const kinds[] = {"open", "running", "close", "void", "refund"};
    words.push_back(fmt::format("{} {} {}", event.uid.str(), kinds[static_cast<int>(event.kind)],
                                (event.at - kTen) / std::chrono::minutes(1)));
  }
  return words;
}

TEST_F(LedgerTest, WhatIsAcknowledgedIsThereAfterARestart) {
  WriteFile(
      {Open("a", Minute(0)), Running("a", Minute(1)), Open("b", Minute(2)), Close("b", Minute(5))});
  const auto ledger = MustOpen();
  const MeterHistory& history = ledger->history();
  EXPECT_THAT(Words(history.events),
              ElementsAre("a open 0", "a running 1", "b open 2", "b close 5"));
  ASSERT_EQ(history.open.size(), 1U);
  const OpenInterval& open = history.open[0];
  EXPECT_EQ(open.uid, PodUid("a"));
  EXPECT_EQ(open.pod, (PodName{"ns-a", "pod-a"}));
  EXPECT_EQ(open.node, NodeName("node-1"));
  EXPECT_EQ(open.leaf, "team-a");
  EXPECT_EQ(open.workload_class, "training");
  EXPECT_EQ(open.parts, (std::vector<MeterPart>{{"h200", {kGpu, kGpu}}}));
  EXPECT_EQ(open.since, Minute(0));
  EXPECT_EQ(open.running, Minute(1));
  EXPECT_EQ(ledger->last_time(), Minute(5));
  EXPECT_EQ(ledger->health().held, (Charge{kGpu, kGpu}));
}

TEST_F(LedgerTest, RepeatsAddNothingInOneLifeOrTheNext) {
  const std::vector<MeterEvent> events = {Open("a", Minute(0)), Running("a", Minute(1)),
                                          Close("a", Minute(5)), Refund("a", Minute(2), Minute(3))};
  WindowClosing closing;
  closing.budget_uid = "budget";
  closing.span = {Minute(0), Minute(60)};
  const auto ledger = MustOpen();
  Write(*ledger, events, {closing});
  const int64_t entries = ledger->health().last_entry;
  EXPECT_EQ(entries, 6);  // a refund is two
  Write(*ledger, events, {closing});
  ledger->Close();
  const auto again = MustOpen();
  // Other times in a repeat change nothing either.
  Write(*again, {Open("a", Minute(7)), Close("a", Minute(9))});
  Write(*again, events, {closing});
  EXPECT_EQ(again->health().last_entry, entries);
  EXPECT_EQ(again->ignored(), 7);
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(LedgerTest, EndsOfWhatIsNotOpenAreIgnoredAndStopNothing) {
  const auto ledger = MustOpen();
  Write(*ledger, {Close("a", Minute(0)), Void("b", Minute(0)), Running("c", Minute(0)),
                  Refund("d", Minute(0), Minute(1)), Open("e", Minute(0))});
  EXPECT_EQ(ledger->health().last_entry, 1);
  EXPECT_EQ(ledger->ignored(), 4);
}

TEST_F(LedgerTest, ACloseBeforeItsOpenEndsAtTheOpen) {
  WriteFile({Open("a", Minute(10)), Close("a", Minute(3))});
  EXPECT_EQ(Report(Minute(60)), "");
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(LedgerTest, AVoidedIntervalChargesNothing) {
  WriteFile({Open("a", Minute(0)), Void("a", Minute(30)), Open("b", Minute(0))});
  EXPECT_EQ(Report(Minute(60)), "team-a h200 1.000");
  const auto ledger = MustOpen();
  EXPECT_THAT(Words(ledger->history().events), ElementsAre("a open 0", "a void 0", "b open 0"));
}

TEST_F(LedgerTest, ARefundGivesBackWhatItSpans) {
  WriteFile({Open("a", Minute(0)), Close("a", Minute(120)), Refund("a", Minute(90), Minute(120))});
  EXPECT_EQ(Report(Minute(180)), "team-a h200 1.500");
  EXPECT_EQ(Report(Minute(180), Minute(100), Minute(110)), "");
  const auto ledger = MustOpen();
  const MeterEvent& refund = ledger->history().events[1];
  EXPECT_EQ(refund.kind, MeterKind::kRefund);
  EXPECT_EQ(refund.until, Minute(120));
  EXPECT_EQ(refund.note, "NodeLost");
  EXPECT_EQ(refund.parts, (std::vector<MeterPart>{{"h200", {kGpu, kGpu}}}));
}

TEST_F(LedgerTest, HistoryHoldsWhatLastedIntoTheHorizonWithItsOwnTimes) {
  const Instant early = kTen - kMeterHorizon - std::chrono::hours(48);
  WriteFile({Open("gone", early), Close("gone", early + std::chrono::hours(1)),
             Open("lasted", early), Running("lasted", early), Open("lasts", early),
             Running("lasts", early + std::chrono::minutes(1)), Close("lasted", Minute(-5)),
             Refund("gone", early, Minute(-4))});
  const auto ledger = MustOpen();
  const MeterHistory& history = ledger->history();
  EXPECT_EQ(history.from, kTen - kMeterHorizon);
  ASSERT_EQ(history.events.size(), 6U);
  std::vector<std::string> uids;
  for (const MeterEvent& event : history.events) uids.push_back(event.uid.str());
  EXPECT_THAT(uids, ElementsAre("lasted", "lasted", "lasts", "gone", "lasts", "lasted"));
  EXPECT_EQ(history.events[0].at, early);
  ASSERT_EQ(history.open.size(), 1U);
  EXPECT_EQ(history.open[0].running, early + std::chrono::minutes(1));
  ledger->TakeHistory();
  EXPECT_THAT(ledger->history().events, IsEmpty());
}

std::string Words(const EndedUses& uses) {
  std::string text = uses.kind.sign < 0 ? "given back" : "used";
  const auto minute = [](Instant at) {
    return std::chrono::duration_cast<std::chrono::minutes>(at - kTen).count();
  };
  for (const PastLife& life : uses.lives) {
    text += fmt::format(
        " [{} {} {}]", minute(life.since),
        life.running == PastLife::kNeverRan ? "-" : fmt::format("{}", minute(life.running)),
        minute(life.until));
  }
  return text;
}

// The same lives, in short.
TEST_F(LedgerTest, WhatHasEndedIsHandedOverInShortToo) {
  const Instant early = kTen - kMeterHorizon - std::chrono::hours(48);
  WriteFile({Open("old", early), Close("old", early + std::chrono::hours(1)), Open("a", Minute(0)),
             Running("a", Minute(1)), Open("b", Minute(2)), Refund("b", Minute(2), Minute(3)),
             Running("b", Minute(3)), Open("lasts", Minute(3)), Close("a", Minute(5)),
             Close("b", Minute(6)), Refund("a", Minute(2), Minute(4)), Open("c", Minute(7)),
             Void("c", Minute(7)), Refund("old", early, Minute(-4))});
  options_.past = PastForm::kShort;
  const auto ledger = MustOpen();
  const MeterHistory& history = ledger->history();
  EXPECT_THAT(Words(history.events), ElementsAre("lasts open 3"));
  EXPECT_EQ(history.open.size(), 1U);
  std::vector<std::string> ended;
  for (const EndedUses& uses : history.ended) {
    ended.push_back(Words(uses));
    EXPECT_EQ(uses.kind.leaf, "team-a");
    EXPECT_EQ(uses.kind.parts, (std::vector<MeterPart>{{"h200", {kGpu, kGpu}}}));
  }
  // What was given back before it ran knows of it as well.
  EXPECT_THAT(ended,
              ElementsAre("used [0 1 5] [2 3 6]", "given back [2 3 3] [2 1 4] [-50400 - -4]"));
  std::vector<std::size_t> numbered;
  std::vector<Instant> ends;
  for (const EndedNumber& number : history.ended_numbers) {
    EXPECT_EQ(number.interval, 0);
    numbered.push_back(number.pod);
    ends.push_back(number.ended);
  }
  EXPECT_THAT(ends, ElementsAre(Minute(5), Minute(6), Minute(7)));
  // Also of what lasted no time.
  EXPECT_THAT(numbered, ElementsAre(KeyOf(PodUid("a")), KeyOf(PodUid("b")), KeyOf(PodUid("c"))));
}

TEST_F(LedgerTest, ClosingsAndDecayComeBackTheNewestVersionCounts) {
  WindowClosing closing;
  closing.budget_uid = "budget-b";
  closing.span = {Minute(0), Minute(60)};
  closing.base = Int128{1} << 100;
  closing.used = 5;
  closing.carried_out = {3, -4};
  WindowClosing corrected = closing;
  corrected.used = 7;
  WindowClosing other = closing;
  other.budget_uid = "budget-a";
  {
    const auto ledger = MustOpen();
    Write(*ledger, {}, {closing, other});
    Write(*ledger, {}, {corrected});
    DecayRow decay{"team-a", {}};
    decay.state = {7, Minute(3), -1, ~uint64_t{0}};
    ledger->Heartbeat(Minute(70), {decay});
  }
  const auto ledger = MustOpen();
  const MeterHistory& history = ledger->history();
  EXPECT_EQ(history.heartbeat, Minute(70));
  EXPECT_EQ(ledger->last_time(), Minute(70));
  ASSERT_EQ(history.closings.size(), 2U);
  EXPECT_EQ(history.closings[0].budget_uid, "budget-a");
  EXPECT_EQ(history.closings[1].used, 7);
  EXPECT_EQ(history.closings[1].base, Int128{1} << 100);
  EXPECT_EQ(history.closings[1].carried_out, (std::vector<Int128>{3, -4}));
  ASSERT_EQ(history.decay.size(), 1U);
  EXPECT_EQ(history.decay[0].state.usage_low, ~uint64_t{0});
  EXPECT_EQ(history.decay[0].state.usage_high, -1);
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(LedgerTest, EntriesMoreThanAMinuteOldAreMarkedLate) {
  const auto ledger = MustOpen();
  ledger->Heartbeat(Minute(10), {});
  Write(*ledger, {Open("a", Minute(9)), Open("b", Minute(8))});
  EXPECT_EQ(ledger->health().late, 1);
}

// It costs a file and a sync each time.
TEST_F(LedgerTest, TheHeadIsWrittenWithEntriesAndNotWithHeartbeats) {
  const std::string head = options_.path + ".head";
  const auto ledger = MustOpen();
  Write(*ledger, {Open("a", Minute(0))});
  ASSERT_TRUE(std::filesystem::remove(head));
  Write(*ledger, {Close("a", Minute(1))});
  ASSERT_TRUE(std::filesystem::remove(head));
  ledger->Heartbeat(Minute(2), {});
  ledger->Close();
  EXPECT_FALSE(std::filesystem::exists(head));
}

TEST_F(LedgerTest, MalformedEventsAreRefusedAndNamedAndStopNothing) {
  MeterEvent negative = Open("a", Minute(0));
  negative.parts[0].charge.compute = -1;
  MeterEvent nameless = Open("", Minute(0));
  WindowClosing backwards;
  backwards.span = {Minute(1), Minute(1)};
  const auto ledger = MustOpen();
  Write(*ledger, {negative, nameless, Open("b", Minute(0))}, {backwards});
  EXPECT_EQ(ledger->health().last_entry, 1);
  EXPECT_THAT(ledger->health().problem, HasSubstr("refused 3 malformed events"));
}

TEST_F(LedgerTest, ASecondWriterIsRefusedUntilTheFirstCloses) {
  const auto first = MustOpen();
  const absl::Status refused = OpenError();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("held by another process"));
  first->Close();
  first->Close();
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(LedgerTest, AnEpochNeverFalls) {
  options_.epoch = 5;
  WriteFile({Open("a", Minute(0))});
  options_.epoch = 4;
  EXPECT_TRUE(absl::IsAborted(OpenError()));
}

TEST_F(LedgerTest, AnOlderFileInItsPlaceIsNoticed) {
  WriteFile({Open("a", Minute(0))});
  std::filesystem::copy_file(options_.path, folder_ + "/old");
  WriteFile({Open("b", Minute(1))});
  std::filesystem::rename(folder_ + "/old", options_.path);
  const absl::Status refused = OpenError();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("expected entry 2"));
  options_.accept_rollback = true;
  WriteFile({Open("c", Minute(1))});
  options_.accept_rollback = false;
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(LedgerTest, AFileThatVanishedIsNoticed) {
  WriteFile({Open("a", Minute(0))});
  std::filesystem::remove(options_.path);
  EXPECT_THAT(std::string(OpenError().message()), HasSubstr("found no file"));
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  options_.accept_rollback = true;
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(LedgerTest, AHeadFileThatAPowerCutToreSaysNothing) {
  WriteFile({Open("a", Minute(0))});
  for (const char* text : {"", "1", "1 abc\n", "x", "0 "}) {
    std::ofstream(options_.path + ".head", std::ios::trunc) << text;
    EXPECT_NE(MustOpen(), nullptr) << text;
  }
}

TEST_F(LedgerTest, WhatCannotBeALedgerIsRefusedWithItsReason) {
  options_.create = false;
  EXPECT_TRUE(absl::IsNotFound(OpenError()));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  options_.create = true;

  std::ofstream(options_.path) << std::string(5000, 'x');
  EXPECT_TRUE(absl::IsDataLoss(OpenError())) << OpenError();

  std::filesystem::remove(options_.path);
  Sql("CREATE TABLE recipes(name)");
  EXPECT_THAT(std::string(OpenError().message()), HasSubstr("expected a Tranche ledger"));
  EXPECT_EQ(Sql("PRAGMA journal_mode"), "delete");  // it was left alone

  std::filesystem::remove(options_.path);
  WriteFile({});
  Sql("PRAGMA user_version = 99");
  EXPECT_THAT(std::string(OpenError().message()), HasSubstr("written by a newer Tranche"));

  options_.path = folder_ + "/missing/ledger.db";
  EXPECT_TRUE(absl::IsNotFound(OpenError())) << OpenError();
  // A folder where nobody, root included, can create files.
  options_.path = "/sys/kernel/ledger.db";
  EXPECT_TRUE(absl::IsPermissionDenied(OpenError())) << OpenError();
}

TEST_F(LedgerTest, ABackupIsALedgerOfItsOwnAndOldOnesGo) {
  options_.backups = 2;
  const auto ledger = MustOpen();
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    Write(*ledger, {Open(fmt::format("pod-{}", i), Minute(i))});
    const auto name = ledger->Backup(Minute(i));
    ASSERT_TRUE(name.ok()) << name.status();
    names.push_back(*name);
  }
  EXPECT_THAT(names[2], HasSubstr("ledger.db.backup-20260301T100200.000Z"));
  EXPECT_FALSE(std::filesystem::exists(names[0]));
  EXPECT_TRUE(std::filesystem::exists(names[1]));
  Write(*ledger, {Open("later", Minute(9))});
  ledger->Close();

  options_.path = folder_ + "/restored.db";
  std::filesystem::copy_file(names[2], options_.path);
  const auto restored = MustOpen();
  EXPECT_EQ(restored->history().open.size(), 3U);
  Write(*restored, {Open("more", Minute(10))});
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(LedgerTest, AStartFindsDamageInWhatItHandsOut) {
  struct Case {
    const char* damage;
    const char* says;
  };
  const Case cases[] = {
      {"UPDATE posting SET compute = compute + 1 WHERE entry = 2", "rule 1: entry 2"},
      {"UPDATE posting SET compute = 2 * compute WHERE entry = 2", "rule 6: entry 2"},
      {"UPDATE entry SET at = at - 1 WHERE id = 1", "rule 6: entry 1"},
      {"UPDATE interval SET leaf = 'team-b' WHERE id = 1", "rule 6: entry 1"},
      {"DELETE FROM posting WHERE entry = 3; DELETE FROM entry WHERE id = 3", "rule 5"},
      {"UPDATE balance SET compute = compute + 1 WHERE account = 1", "rule 2: account 1"},
      {"UPDATE meta SET value = value + 1 WHERE key = 'heartbeat'", "meta 'heartbeat'"},
      {"UPDATE decay SET quanta = 1", "decay of leaf 'team-a'"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.damage);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    {
      const auto ledger = MustOpen();
      Write(*ledger, {Open("a", Minute(0)), Open("b", Minute(1)), Close("a", Minute(2)),
                      Close("b", Minute(3))});
      ledger->Heartbeat(Minute(4), {{"team-a", {}}});
    }
    for (const char* table : {"entry", "posting", "interval"}) {
      Sql(fmt::format("DROP TRIGGER {0}_update; DROP TRIGGER {0}_delete", table));
    }
    Sql(c.damage);
    const absl::Status refused = OpenError();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(c.says));
  }
}

TEST_F(LedgerTest, TheJournalCannotBeChangedByMistake) {
  WindowClosing closing;
  closing.span = {Minute(0), Minute(1)};
  WriteFile({Open("a", Minute(0))}, {closing});
  for (const char* table : {"entry", "posting", "interval", "account", "window_closing"}) {
    EXPECT_THAT(Sql(fmt::format("DELETE FROM {}", table)), HasSubstr("append-only"));
    const std::string key = std::string(table) == "posting" ? "memory" : "rowid";
    EXPECT_THAT(Sql(fmt::format("UPDATE {} SET {} = 1", table, key)), HasSubstr("append-only"));
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
