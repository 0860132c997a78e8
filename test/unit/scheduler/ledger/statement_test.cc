// Statements: what a span cost, as the ledger said at one entry, whatever comes after it.
//   TRANCHE_SEED=7 replays one seed
#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

#include "scheduler/api/ledger_json.h"
#include "scheduler/ledger/bill/fleet_text.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::HasSubstr;

class StatementTest : public LedgerTest {
 protected:
  absl::StatusOr<BillStatement> State(BillQuery query) {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader->MakeStatement(query);
  }
  // The text of the statement, made anew from the entries up to it.
  std::string Anew(const BillStatement& old) {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    const auto point = reader->PointAt(old.point.entry);
    EXPECT_TRUE(point.ok() && *point);
    BillQuery query{old.bill.from, old.bill.to, old.bill.by, old.point.entry};
    auto bill = reader->MakeBill(query);
    EXPECT_TRUE(bill.ok()) << bill.status();
    return StatementJson({**point, *std::move(bill)});
  }
  static void NoteFleet(Ledger& ledger, Instant at, int64_t gpus, int64_t micros) {
    GpuPrice price;
    price.name = "all";
    price.micros_per_gpu_hour = micros;
    price.currency = "USD";
    ledger.NoteFleet({at,
                      {{FleetKind::kNode, "node-1", NodeText({"node-1", {{"h200", gpus}}, {}})},
                       {FleetKind::kPrice, "all", PriceText(price)}},
                      true});
    EXPECT_TRUE(Committed(ledger)) << ledger.health().problem;
  }
};

TEST_F(StatementTest, IsOfASpanThatIsOver) {
  const auto ledger = MustOpen();
  EXPECT_THAT(State({Minute(0), Minute(30)}).status().message(), HasSubstr("with entries"));
  ledger->Heartbeat(Minute(60), {});  // is committed with what comes next
  Write(*ledger, {Open("a", Minute(0))});
  EXPECT_EQ(State({Minute(0), Minute(61)}).status().message(),
            "to: expected the end of a span that is over, found 2026-03-01; the ledger knows of "
            "time until 2026-03-01");
  const auto statement = State({Minute(0), Minute(60)});
  ASSERT_TRUE(statement.ok()) << statement.status();
  EXPECT_EQ(statement->point.entry, 1);
  EXPECT_EQ(statement->point.hash.size(), 64U);
}

TEST_F(StatementTest, IsOfTheLastMonthWhereNoSpanIsAsked) {
  const auto ledger = MustOpen();
  ledger->Heartbeat(Minute(60), {});  // is committed with what comes next
  Write(*ledger, {Open("a", Minute(0))});
  const auto statement = State({Instant::min(), Instant::max()});
  ASSERT_TRUE(statement.ok()) << statement.status();
  EXPECT_EQ(FormatDay(statement->bill.from) + " " + FormatDay(statement->bill.to),
            "2026-02-01 2026-03-01");
}

TEST_F(StatementTest, WhatComesLaterChangesItNot) {
  const auto ledger = MustOpen();
  NoteFleet(*ledger, Minute(0), 4, 2'000'000);
  ledger->Heartbeat(Minute(60), {});
  Write(*ledger, {Open("ends", Minute(0)), Open("stays", Minute(10)), Open("never", Minute(20))});
  const auto first = State({Minute(0), Minute(60)});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string text = StatementJson(*first);
  EXPECT_THAT(text,
              HasSubstr(R"("fleet":{"gpuHours":"4.000","unpricedGpuHours":"0.000","cost":"8.00")"));
  // An end that was told late, one that was never bound, a refund, and another price from before.
  Write(*ledger, {Close("ends", Minute(30)), Void("never", Minute(20)),
                  Refund("ends", Minute(0), Minute(15))});
  NoteFleet(*ledger, Minute(5), 8, 3'000'000);
  ledger->NoteFleet(
      {Minute(10),
       {{FleetKind::kStranded, KindText("h200", {}), StrandedText({"h200", {}, 500})}},
       false});
  ASSERT_TRUE(Committed(*ledger));
  EXPECT_EQ(Anew(*first), text);
  EXPECT_THAT(text, testing::Not(HasSubstr("stranded"))) << "as before it was told of";
  const auto second = State({Minute(0), Minute(60)});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(second->bill.used.quantity, first->bill.used.quantity);
  EXPECT_NE(second->bill.fleet.cents, first->bill.fleet.cents);
  EXPECT_GT(second->bill.refunded.quantity, 0);
  EXPECT_THAT(StatementJson(*second), HasSubstr(R"("stranded":{"gpuHours":"0.416",)"));
}

// Whatever was written meanwhile: each statement is found again in every figure.
TEST_F(StatementTest, EachOfARandomHistoryIsFoundAgain) {
  const char* const given = std::getenv("TRANCHE_SEED");  // NOLINT(concurrency-mt-unsafe)
  const uint64_t seed =
      given == nullptr ? std::random_device()() : std::strtoull(given, nullptr, 10);
  SCOPED_TRACE(fmt::format("TRANCHE_SEED={}", seed));
  std::mt19937_64 random(seed);
  const auto any = [&random](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  const auto ledger = MustOpen();
  std::vector<BillStatement> made;
  std::vector<std::string> texts;
  std::vector<std::pair<std::string, int64_t>> open;  // and since when
  for (int64_t step = 0; step < 60; ++step) {
    const int64_t now = 10 * (step + 1);
    std::vector<MeterEvent> events;
    const std::string uid = fmt::format("pod-{}", step);
    ledger->Heartbeat(Minute(now), {});
    const int64_t what = any(4);
    if (what <= 1) {
      open.emplace_back(uid, now - any(9));
      events.push_back(Open(uid, Minute(open.back().second)));
    } else if (what == 2 && !open.empty()) {
      const auto& [ends, since] = open.back();
      const bool was_bound = any(3) > 0;
      events.push_back(was_bound ? Close(ends, Minute(now)) : Void(ends, Minute(now)));
      if (was_bound && any(1) == 0) events.push_back(Refund(ends, Minute(since), Minute(now - 1)));
      open.pop_back();
    }
    if (events.empty()) {
      NoteFleet(*ledger, Minute(now - any(20)), 1 + any(7), 1'000'000 * (1 + any(5)));
    } else {
      Write(*ledger, std::move(events));
    }
    const int64_t to = 1 + any(now - 1);
    constexpr BillBy kBy[] = {BillBy::kTeam, BillBy::kModel, BillBy::kNodePool};
    auto statement = State({Minute(any(to - 1)), Minute(to), kBy[any(2)]});
    if (absl::IsFailedPrecondition(statement.status())) continue;  // nothing was written yet
    ASSERT_TRUE(statement.ok()) << statement.status();
    texts.push_back(StatementJson(*statement));
    made.push_back(*std::move(statement));
  }
  ASSERT_GT(made.size(), 30U);
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(Anew(made[i]), texts[i]) << i;
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
