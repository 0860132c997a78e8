// Which checkpoints a ledger takes over: by its identity, by its entries, by what it has taken over
// already, and by whether the checkpoint can be true.
#include "scheduler/host/checkpoint_recovery.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "scheduler/wire/records/checkpoint_json.h"
#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::Hours;
using test::Minutes;
using test::Utc;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Of = RestoredUse::Of;

const std::string kMine = "0000000000000000000000000000000a";
const std::string kOther = "0000000000000000000000000000000b";
const Instant kNow = Utc(2026, 1, 15, 12);
const Instant kStood = Utc(2026, 1, 15, 10);

GpuBudget Budget() { return test::PlainBudget(BudgetWindow::Type::kMonth, 100); }

BudgetCheckpoint Stood(Instant at = kStood) {
  BudgetCheckpoint checkpoint;
  checkpoint.mark = {kMine, 40, at};
  checkpoint.stand.at = at;
  checkpoint.stand.window = WindowAt(Budget().window, at);
  checkpoint.stand.parts = {{{checkpoint.stand.window.start, at}, {kGpuHour * 30, kGpuHour * 30}}};
  return checkpoint;
}

LeafCheckpoint LeafStood(Instant at = kStood) {
  return {{kMine, 40, at},
          {{"h100", {Utc(2025, 12, 1), Utc(2026, 1, 1)}, {kGpuHour, kGpuHour}},
           {"h100", {Utc(2026, 1, 1), at}, {kGpuHour, kGpuHour}}}};
}

RestoredUse Entered(Of of, const std::string& name, const std::string& ledger, Instant at) {
  RestoredUse use;
  use.of = of;
  use.name = name;
  use.mark = {ledger, 40, at};
  return use;
}

TEST(CheckpointRecoveryTest, TheLedgerAndItsEntriesDecide) {
  struct Case {
    const char* name;
    std::string id;
    int64_t last_entry;
    std::vector<Instant> entered;  // checkpoints of kMine it has taken over
    HistoryVerdict verdict;
  };
  const Case cases[] = {
      {"the same file, as it was", kMine, 40, {}, HistoryVerdict::kHas},
      {"the same file, gone on", kMine, 41, {}, HistoryVerdict::kHas},
      {"an older copy of it", kMine, 39, {}, HistoryVerdict::kRestore},
      {"an older copy of it, empty", kMine, 0, {}, HistoryVerdict::kRestore},
      {"a new file", kOther, 0, {}, HistoryVerdict::kRestore},
      {"another file, longer", kOther, 1'000, {}, HistoryVerdict::kRestore},
      {"no file at all", "", 0, {}, HistoryVerdict::kRestore},
      {"a new file that has it", kOther, 3, {kStood}, HistoryVerdict::kRestored},
      {"a new file that has a later one",
       kOther,
       3,
       {kStood + Hours(1)},
       HistoryVerdict::kRestored},
      {"a file that has an earlier one", kOther, 3, {kStood - Hours(1)}, HistoryVerdict::kRestore},
      {"an older copy that has it", kMine, 39, {kStood}, HistoryVerdict::kRestored},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    LedgerFile file{c.id, c.last_entry, {}};
    for (const Instant at : c.entered) {
      file.restored.push_back(Entered(Of::kBudget, Budget().uid, kMine, at));
      file.restored.push_back(Entered(Of::kLeaf, "team-a", kMine, at));
    }
    EXPECT_EQ(JudgeBudget(Stood(), Budget(), file, kNow).verdict, c.verdict);
    EXPECT_EQ(JudgeLeaf(LeafStood(), "team-a", file, kNow).verdict, c.verdict);
  }
  // What another object or another ledger has taken over is none of its own.
  const LedgerFile others{kOther,
                          9,
                          {Entered(Of::kBudget, "another", kMine, kStood),
                           Entered(Of::kLeaf, Budget().uid, kMine, kStood),
                           Entered(Of::kBudget, Budget().uid, kOther, kStood)}};
  EXPECT_EQ(JudgeBudget(Stood(), Budget(), others, kNow).verdict, HistoryVerdict::kRestore);
}

TEST(CheckpointRecoveryTest, WhatCannotBeTrueIsRefused) {
  const auto budget = [](void (*spoil)(BudgetCheckpoint&)) {
    BudgetCheckpoint checkpoint = Stood();
    spoil(checkpoint);
    return JudgeBudget(checkpoint, Budget(), {kOther, 0, {}}, kNow);
  };
  const std::pair<const char*, HistoryJudgement> refused[] = {
      {"status.checkpoint.time: expected a time of the 400 days before 2026-01-15T12:00:00Z, found "
       "2026-01-15T12:02:00Z",
       JudgeBudget(Stood(kNow + Minutes(2)), Budget(), {}, kNow)},
      {"found 2024-01-01T00:00:00Z", JudgeBudget(Stood(Utc(2024, 1, 1)), Budget(), {}, kNow)},
      {"expected a window of this budget at 2026-01-15T10:00:00Z and ascending parts of it, found "
       "2026-01-02T00:00:00Z to 2026-02-01T00:00:00Z",
       budget([](BudgetCheckpoint& spoilt) {
         spoilt.stand.window.start = Utc(2026, 1, 2);  // parts begin before it
       })},
      {"2026-01-01T00:00:00Z to 2026-03-01T00:00:00Z",
       budget([](BudgetCheckpoint& spoilt) { spoilt.stand.window.end = Utc(2026, 3, 1); })},
      {"expected a window of this budget",
       JudgeBudget(Stood(), test::RollingBudget(Hours(24), 1), {}, kNow)},
      {"status.checkpoint.time", JudgeLeaf(LeafStood(kNow + Hours(1)), "team-a", {}, kNow)},
  };
  for (const auto& [problem, judgement] : refused) {
    EXPECT_EQ(judgement.verdict, HistoryVerdict::kRefused) << problem;
    EXPECT_THAT(judgement.problem, HasSubstr(problem));
  }
  // The clock of whoever wrote it may have been a little ahead.
  EXPECT_EQ(JudgeBudget(Stood(kNow + Millis(59'000)), Budget(), {}, kNow).verdict,
            HistoryVerdict::kRestore);

  const std::pair<const char*, void (*)(LeafCheckpoint&)> months[] = {
      {"no month", [](LeafCheckpoint& leaf) { leaf.uses[0].span.start = Utc(2025, 12, 2); }},
      {"two months", [](LeafCheckpoint& leaf) { leaf.uses[0].span.end = Utc(2026, 2, 1); }},
      {"half a month", [](LeafCheckpoint& leaf) { leaf.uses[0].span.end = Utc(2025, 12, 9); }},
      {"beyond its time", [](LeafCheckpoint& leaf) { leaf.uses[1].span.end = Utc(2026, 2, 1); }},
      {"twice", [](LeafCheckpoint& leaf) { leaf.uses[1] = leaf.uses[0]; }},
      {"turned round", [](LeafCheckpoint& leaf) { std::swap(leaf.uses[0], leaf.uses[1]); }},
  };
  for (const auto& [name, spoil] : months) {
    LeafCheckpoint leaf = LeafStood();
    spoil(leaf);
    EXPECT_EQ(JudgeLeaf(leaf, "team-a", {}, kNow).verdict, HistoryVerdict::kRefused) << name;
  }
}

PolicyObject Object(const std::string& kind, const std::string& name,
                    const std::string& checkpoint) {
  return {kind, "", name, "uid", 1, fmt::format(R"({{"status":{{"checkpoint":{}}}}})", checkpoint)};
}

TEST(CheckpointRecoveryTest, WhatIsTakenOverAndWhatIsNotIsTold) {
  CheckpointRecovery recovery;
  recovery.Upsert(Object("GPUBudget", "team-a", wire::EncodeCheckpoint(Stood())));
  recovery.Upsert(Object("GPUBudget", "not-in-force", wire::EncodeCheckpoint(Stood())));
  recovery.Upsert(Object("GPUQuota", "team-a", wire::EncodeCheckpoint(LeafStood())));
  recovery.Upsert(Object("GPUQuota", "none", "null"));
  recovery.Upsert(Object("GPUQuota", "spoilt", R"({"ledger":"x"})"));
  recovery.Upsert(Object("GPUQuota", "gone", wire::EncodeCheckpoint(LeafStood())));
  recovery.Upsert(Object("GPUClass", "x", "[]"));
  recovery.Remove("GPUQuota", "gone");
  const FoundHistory found = recovery.Judge({Budget()}, {kOther, 0, {}}, kNow);
  ASSERT_EQ(found.uses.size(), 3U);
  EXPECT_EQ(found.uses[0].name, Budget().uid);
  EXPECT_TRUE(found.uses[0].stand == Stood().stand);
  EXPECT_EQ(found.uses[2].name, "team-a");
  EXPECT_TRUE(found.uses[2].use == LeafStood().uses[1]);
  ASSERT_EQ(found.findings.size(), 3U);
  EXPECT_EQ(found.findings[0].reason, "FromCheckpoint");
  EXPECT_EQ(found.findings[1].reason, "CheckpointRefused");
  EXPECT_EQ(found.findings[1].name, "spoilt");
  EXPECT_FALSE(found.findings[1].status);
  EXPECT_THAT(found.findings[1].message, HasSubstr("status.checkpoint.ledger"));
  // What is believed is told on in statuses until there is something newer.
  EXPECT_EQ(found.budgets.size(), 1U);
  EXPECT_EQ(found.leaves.size(), 1U);

  recovery.Upsert(Object("GPUBudget", "team-a", wire::EncodeCheckpoint(Stood())));
  const FoundHistory has = recovery.Judge({Budget()}, {kMine, 40, {}}, kNow);
  EXPECT_THAT(has.uses, IsEmpty());
  EXPECT_THAT(has.findings, IsEmpty());
  EXPECT_EQ(has.budgets.size(), 1U);
}

}  // namespace THIS_FILE
}  // namespace tranche
