// What a start is told in short counts as what it was told event by event: budgets of every kind,
// and the numbers under which pods go on.
#include <map>
#include <random>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/teams/earlier_numbers.h"
#include "test/builders/budget.h"
#include "test/builders/policies.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

class ShortHistory : public LedgerTest {
 protected:
  // Lives of some pods, in the order things happened; some began before the horizon.
  std::vector<MeterEvent> SomeLives(std::mt19937_64& random, int pods) {
    const auto below = [&random](int64_t limit) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
    };
    std::vector<MeterEvent> events;
    for (int pod = 0; pod < pods; ++pod) {
      const std::string uid = std::to_string(pod);
      int64_t minute = below(40 * 24 * 60) - 40 * 24 * 60;
      for (int64_t number = 0; number <= below(2); ++number) {
        MeterEvent open = Event(MeterKind::kOpen, uid, Minute(minute), static_cast<int>(number));
        open.leaf = pod % 2 == 0 ? "team-a" : "team-b";
        open.pod.ns = pod % 3 == 0 ? "a" : "b";
        open.workload_class = pod % 5 == 0 ? "" : "training";
        open.parts = {{pod % 4 == 0 ? "l4" : "h200", {kGpu * (1 + pod % 3), kGpu}}};
        if (pod % 7 == 0) open.parts.push_back({"zz", {kGpu / 2, kGpu}});
        const auto add = [&](MeterKind kind, int64_t at, int64_t until = 0) {
          MeterEvent event = open;
          event.kind = kind;
          event.at = Minute(at);
          event.until = Minute(until);
          if (kind == MeterKind::kRefund) event.note = "NodeLost";
          if (kind == MeterKind::kRunning) event.parts.clear();
          events.push_back(std::move(event));
        };
        events.push_back(open);
        const int64_t length = 2 + below(3'000);
        if (below(8) == 0) {
          add(MeterKind::kVoid, minute);
          minute += 10;
          continue;
        }
        if (below(3) == 0) add(MeterKind::kRefund, minute, minute + 1 + below(length - 1));
        if (below(4) > 0) add(MeterKind::kRunning, minute + 1 + below(length - 1));
        const bool lasts = minute + length >= 0 || below(12) == 0;
        if (lasts) break;
        add(MeterKind::kClose, minute + length);
        // Late news.
        if (below(5) == 0) add(MeterKind::kRefund, minute + length / 2, minute + length);
        minute += length + 5;
      }
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const MeterEvent& left, const MeterEvent& right) {
                       const auto told = [](const MeterEvent& event) {
                         return event.kind == MeterKind::kRefund ? event.until : event.at;
                       };
                       return told(left) < told(right);
                     });
    return events;
  }

  MeterHistory HistoryAs(PastForm form) {
    options_.past = form;
    const auto ledger = MustOpen();
    return ledger == nullptr ? MeterHistory() : ledger->TakeHistory();
  }

  static std::shared_ptr<const PolicySet> SomePolicies() {
    std::vector<GpuBudget> budgets;
    const auto add = [&budgets](const std::string& name, const std::string& quota,
                                GpuBudget budget) -> GpuBudget& {
      budget.name = budget.uid = name;
      budget.quota_ref = quota;
      return budgets.emplace_back(std::move(budget));
    };
    using test::PlainBudget;
    using Type = BudgetWindow::Type;
    add("a-rolling", "team-a", test::RollingBudget(test::Hours(744), 100'000));
    add("a-month", "team-a", PlainBudget(Type::kMonth, 100));
    add("b-week", "team-b", PlainBudget(Type::kWeek, 100'000)).meter_from = MeterFrom::kRunning;
    add("org-rolling", "org", test::RollingBudget(test::Hours(50), 10)).meter_from =
        MeterFrom::kRunning;
    add("org-day", "org", PlainBudget(Type::kDay, 100)).rates = {{"h200", 1'500}};
    add("of-namespace", "", test::RollingBudget(test::Hours(500), 1)).ns = "a";
    return test::Declare({.quotas = {test::Quota("org").Line("any", "100"),
                                     test::Quota("team-a").Under("org").Owns("a"),
                                     test::Quota("team-b").Under("org").Owns("b")},
                          .budgets = std::move(budgets),
                          .classes = {test::Class("training")}});
  }
};

TEST_F(ShortHistory, CountsAsItsEvents) {
  for (uint64_t seed = 1; seed <= 25 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    std::filesystem::remove(options_.path);
    std::filesystem::remove(options_.path + ".head");
    // So many are read in several stretches.
    const std::vector<MeterEvent> events = SomeLives(random, seed % 12 == 0 ? 3'000 : 40);
    WriteFile(events);
    MeterHistory long_form = HistoryAs(PastForm::kEvents);
    MeterHistory short_form = HistoryAs(PastForm::kShort);
    EXPECT_EQ(long_form.open.size(), short_form.open.size());
    EXPECT_GT(short_form.ended.size(), 5U);

    EarlierNumbers numbers;
    numbers.NoteEnded(short_form.ended_numbers);
    std::map<PodUid, std::pair<int, Instant>> last;
    for (const MeterEvent& event : long_form.events) {
      if (event.kind == MeterKind::kClose || event.kind == MeterKind::kVoid) {
        last[event.uid] = std::max(last[event.uid], std::pair(event.interval, event.at));
      }
    }
    EXPECT_FALSE(last.empty());
    for (const auto& [uid, end] : last) {
      EXPECT_EQ(numbers.EndOf(uid), end.second);
      EXPECT_EQ(numbers.NextOf(uid, 0), end.first + 1);
    }
    EXPECT_EQ(numbers.NextOf(PodUid("unheard of"), 3), 3);

    Engine by_events{EngineOptions()};
    Engine in_short{EngineOptions()};
    by_events.Restore(std::move(long_form));
    in_short.Restore(std::move(short_form));
    for (Engine* engine : {&by_events, &in_short}) {
      engine->SetPolicies(SomePolicies(), GpuPolicy(), Minute(10));
    }
    const std::map<std::string, BudgetStand> stands = by_events.BudgetStands(Minute(10));
    EXPECT_EQ(stands.size(), 6U);
    EXPECT_EQ(stands, in_short.BudgetStands(Minute(10)));
    for (const int64_t hours : {5, 40, 900}) {
      const Instant later = Minute(10) + std::chrono::hours(hours);
      EXPECT_EQ(by_events.BudgetStands(later), in_short.BudgetStands(later));
      EXPECT_EQ(by_events.Tick(later), in_short.Tick(later));
    }
  }
}

TEST(EarlierNumbersTest, GoOnAfterTheHighest) {
  EarlierNumbers numbers;
  numbers.NoteEnded({{KeyOf(PodUid("a")), 3}, {KeyOf(PodUid("b")), 0}, {KeyOf(PodUid("a")), 1}});
  numbers.Note(PodUid("c"), 7);
  EXPECT_EQ(numbers.NextOf(PodUid("a"), 0), 4);
  EXPECT_EQ(numbers.NextOf(PodUid("a"), 9), 9);
  EXPECT_EQ(numbers.NextOf(PodUid("c"), 0), 8);
  EXPECT_EQ(numbers.NextOf(PodUid("d"), 0), 0);
  numbers.NoteEnded({{KeyOf(PodUid("d")), 5}});
  numbers.Note(PodUid("e"), 2);
  numbers.KeepOnly({PodUid("d"), PodUid("e"), PodUid("f")});
  EXPECT_EQ(numbers.NextOf(PodUid("d"), 0), 6);
  EXPECT_EQ(numbers.NextOf(PodUid("e"), 0), 3);
  EXPECT_EQ(numbers.NextOf(PodUid("g"), 0), 0);
}

// Found by seed 8000744: the list of a server that was behind did not have what ended a moment ago,
// and its watch did.
TEST(EarlierNumbersTest, OfThoseThatAreGoneTheLastAreRemembered) {
  constexpr auto kMost = static_cast<int>(EarlierNumbers::kMostRecent);
  const auto named = [](int i) { return PodUid("pod-" + std::to_string(i)); };
  EarlierNumbers numbers;
  std::vector<EndedNumber> ended;
  for (int i = 0; i < 2 * kMost; ++i) ended.push_back({KeyOf(named(i)), 1, Minute(i)});
  numbers.NoteEnded(ended);
  numbers.Note(PodUid("gone"), 7);
  numbers.KeepOnly({named(3)});
  EXPECT_EQ(numbers.NextOf(named(3), 0), 2) << "it is there";
  EXPECT_EQ(numbers.NextOf(named(kMost - 1), 0), 0) << "long ago";
  EXPECT_EQ(numbers.NextOf(named(kMost), 0), 2);
  EXPECT_EQ(numbers.EndOf(named(2 * kMost - 1)), Minute(2 * kMost - 1));
  EXPECT_EQ(numbers.NextOf(PodUid("gone"), 0), 8);
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
