// The bill of a ledger file: what is entered about fleet and prices, and what use then costs.
#include <gmock/gmock.h>

#include "scheduler/ledger/bill/fleet_text.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FleetFact Node(const std::string& name, int64_t gpus, const std::string& pool = "",
               const std::string& model = "h200") {
  NodeTraits traits;
  traits.pool = pool;
  return {FleetKind::kNode, name, NodeText({name, {{model, gpus}}, traits})};
}
FleetFact Price(const std::string& name, int64_t micros, const std::string& pool = "",
                const std::string& currency = "USD") {
  GpuPrice price;
  price.name = name;
  price.micros_per_gpu_hour = micros;
  price.currency = currency;
  price.pool = pool;
  return {FleetKind::kPrice, name, PriceText(price)};
}
FleetFact Stranded(int64_t milli, const std::string& model = "h200", const std::string& pool = "") {
  NodeTraits traits;
  traits.pool = pool;
  return {FleetKind::kStranded, KindText(model, traits), StrandedText({model, traits, milli})};
}

class BillTest : public LedgerTest {
 protected:
  static void Note(Ledger& ledger, Instant at, std::vector<FleetFact> facts, bool whole = false) {
    ledger.NoteFleet({at, std::move(facts), whole});
    EXPECT_TRUE(Committed(ledger)) << ledger.health().problem;
  }
  // The last moment it knows of.
  static void End(std::unique_ptr<SqliteLedger> ledger, Instant at) { ledger->Heartbeat(at, {}); }
  absl::StatusOr<Bill> Ask(int64_t from, int64_t to, BillBy by = BillBy::kTeam) {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader->MakeBill({Minute(from), Minute(to), by});
  }
  // "team-a 1.000 2.00", then used, free, stranded where something is, refunded and fleet.
  std::vector<std::string> Lines(int64_t from, int64_t to, BillBy by = BillBy::kTeam) {
    const absl::StatusOr<Bill> bill = Ask(from, to, by);
    if (!bill.ok()) return {std::string(bill.status().message())};
    std::vector<std::string> lines;
    const auto add = [&](std::string_view key, const BillPart& part) {
      lines.push_back(
          fmt::format("{} {} {}", key, FormatBilledHours(part.quantity), FormatCents(part.cents)));
    };
    for (const BillRow& row : bill->rows) add(row.key, row.part);
    add("used", bill->used);
    add("free", bill->free);
    if (bill->stranded.quantity != 0) add("stranded", bill->stranded);
    add("refunded", bill->refunded);
    add("fleet", bill->fleet);
    return lines;
  }
  int64_t EntriesOfFleet() { return std::stoll(Sql("SELECT count(*) FROM entry WHERE kind >= 9")); }
};

TEST_F(BillTest, UsedFreeAndRefundedAreTheFleet) {
  auto ledger = MustOpen();
  Note(*ledger, Minute(0), {Node("node-1", 2), Price("all", 2'500'000)}, true);
  Write(*ledger,
        {Open("a", Minute(0)), Close("a", Minute(120)), Refund("a", Minute(60), Minute(90))});
  End(std::move(ledger), Minute(240));
  EXPECT_THAT(Lines(0, 120), ElementsAre("team-a 1.500 3.75", "used 1.500 3.75", "free 2.000 5.00",
                                         "refunded 0.500 1.25", "fleet 4.000 10.00"));
  EXPECT_THAT(Lines(30, 180), ElementsAre("team-a 1.000 2.50", "used 1.000 2.50", "free 3.500 8.75",
                                          "refunded 0.500 1.25", "fleet 5.000 12.50"));
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(BillTest, APodPaysForTheLargerOfItsShares) {
  auto ledger = MustOpen();
  Note(*ledger, Minute(0), {Node("node-1", 1), Price("all", 1'000'000)}, true);
  MeterEvent first = Open("a", Minute(0));
  first.parts = {{"h200", {kGpu / 2, kGpu / 4}}};
  MeterEvent second = Open("b", Minute(60));
  second.leaf = "team-b";
  second.parts = {{"h200", {kGpu / 4, kGpu * 3 / 4}}};
  Write(*ledger, {first, second});
  End(std::move(ledger), Minute(120));
  // Half a GPU alone; then 1/2 and 3/4 of one GPU, which is shared out as 2 to 3.
  EXPECT_THAT(Lines(0, 120),
              ElementsAre("team-a 0.900 0.90", "team-b 0.600 0.60", "used 1.500 1.50",
                          "free 0.500 0.50", "refunded 0.000 0.00", "fleet 2.000 2.00"));
}

TEST_F(BillTest, OfWhatWasUsedThePartIsToldThatDidNothing) {
  auto ledger = MustOpen();
  Note(*ledger, Minute(0), {Node("node-1", 2), Price("all", 2'000'000)}, true);
  Write(*ledger,
        {Open("a", Minute(0)), Close("a", Minute(120)), Refund("a", Minute(60), Minute(90))});
  // Before it was there, over the time that was given back, and of somebody else.
  PastNews news;
  news.at = Minute(120);
  news.idle = {{PodUid("a"), Minute(-30), Minute(15)},
               {PodUid("a"), Minute(45), Minute(105)},
               {PodUid("b"), Minute(0), Minute(120)}};
  ledger->NotePast(std::move(news));
  ASSERT_TRUE(Committed(*ledger));
  End(std::move(ledger), Minute(240));
  const absl::StatusOr<Bill> bill = Ask(0, 240);
  ASSERT_TRUE(bill.ok()) << bill.status();
  ASSERT_EQ(bill->rows.size(), 1U);
  for (const BillPart& idle : {bill->rows[0].idle, bill->idle}) {
    EXPECT_EQ(FormatBilledHours(idle.quantity), "0.750");
    EXPECT_EQ(FormatCents(idle.cents), "1.50");
  }
  EXPECT_THAT(Lines(0, 240), ElementsAre("team-a 1.500 3.00", "used 1.500 3.00", "free 6.000 12.00",
                                         "refunded 0.500 1.00", "fleet 8.000 16.00"));
  EXPECT_EQ(FormatBilledHours(Ask(50, 55)->idle.quantity), "0.083");
}

TEST_F(BillTest, PricesAndPoolsAreThoseOfTheTime) {
  auto ledger = MustOpen();
  Note(*ledger, Minute(0), {Node("node-1", 1), Price("all", 1'000'000)}, true);
  Write(*ledger, {Open("a", Minute(0))});
  Note(*ledger, Minute(60), {Price("all", 3'000'000)});
  Note(*ledger, Minute(120), {Node("node-1", 1, "spot"), Price("spot", 500'000, "spot")});
  Note(*ledger, Minute(180), {{FleetKind::kPrice, "all", ""}, {FleetKind::kPrice, "spot", ""}});
  End(std::move(ledger), Minute(240));
  EXPECT_THAT(Lines(0, 240, BillBy::kNodePool),
              ElementsAre(" 2.000 4.00", "spot 2.000 0.50", "used 4.000 4.50", "free 0.000 0.00",
                          "refunded 0.000 0.00", "fleet 4.000 4.50"));
  EXPECT_EQ(FormatBilledHours(Ask(0, 240)->fleet.unpriced), "1.000");
  EXPECT_THAT(Lines(0, 60, BillBy::kNamespace)[0], "ns-a 1.000 1.00");
  EXPECT_THAT(Lines(0, 60, BillBy::kModel)[0], "h200 1.000 1.00");
  EXPECT_THAT(Lines(-600, 60, BillBy::kDay)[0], "2026-03-01 1.000 1.00");
}

TEST_F(BillTest, WhatIsNotKnownIsNotBilled) {
  auto ledger = MustOpen();
  Write(*ledger, {Open("a", Minute(0))});
  Note(*ledger, Minute(60), {Node("node-1", 1)}, true);
  Note(*ledger, Minute(120), {Price("all", 1'000'000)});
  Note(*ledger, Minute(180), {Price("all", 1'000'000)}, true);  // the node is gone
  End(std::move(ledger), Minute(240));
  const absl::StatusOr<Bill> bill = Ask(0, 240);
  ASSERT_TRUE(bill.ok()) << bill.status();
  EXPECT_EQ(bill->fleet_from, Minute(60));
  EXPECT_EQ(bill->prices_from, Minute(120));
  EXPECT_EQ(FormatBilledHours(bill->unknown), "2.000");
  EXPECT_EQ(FormatBilledHours(bill->rows[0].part.unpriced), "3.000");
  EXPECT_THAT(Lines(0, 240), ElementsAre("team-a 4.000 1.00", "used 2.000 1.00", "free 0.000 0.00",
                                         "refunded 0.000 0.00", "fleet 2.000 1.00"));
}

TEST_F(BillTest, OnlyChangesAreEnteredAlsoAfterARestart) {
  {
    auto ledger = MustOpen();
    Note(*ledger, Minute(0), {Node("node-1", 8), Node("node-2", 8), Price("all", 1)}, true);
    Note(*ledger, Minute(1), {Node("node-1", 8), Price("all", 1)});
    EXPECT_EQ(EntriesOfFleet(), 3);
  }
  auto ledger = MustOpen();
  Note(*ledger, Minute(2), {Node("node-1", 8), Node("node-3", 8), Price("all", 1)}, true);
  EXPECT_EQ(EntriesOfFleet(), 5) << "node-2 has gone and node-3 has come";
  EXPECT_EQ(Sql("SELECT note FROM entry ORDER BY id DESC LIMIT 1 OFFSET 1"),
            R"({"node":"node-2","gone":true})");
  Note(*ledger, Minute(3), {{FleetKind::kNode, "node-2", ""}});
  EXPECT_EQ(EntriesOfFleet(), 5);
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(BillTest, WhatNobodyIsExpectedToUseIsNoPartOfWhatIsFree) {
  auto ledger = MustOpen();
  Note(*ledger, Minute(0),
       {Node("node-1", 2), Node("node-2", 2), Node("node-3", 4, "spot"), Price("all", 2'000'000)},
       true);
  Note(*ledger, Minute(60), {Stranded(1'500)});
  // Of three free ones a half and one; then only one is free; then none is stranded.
  MeterEvent other = Open("b", Minute(120));
  other.node = NodeName("node-2");
  other.parts = {{"h200", {2 * kGpu, 2 * kGpu}}};
  Write(*ledger, {Open("a", Minute(0)), other});
  Note(*ledger, Minute(180), {{FleetKind::kStranded, Stranded(0).key, ""}});
  End(std::move(ledger), Minute(240));
  const struct {
    int64_t from;
    int64_t to;
    const char* free;
    const char* stranded;  // null: no line
  } rows[] = {
      {0, 60, "free 7.000 14.00", nullptr},
      {60, 120, "free 5.500 11.00", "stranded 1.500 3.00"},
      {120, 180, "free 4.000 8.00", "stranded 1.000 2.00"},
      {180, 240, "free 5.000 10.00", nullptr},
      {0, 240, "free 21.500 43.00", "stranded 2.500 5.00"},
      {90, 150, "free 4.750 9.50", "stranded 1.250 2.50"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(fmt::format("{} to {}", row.from, row.to));
    const std::vector<std::string> lines = Lines(row.from, row.to);
    EXPECT_THAT(lines, testing::Contains(row.free));
    if (row.stranded != nullptr) {
      EXPECT_THAT(lines, testing::Contains(row.stranded));
    } else {
      EXPECT_THAT(lines, testing::Not(testing::Contains(testing::StartsWith("stranded"))));
    }
  }
  EXPECT_EQ(Ask(0, 240)->stranded_from, Minute(60));
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(BillTest, OfAKindThatIsGoneItIsSaidOnceThatNothingIsStranded) {
  {
    auto ledger = MustOpen();
    Note(*ledger, Minute(0), {Node("node-1", 8), Stranded(300), Stranded(0, "l40s", "spot")}, true);
    Note(*ledger, Minute(1), {Stranded(300), Stranded(0, "l40s", "spot")});
    EXPECT_EQ(EntriesOfFleet(), 3);
    Note(*ledger, Minute(2), {Node("node-1", 8)}, true);
    EXPECT_EQ(EntriesOfFleet(), 4);
    EXPECT_EQ(Sql("SELECT note FROM entry ORDER BY id DESC LIMIT 1"),
              R"({"stranded":0,"model":"h200"})");
  }
  auto ledger = MustOpen();
  Note(*ledger, Minute(3), {Node("node-1", 8)}, true);
  EXPECT_EQ(EntriesOfFleet(), 4);
  Note(*ledger, Minute(4), {Stranded(400)});
  EXPECT_EQ(EntriesOfFleet(), 5);
}

TEST_F(BillTest, WhatNoLedgerCanHoldIsRefusedAndNamed) {
  auto ledger = MustOpen();
  Note(*ledger, Minute(0),
       {{FleetKind::kNode, "no name", "{}"},
        {FleetKind::kNode, "long", std::string(9'000, 'x')},
        {FleetKind::kStranded, "h200", StrandedText({"h200", {}, 1})}});
  EXPECT_EQ(EntriesOfFleet(), 0);
  EXPECT_THAT(ledger->health().problem, HasSubstr("refused 3 malformed events"));
}

TEST_F(BillTest, SeveralCurrenciesAreNoBill) {
  auto ledger = MustOpen();
  Note(*ledger, Minute(0), {Node("node-1", 1), Price("all", 1)}, true);
  Note(*ledger, Minute(60), {Price("all", 1, "", "EUR")});
  End(std::move(ledger), Minute(120));
  EXPECT_THAT(Lines(0, 120)[0], HasSubstr("one currency from 2026-03-01 to 2026-03-01, found EUR "
                                          "and USD"));
  EXPECT_EQ(Ask(60, 120)->currency, "EUR");
  EXPECT_THAT(Lines(60, 60)[0], HasSubstr("to: expected a moment after from"));
}

TEST_F(BillTest, ALedgerThatTellsOfNoFleetHasABillOfNoMoney) {
  WriteFile({Open("a", Minute(0)), Close("a", Minute(60))});
  const absl::StatusOr<Bill> bill = Ask(0, 60);
  ASSERT_TRUE(bill.ok()) << bill.status();
  EXPECT_EQ(bill->fleet_from, std::nullopt);
  EXPECT_EQ(bill->currency, "");
  EXPECT_EQ(FormatBilledHours(bill->unknown), "1.000");
  EXPECT_EQ(bill->fleet.cents, 0);
}

TEST_F(BillTest, ANoteThatSaysNothingIsAFaultOfRuleSeven) {
  {
    auto ledger = MustOpen();
    Note(*ledger, Minute(0),
         {{FleetKind::kNode, "node-1", R"({"node":"node-1"})"},
          {FleetKind::kStranded, Stranded(0).key, R"({"stranded":-1,"model":"h200"})"}});
  }
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("rule 7: entry 1: expected a note that says it"),
                                    HasSubstr("rule 7: entry 2: expected a note that says it")));
  EXPECT_TRUE(absl::IsDataLoss(Ask(-60, 0).status())) << Ask(-60, 0).status();
}

TEST(FleetTextTest, ReadsWhatItWrites) {
  NodeOffer offer{"node-1", {{"a100-80gb", 4}, {"h200", 8}}, {"p", CapacityType::kSpot, "p5.48x"}};
  const std::string text = NodeText(offer);
  EXPECT_EQ(text, R"({"node":"node-1","gpus":[{"model":"a100-80gb","count":4},)"
                  R"({"model":"h200","count":8}],"pool":"p","capacity":"Spot",)"
                  R"("instanceType":"p5.48x"})");
  EXPECT_EQ(ReadNodeText(text).value(), offer);
  offer.traits.instance_type = "a \"quoted\" one";
  EXPECT_EQ(ReadNodeText(NodeText(offer))->traits.instance_type, "");
  EXPECT_TRUE(ReadNodeText(GoneNodeText("node-1"))->gpus.empty());
  EXPECT_TRUE(ReadPriceText(GonePriceText("all"))->gone);
  EXPECT_EQ(ReadPriceText(Price("all", 7).text)->price.micros_per_gpu_hour, 7);
  for (const char* const wrong :
       {"", "{}", R"({"node":"n"})", R"({"node":"n","gpus":[]})",
        R"({"node":"n","gone":true,"gpus":[{"model":"h200","count":8}]})",
        R"({"node":"n","gpus":[{"model":"h200","count":0}]})", R"({"node":"n","gone":false})"}) {
    EXPECT_FALSE(ReadNodeText(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(ReadPriceText(R"({"metadata":{"name":"a"}})").ok());
  const StrandedGpus stranded{"h200", {"p", CapacityType::kSpot, "p5.48x"}, 1'250};
  EXPECT_EQ(StrandedText(stranded), R"({"stranded":1250,"model":"h200","pool":"p",)"
                                    R"("capacity":"Spot","instanceType":"p5.48x"})");
  EXPECT_EQ(ReadStrandedText(StrandedText(stranded)).value(), stranded);
  EXPECT_EQ(ReadStrandedText(KindText("h200", stranded.traits))->milli, 0);
  for (const char* const wrong :
       {"", "{}", R"({"stranded":1})", R"({"model":"h200"})", R"({"stranded":-1,"model":"h200"})",
        R"({"stranded":1.5,"model":"h200"})", R"({"stranded":1000000001,"model":"h200"})",
        R"({"stranded":1,"model":"h 200"})", R"({"stranded":1,"model":"h200","node":"n"})"}) {
    EXPECT_FALSE(ReadStrandedText(wrong).ok()) << wrong;
  }
}

TEST(BillRows, MoreThanAnybodyReadsAreRefused) {
  const auto billed = [](std::size_t pods, BillBy by) {
    std::vector<BillUse> uses(pods);
    for (std::size_t i = 0; i < pods; ++i) {
      const auto at = static_cast<int64_t>(i);
      uses[i].node = "n";
      uses[i].model = "h200";
      uses[i].ns = "ns";
      uses[i].from = at;
      uses[i].until = at + 1;
      uses[i].charge = {kGpu, kGpu};
      uses[i].pod = fmt::format("p-{}", i);
    }
    const Instant to{Millis(static_cast<int64_t>(pods))};
    return SumBill({Instant(Millis(0)), to, by}, {}, uses).status();
  };
  EXPECT_TRUE(billed(kMostBillRows, BillBy::kPod).ok());
  EXPECT_TRUE(billed(kMostBillRows + 1, BillBy::kNamespace).ok());
  EXPECT_EQ(billed(kMostBillRows + 1, BillBy::kPod).message(),
            "from, to: expected at most 50000 rows by pod, found 50001; ask for a shorter span");
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
