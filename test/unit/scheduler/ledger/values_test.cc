// What is refused before it is queued, and texts of the tables that were not written by us.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "scheduler/ledger/book.h"
#include "scheduler/ledger/journal.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

// The years that a time in nanoseconds can name, which exports use.
constexpr Instant kFirst{Millis(-9'223'372'036'854)};
constexpr Instant kLast{Millis(9'223'372'036'854)};
constexpr Millis kOne{1};

template <typename Value>
struct Change {
  std::function<void(Value&)> change;
  std::string said;  // how it begins; empty: nothing is wrong
};

template <typename Value>
void ExpectSaid(const Value& good, const std::vector<Change<Value>>& rows) {
  for (const Change<Value>& row : rows) {
    Value value = good;
    row.change(value);
    const std::string said = Malformed(value);
    EXPECT_EQ(said.substr(0, row.said.size()), row.said);
    EXPECT_EQ(said.empty(), row.said.empty()) << said;
  }
}

TEST(LedgerValues, EventsThatTheTablesCannotHoldAreNamed) {
  using E = MeterEvent;
  const std::string years = "expected a time of years 1677 to 2262";
  constexpr int64_t kMost = 1'000'000'000'000'000;
  ExpectSaid<E>(
      Open("a", kTen),
      {{[](E&) {}, ""},
       {[](E& event) { event.uid = PodUid(); }, "expected a pod UID"},
       {[](E& event) { event.interval = -1; }, "expected interval >= 0, found -1"},
       {[](E& event) { event.at = kFirst; }, ""},
       {[](E& event) { event.at = kFirst - kOne; }, years},
       {[](E& event) { event.at = kLast; }, ""},
       {[](E& event) { event.at = kLast + kOne; }, years},
       {[](E& event) { event.until = kFirst - kOne; }, years},
       {[](E& event) { event.until = kLast + kOne; }, years},
       {[](E& event) { event.parts[0].charge.compute = -1; }, "expected 0 to 1000000000000000 "},
       {[](E& event) { event.parts[0].charge.memory = -1; }, "expected 0 to 1000000000000000 "},
       {[](E& event) { event.parts[0].charge.memory = kMost; }, ""},
       {[](E& event) { event.parts[0].charge.memory = kMost + 1; }, "expected 0 to 10000000000"}});
}

TEST(LedgerValues, WindowsAndRestoredSpansEndAfterTheirStart) {
  using C = WindowClosing;
  C closing;
  closing.span = {Minute(0), Minute(1)};
  const std::string window = "expected a budget window that ends after its start";
  ExpectSaid<C>(closing, {{[](C&) {}, ""},
                          {[](C& one) { one.span.start = kFirst - kOne; }, window},
                          {[](C& one) { one.span.end = kLast + kOne; }, window},
                          {[](C& one) { one.span.end = one.span.start; }, window}});
  using R = RestoredUse;
  R use;
  use.of = R::Of::kLeaf;
  use.name = "team-a";
  use.mark.at = Minute(1);
  use.use = {"h200", {Minute(0), Minute(1)}, {1, 1}};
  const std::string span = "expected a restored span that ends after its start";
  ExpectSaid<R>(use, {{[](R&) {}, ""},
                      {[](R& one) { one.name.clear(); }, "expected a name"},
                      {[](R& one) { one.mark.at = kLast + kOne; }, span},
                      {[](R& one) { one.use.span.start = kFirst - kOne; }, span},
                      {[](R& one) { one.use.span.end = kLast + kOne; }, span},
                      {[](R& one) { one.use.span.end = Minute(0); }, span},
                      {[](R& one) { one.use.time.memory = -1; }, "expected restored amounts"}});
}

TEST(LedgerValues, AmountsAreReadAsTheyWereWrittenOrNotAtAll) {
  WindowClosing closing;
  closing.base = 7;
  closing.carried_out = {3, 4};
  WindowClosing read;
  ASSERT_TRUE(ParseAmounts(FormatAmounts(closing), read));
  EXPECT_EQ(read.base, 7);
  EXPECT_EQ(read.carried_out, closing.carried_out);
  for (const char* text :
       {"", "7", "7 0 0 0 0", "7 0 0 0 0 2 3", "7 0 0 0 0 1 3 4", "7 x 0 0 0 0"}) {
    EXPECT_FALSE(ParseAmounts(text, read)) << text;
  }
}

TEST(LedgerValues, DetailsOfWhatWasTakenOverAreReadAsTheyWereWrittenOrNotAtAll) {
  RestoredUse use;
  use.of = RestoredUse::Of::kBudget;
  use.stand.debt_in = 5;
  use.stand.carried_in = {1, 2};
  use.stand.parts = {{{Minute(0), Minute(1)}, {8, 9}}};
  RestoredUse read;
  read.of = use.of;
  ASSERT_TRUE(ParseDetail(FormatDetail(use), read));
  EXPECT_EQ(FormatDetail(read), FormatDetail(use));
  for (const char* text : {"", "x", "5", "5 -1 0", "5 2 1 2", "5 9 1 2 0", "5 0 -1", "5 0 1 1 2 3",
                           "5 0 2 1 2 3 4", "5 0 0 1 2 3 4"}) {
    RestoredUse other;
    other.of = RestoredUse::Of::kBudget;
    EXPECT_FALSE(ParseDetail(text, other)) << text;
  }
  RestoredUse leaf;
  leaf.of = RestoredUse::Of::kLeaf;
  EXPECT_TRUE(ParseDetail(FormatDetail(leaf), leaf));
  EXPECT_FALSE(ParseDetail("5 0 0", leaf));
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
