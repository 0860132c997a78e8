// Reports, exports and verification, beside a writer, after one, and on damaged files.
#include "scheduler/ledger/reader.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReaderTest : public LedgerTest {
 protected:
  Reader MustRead() {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return std::move(*reader);
  }
  std::vector<ExportRow> Export(const ReportQuery& query) {
    std::vector<ExportRow> rows;
    const absl::Status done =
        MustRead().Export(query, [&rows](const ExportRow& row) { rows.push_back(row); });
    EXPECT_TRUE(done.ok()) << done;
    return rows;
  }
};

// ---- reports against a sum over intervals -------------------------------------------------------

struct Interval {
  std::string leaf;
  std::string model;
  Charge charge;
  Instant start;
  std::optional<Instant> end;
  std::optional<std::pair<Instant, Instant>> refund;
};

Int128 Overlap(Instant start, Instant end, Instant from, Instant to) {
  const Instant first = std::max(start, from);
  const Instant last = std::min(end, to);
  return last > first ? Int128{(last - first).count()} * kUnitWeight : 0;
}

std::map<std::pair<std::string, std::string>, GpuTime> BruteForce(
    const std::vector<Interval>& intervals, Instant from, Instant to) {
  std::map<std::pair<std::string, std::string>, GpuTime> sums;
  for (const Interval& interval : intervals) {
    Int128 time = Overlap(interval.start, interval.end.value_or(to), from, to);
    if (interval.refund) {
      time -= Overlap(interval.refund->first, interval.refund->second, from, to);
    }
    GpuTime& sum = sums[{interval.leaf, interval.model}];
    sum.compute += time * interval.charge.compute;
    sum.memory += time * interval.charge.memory;
  }
  std::erase_if(sums, [](const auto& item) { return item.second == GpuTime{}; });
  return sums;
}

TEST_F(ReaderTest, ReportsOverAnySpanEqualTheSumOverIntervals) {
  std::mt19937_64 random(20'260'301);
  const auto at_random = [&random](int64_t minutes) {
    return kTen + Millis(static_cast<int64_t>(random() % static_cast<uint64_t>(minutes * 60'000)));
  };
  constexpr int64_t kSpan = 5 * 24 * 60;
  std::vector<Interval> intervals;
  std::vector<MeterEvent> events;
  for (int i = 0; i < 300; ++i) {
    Interval interval;
    interval.leaf = random() % 5 == 0 ? "" : fmt::format("team-{}", random() % 3);
    interval.model = random() % 2 == 0 ? "h200" : "l4";
    interval.charge = {static_cast<int64_t>(random() % kGpu),
                       static_cast<int64_t>(random() % kGpu)};
    interval.start = at_random(kSpan);
    if (random() % 4 != 0) {
      interval.end = interval.start + Millis(static_cast<int64_t>(random() % 200'000'000));
      if (random() % 4 == 0) {
        interval.refund = {interval.start + (*interval.end - interval.start) / 2, *interval.end};
        if (interval.refund->first == interval.refund->second) interval.refund.reset();
      }
    }
    MeterEvent open = Open(fmt::format("pod-{}", i), interval.start);
    open.leaf = interval.leaf;
    open.parts = {{interval.model, interval.charge}};
    events.push_back(open);
    if (interval.end) {
      MeterEvent close = open;
      close.kind = MeterKind::kClose;
      close.at = *interval.end;
      events.push_back(close);
    }
    if (interval.refund) {
      MeterEvent refund = open;
      refund.kind = MeterKind::kRefund;
      refund.at = interval.refund->first;
      refund.until = interval.refund->second;
      events.push_back(refund);
    }
    intervals.push_back(interval);
  }
  WriteFile(events);  // not in the order of time: late entries
  Reader reader = MustRead();
  for (int i = 0; i < 60; ++i) {
    Instant from = at_random(kSpan + 2'000);
    Instant to = at_random(kSpan + 2'000);
    if (to < from) std::swap(from, to);
    if (i % 10 == 0)
      from = Instant(Millis(from.time_since_epoch().count() / 86'400'000 * 86'400'000));
    const auto rows = reader.Report({from, to, std::nullopt, Minute(kSpan + 2'000)});
    ASSERT_TRUE(rows.ok()) << rows.status();
    std::map<std::pair<std::string, std::string>, GpuTime> found;
    for (const ReportRow& row : *rows) found[{row.leaf, row.model}] = row.time;
    EXPECT_EQ(found, BruteForce(intervals, from, to)) << "span " << i;
  }
  // A partition adds up, and a leaf's rows are the whole's.
  const Instant now = Minute(kSpan);
  GpuTime parts;
  for (int64_t minute = 0; minute < kSpan; minute += 1'111) {
    const auto rows = reader.Report(
        {Minute(minute), std::min(Minute(minute + 1'111), now), std::string("team-1"), now});
    for (const ReportRow& row : *rows) {
      EXPECT_EQ(row.leaf, "team-1");
      parts.compute += row.time.compute;
      parts.memory += row.time.memory;
    }
  }
  GpuTime whole;
  const std::vector<ReportRow> whole_rows =
      reader.Report({std::nullopt, std::nullopt, std::string("team-1"), now}).value();
  for (const ReportRow& row : whole_rows) {
    whole.compute += row.time.compute;
    whole.memory += row.time.memory;
  }
  EXPECT_EQ(parts, whole);
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(ReaderTest, AReportNeverLooksBehindNow) {
  WriteFile({Open("a", Minute(0))});
  EXPECT_EQ(Report(Minute(60), std::nullopt, Minute(600)), "team-a h200 1.000");
  EXPECT_EQ(Report(Minute(60), Minute(90), Minute(600)), "");
}

// ---- export -------------------------------------------------------------------------------------

TEST_F(ReaderTest, ExportGivesOneRowPerIntervalAndModelInOrder) {
  MeterEvent mixed = Open("m", Minute(10));
  mixed.parts = {{"l4", {kGpu / 2, kGpu / 4}}, {"h200", {kGpu, kGpu}}};
  MeterEvent guessed = Close("a", Minute(70));
  guessed.estimated = true;
  WriteFile({Open("b", Minute(0)), Open("a", Minute(0)), Running("a", Minute(2)), mixed, guessed,
             Refund("a", Minute(40), Minute(70)), Open("v", Minute(20)), Void("v", Minute(20)),
             Close("b", Minute(5)), Open("later", Minute(200))});
  const std::vector<ExportRow> rows = Export({Minute(10), Minute(100), std::nullopt, Minute(300)});
  ASSERT_EQ(rows.size(), 3U);  // b ended before, v never was, later begins behind

  EXPECT_EQ(rows[0].interval.uid, PodUid("a"));
  EXPECT_EQ(rows[0].interval.pod, (PodName{"ns-a", "pod-a"}));
  EXPECT_EQ(rows[0].interval.running, Minute(2));
  EXPECT_EQ(rows[0].end, Minute(70));
  EXPECT_TRUE(rows[0].estimated);
  EXPECT_EQ(rows[0].devices, R"([{"name":"main"}])");
  EXPECT_EQ(FormatGpuHours(rows[0].time.compute), "1.000");
  EXPECT_EQ(FormatGpuHours(rows[0].refunded.memory), "0.500");

  EXPECT_EQ(rows[1].interval.uid, PodUid("m"));
  EXPECT_EQ(rows[1].interval.parts, (std::vector<MeterPart>{{"h200", {kGpu, kGpu}}}));
  EXPECT_EQ(rows[1].end, std::nullopt);
  EXPECT_EQ(rows[2].interval.parts, (std::vector<MeterPart>{{"l4", {kGpu / 2, kGpu / 4}}}));
  EXPECT_EQ(FormatGpuHours(rows[2].time.compute), "0.750");
  EXPECT_EQ(FormatGpuHours(rows[2].time.memory), "0.375");

  EXPECT_EQ(Export({std::nullopt, std::nullopt, std::nullopt, Minute(300)}).size(), 5U);
  EXPECT_THAT(Export({std::nullopt, std::nullopt, std::string("team-b"), Minute(300)}), IsEmpty());
  // The rows of a report are the sums of the export's.
  EXPECT_EQ(Report(Minute(300), Minute(10), Minute(100)), "team-a h200 2.000, team-a l4 0.750");
}

// ---- verification -------------------------------------------------------------------------------

TEST_F(ReaderTest, VerifyCountsASoundFile) {
  WriteFile({Open("a", Minute(0)), Running("a", Minute(1)), Close("a", Minute(2)),
             Open("a", Minute(2), 1), Refund("a", Minute(0), Minute(1))});
  Reader reader = MustRead();
  std::vector<std::pair<int64_t, int64_t>> steps;
  const auto report =
      reader.Verify([&](int64_t done, int64_t total) { steps.emplace_back(done, total); });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->faults, IsEmpty());
  EXPECT_EQ(report->entries, 6);
  EXPECT_EQ(report->postings, 10);
  EXPECT_EQ(report->open_intervals, 1);
  EXPECT_EQ(report->head, Sql("SELECT lower(hex(hash)) FROM entry WHERE id = 6"));
  EXPECT_EQ(steps.back(), std::make_pair(int64_t{6}, int64_t{6}));
}

TEST_F(ReaderTest, VerifyFindsEachKindOfDamage) {
  struct Case {
    const char* damage;
    const char* says;
  };
  const Case cases[] = {
      {"UPDATE posting SET compute = compute + 1 WHERE entry = 3", "rule 1: entry 3"},
      {"UPDATE posting SET memory = 2 * memory WHERE entry = 3", "rule 6: entry 3"},
      {"DELETE FROM posting WHERE entry = 3 AND compute > 0", "rule 1: entry 3"},
      {"DELETE FROM posting WHERE entry = 3; DELETE FROM entry WHERE id = 3",
       "rule 5: expected entry 3, found entry 4"},
      {"UPDATE entry SET hash = zeroblob(32) WHERE id = 2", "rule 6: entry 2"},
      {"UPDATE entry SET at = at + 1 WHERE id = 2", "rule 6: entry 2"},
      {"UPDATE entry SET epoch = 9 WHERE id = 2", "rule 5: entry 3: expected epoch 9"},
      {"UPDATE entry SET note = 'x' WHERE id = 6", "rule 4: entry 6"},
      {"UPDATE interval SET devices = 'other' WHERE id = 1", "rule 6: entry 1"},
      {"UPDATE account SET leaf = 'team-b' WHERE id = 1", "rule 6: entry 1"},
      {"UPDATE window_closing SET amounts = '0 0 0 9 0 0'", "rule 6: entry 8"},
      {"UPDATE window_closing SET amounts = 'none'", "window_closing of entry 8"},
      {"UPDATE balance SET memory = memory + 1 WHERE account = 2", "rule 2: account 2"},
      {"DELETE FROM balance WHERE account = 1", "rule 2: account 1"},
      {"UPDATE checked_balance SET compute = compute + 1", "expected checked_balance"},
      {"DELETE FROM checked_balance", "expected checked_balance"},
      {"UPDATE meta SET value = value + 1 WHERE key = 'checked'", "meta 'checked'"},
      {"UPDATE meta SET seal = 1 WHERE key = 'id_low'", "meta 'id_low'"},
      {"UPDATE meta SET key = 'idle' WHERE key = 'checked'", "meta 'idle'"},
      {"UPDATE rollup SET compute_moment_low = 1", "rule 2: rollup"},
      {"DELETE FROM rollup", "rule 2: expected 2 rollup rows"},
      {"DELETE FROM open_interval", "rule 2: expected 1 open intervals"},
      {"INSERT INTO open_interval VALUES (1, 1, NULL)", "rule 2: open_interval 1"},
      {"INSERT INTO interval VALUES (99, 'x', 0, '', '', '', '', '', '', '')",
       "rule 4: expected 2"},
      {"INSERT INTO posting VALUES (99, 1, 1, 1)", "foreign_key_check"},
      {"UPDATE entry SET kind = 4 WHERE id = 4", "rule 4: entry 4"},
      // Lives that nobody lives: begun twice, running twice, ended twice, of no beginning.
      {"DROP INDEX entry_once; UPDATE entry SET kind = 1 WHERE id = 2", "rule 3: entry 2"},
      {"DROP INDEX entry_once; UPDATE entry SET kind = 2 WHERE id = 4", "rule 4: entry 4"},
      {"DROP INDEX entry_once; UPDATE entry SET kind = 3 WHERE id = 5", "rule 4: entry 5"},
      {"UPDATE entry SET interval = 3 WHERE id = 1", "rule 4: entry 1"},
      // Refunds that do not give back what they say.
      {"UPDATE entry SET kind = 5 WHERE id = 6", "rule 4: entry 6"},
      {"UPDATE entry SET kind = 6 WHERE id = 5", "rule 4: entry 5"},
      {"UPDATE entry SET at = at - 60000 WHERE id = 6", "rule 4: entry 6"},
      {"UPDATE entry SET interval = 3 WHERE id = 6", "rule 4: entry 6"},
      {"DELETE FROM posting WHERE entry = 6", "rule 4: entry 6"},
      {"UPDATE posting SET compute = 2 * compute WHERE entry = 6", "rule 4: entry 6"},
      {"UPDATE posting SET memory = 2 * memory WHERE entry = 6", "rule 4: entry 6"},
      {"DELETE FROM posting WHERE entry > 5; DELETE FROM window_closing;"
       "DELETE FROM entry WHERE id > 5",
       "rule 4: expected the end of refund 5"},
      {"UPDATE rollup SET seal = seal + 1", "rule 2: rollup"},
  };
  WindowClosing closing;
  closing.span = {Minute(0), Minute(60)};
  WriteFile(
      {Open("a", Minute(0)), Running("a", Minute(1)), Open("b", Minute(1)), Close("a", Minute(5)),
       Refund("a", Minute(1), Minute(2), "LostWork"), Running("b", Minute(3))},
      {closing});
  // Entries: 1 open a, 2 running, 3 open b, 4 close a, 5 and 6 refund, 7 running b, 8 the window.
  for (const char* table : {"entry", "posting", "interval", "account", "window_closing"}) {
    Sql(fmt::format("DROP TRIGGER {0}_update; DROP TRIGGER {0}_delete", table));
  }
  const std::string sound = folder_ + "/sound";
  std::filesystem::copy_file(options_.path, sound);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.damage);
    std::filesystem::copy_file(sound, options_.path,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::remove(options_.path + "-wal");
    std::filesystem::remove(options_.path + "-shm");
    EXPECT_EQ(Sql(c.damage), "");
    EXPECT_THAT(Faults(), ::testing::Contains(HasSubstr(c.says)));
  }
}

TEST_F(ReaderTest, IntervalsOfAPodMayNotOverlapUnlessTheClockStepped) {
  MeterEvent stepped = Open("s", Minute(2), 1);
  stepped.note = "ClockStep";
  WriteFile({Open("s", Minute(0)), Close("s", Minute(9)), stepped});
  EXPECT_THAT(Faults(), IsEmpty());
  WriteFile({Open("o", Minute(0)), Close("o", Minute(9)), Open("o", Minute(8), 1)});
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("rule 4: pod o: expected interval 1 to start")));
}

TEST_F(ReaderTest, ARefundLiesInItsIntervalAndNotAboveIt) {
  struct Case {
    const char* name;
    MeterEvent refund;
    const char* says;  // null: nothing
  };
  MeterEvent twice = Refund("a", Minute(1), Minute(2));
  twice.parts[0].charge.memory *= 2;
  MeterEvent another = Refund("a", Minute(1), Minute(2));
  another.parts[0].model = "b200";
  const Case cases[] = {
      {"all of it", Refund("a", Minute(0), Minute(9)), nullptr},
      {"before it", Refund("a", Minute(-1), Minute(2)), "to lie in it"},
      {"after it", Refund("a", Minute(8), Minute(10)), "to lie in it"},
      {"twice as much", twice, "not above it"},
      {"of another model", another, "not above it"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    WriteFile({Open("a", Minute(0)), Close("a", Minute(9)), c.refund});
    if (c.says == nullptr) {
      EXPECT_THAT(Faults(), IsEmpty());
    } else {
      EXPECT_THAT(Faults(), ElementsAre(HasSubstr(c.says)));
    }
  }
}

TEST_F(ReaderTest, ExportShowsWhatHasOnlyJustBegun) {
  WriteFile({Open("a", Minute(0)), Open("b", Minute(5))});
  const auto uids = [this](const ReportQuery& query) {
    std::string text;
    EXPECT_TRUE(
        MustRead()
            .Export(query, [&text](const ExportRow& row) { text += row.interval.uid.str(); })
            .ok());
    return text;
  };
  const Instant newest = *MustRead().LastTime();
  EXPECT_EQ(newest, Minute(5));
  EXPECT_EQ(uids({std::nullopt, std::nullopt, std::nullopt, newest}), "ab");
  // What is asked for by its end does not hold that end.
  EXPECT_EQ(uids({std::nullopt, newest, std::nullopt, newest}), "a");
}

TEST_F(ReaderTest, ABrokenRollupIsNeverReported) {
  WriteFile({Open("a", Minute(0))});
  Sql("UPDATE rollup SET compute = compute * 2");
  const auto rows = MustRead().Report({std::nullopt, std::nullopt, std::nullopt, Minute(60 * 24)});
  EXPECT_TRUE(absl::IsDataLoss(rows.status())) << rows.status();
}

// ---- beside and after writers -------------------------------------------------------------------

TEST_F(ReaderTest, ReadsBesideARunningWriter) {
  const auto ledger = MustOpen();
  Write(*ledger, {Open("a", Minute(0))});
  Reader reader = MustRead();
  EXPECT_EQ(reader.Verify([](int64_t, int64_t) {})->entries, 1);
  Write(*ledger, {Open("b", Minute(0))});
  EXPECT_EQ(reader.Verify([](int64_t, int64_t) {})->entries, 2);
  EXPECT_EQ(Report(Minute(60)), "team-a h200 2.000");
}

TEST_F(ReaderTest, ReadsWhatAKilledWriterAcknowledged) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t writer = fork();
  if (writer == 0) {
    const auto ledger = SqliteLedger::Open(options_);
    if (!ledger.ok()) _exit(1);
    (*ledger)->Append({Open("a", Minute(0)), Open("b", Minute(1))}, {});
    if (!Committed(**ledger) || write(pipes[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(pipes[0], &byte, 1), 1);
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  EXPECT_GT(std::filesystem::file_size(options_.path + "-wal"), 0U);
  // With the index of the log, without it, and after it all once more by a writer.
  EXPECT_EQ(Report(Minute(61)), "team-a h200 2.017");
  std::filesystem::remove(options_.path + "-shm");
  EXPECT_THAT(Faults(), IsEmpty());
  EXPECT_GT(std::filesystem::file_size(options_.path + "-wal"), 0U);  // readers changed nothing
  const auto ledger = MustOpen();
  EXPECT_EQ(ledger->history().open.size(), 2U);
}

TEST_F(ReaderTest, NeverCreatesOrTakesWhatIsNoLedger) {
  options_.path = folder_ + "/none.db";
  EXPECT_TRUE(absl::IsNotFound(Reader::Open(options_.path).status()));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  std::ofstream(options_.path).flush();
  EXPECT_TRUE(absl::IsFailedPrecondition(Reader::Open(options_.path).status()));
  Sql("CREATE TABLE recipes(name)");
  EXPECT_TRUE(absl::IsFailedPrecondition(Reader::Open(options_.path).status()));
}

TEST_F(ReaderTest, AFlippedByteIsFoundOrHarmless) {
  std::vector<MeterEvent> events;
  for (int i = 0; i < 40; ++i) {
    events.push_back(Open(fmt::format("pod-{}", i), Minute(i)));
    if (i % 2 == 0) events.push_back(Close(fmt::format("pod-{}", i), Minute(i + 7)));
  }
  WriteFile(events);
  const std::string right = Report(Minute(100));
  std::string bytes;
  {
    std::ifstream file(options_.path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::mt19937_64 random(52);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes;
    const std::size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    std::ofstream(options_.path, std::ios::binary | std::ios::trunc) << damaged;
    auto reader = Reader::Open(options_.path);
    if (!reader.ok()) continue;
    const auto report = reader->Verify([](int64_t, int64_t) {});
    if (!report.ok() || !report->faults.empty()) continue;
    EXPECT_EQ(Report(Minute(100)), right) << "byte " << at;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
