// Bills by who made the pods and by their labels, and the files that do not tell of either.
#include <gmock/gmock.h>

#include "scheduler/ledger/bill/fleet_text.h"
#include "scheduler/ledger/bill/workload_text.h"
#include "scheduler/ledger/schema.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class BillGroupsTest : public LedgerTest {
 protected:
  BillGroupsTest() { options_.bill_labels = {"project", "example.com/stage"}; }

  static MeterEvent Made(const std::string& uid, const std::string& controller, Labels labels) {
    MeterEvent event = Open(uid, Minute(0));
    event.controller = controller;
    event.labels = std::make_shared<const Labels>(std::move(labels));
    return event;
  }
  // Four GPUs at a dollar an hour, of which three are held for two hours.
  void WriteThree() {
    auto ledger = MustOpen();
    GpuPrice price;
    price.name = "all";
    price.micros_per_gpu_hour = 1'000'000;
    price.currency = "USD";
    ledger->NoteFleet({Minute(0),
                       {{FleetKind::kNode, "node-1", NodeText({"node-1", {{"h200", 4}}, {}})},
                        {FleetKind::kPrice, "all", PriceText(price)}},
                       true});
    Write(*ledger, {Made("a", "Job/train", {{"project", "x"}, {"secret", "s"}}),
                    Made("b", "Deployment/web", {{"project", "y"}, {"example.com/stage", "live"}}),
                    Open("c", Minute(0))});
    ledger->Heartbeat(Minute(120), {});
  }
  std::vector<std::string> Lines(const BillGroup& by) {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    const absl::StatusOr<Bill> bill = reader->MakeBill({Minute(0), Minute(120), by});
    if (!bill.ok()) return {std::string(bill.status().message())};
    std::vector<std::string> lines;
    int64_t cents = bill->free.cents + bill->refunded.cents;
    for (const BillRow& row : bill->rows) {
      lines.push_back(fmt::format("{} {}", row.key, FormatCents(row.part.cents)));
      cents += row.part.cents;
    }
    EXPECT_EQ(cents, bill->fleet.cents);
    return lines;
  }
};

TEST_F(BillGroupsTest, RowsAreOfWhatMadeThePodsOrOfALabel) {
  WriteThree();
  EXPECT_THAT(Lines({BillBy::kOwner}),
              ElementsAre(" 2.00", "ns-a/Deployment/web 2.00", "ns-a/Job/train 2.00"));
  EXPECT_THAT(Lines({BillBy::kLabel, "project"}), ElementsAre(" 2.00", "x 2.00", "y 2.00"));
  EXPECT_THAT(Lines({BillBy::kLabel, "example.com/stage"}), ElementsAre(" 4.00", "live 2.00"));
  EXPECT_THAT(Lines({BillBy::kLabel, "secret"}), ElementsAre(" 6.00")) << "it is not kept";
  EXPECT_EQ(Sql("SELECT workload FROM interval WHERE uid = 'a'"),
            R"({"controller":"Job/train","labels":{"project":"x"}})");
  EXPECT_EQ(Sql("SELECT workload FROM interval WHERE uid = 'c'"), "");
  EXPECT_THAT(Faults(), IsEmpty());
}

// What somebody changes in the file is found: it is in the chain.
TEST_F(BillGroupsTest, TheChainTellsOfIt) {
  WriteThree();
  Sql("DROP TRIGGER interval_update");
  Sql(R"(UPDATE interval SET workload = '{"controller":"Job/other"}' WHERE uid = 'a')");
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("rule 6: entry 3: expected hash")));
  Sql("UPDATE interval SET workload = '' WHERE uid = 'a'");
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("rule 6: entry 3: expected hash")));
  Sql("UPDATE interval SET workload = 'Job/train' WHERE uid = 'a'");
  EXPECT_THAT(Faults(),
              UnorderedElementsAre(HasSubstr("rule 7: entry 3: expected a workload that says it"),
                                   HasSubstr("rule 6: entry 3: expected hash")));
  EXPECT_THAT(Lines({BillBy::kOwner})[0], HasSubstr("interval 0 of ns-a/pod-a: workload"));
  EXPECT_THAT(Lines({BillBy::kTeam}), ElementsAre("team-a 6.00"));
}

TEST_F(BillGroupsTest, AFileOfAnOlderVersionIsBilledWithoutAndGoesOn) {
  options_.bill_labels.clear();
  WriteFile({Open("a", Minute(0)), Close("a", Minute(60))});
  // As version 5 left it.
  Sql("ALTER TABLE interval DROP COLUMN workload; PRAGMA user_version = 5");
  EXPECT_THAT(Faults(), IsEmpty());
  EXPECT_THAT(Lines({BillBy::kOwner}), ElementsAre(" 0.00"));
  {
    const auto ledger = MustOpen();
    ASSERT_NE(ledger, nullptr);
    Write(*ledger, {Made("b", "Job/train", {})});
  }
  EXPECT_EQ(Sql("PRAGMA user_version"), std::to_string(kSchemaVersion));
  EXPECT_THAT(Faults(), IsEmpty());
  EXPECT_EQ(Sql("SELECT group_concat(workload) FROM interval"), R"(,{"controller":"Job/train"})");
}

TEST(WorkloadText, KeepsWhatIsAskedForAndCanBeWritten) {
  const std::vector<std::string> kept = {"b", "a", "gone", "bad", "empty"};
  const Labels labels = {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"bad", "\"\n=x"}, {"empty", ""}};
  EXPECT_EQ(WorkloadText("Job/train", &labels, kept),
            R"({"controller":"Job/train","labels":{"a":"1","b":"2"}})");
  EXPECT_EQ(WorkloadText("", &labels, {"c"}), R"({"labels":{"c":"3"}})");
  EXPECT_EQ(WorkloadText("Job/train", nullptr, kept), R"({"controller":"Job/train"})");
  EXPECT_EQ(WorkloadText("", &labels, {}), "");
  for (const std::string& controller :
       {std::string("train"), std::string("/train"), std::string("Job/"), std::string("Job/a/b"),
        std::string("Job/\"x\""), std::string("=Job/x"), "Job/" + std::string(254, 'x')}) {
    EXPECT_EQ(WorkloadText(controller, nullptr, {}), "") << controller;
  }
  Labels many;
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) all.push_back(many.emplace(fmt::format("l{}", i), "v").first->first);
  EXPECT_EQ(ReadWorkloadText(WorkloadText("", &many, all))->labels.size(), kMostBillLabels);
}

TEST(WorkloadText, ReadsWhatItWritesAndNothingElse) {
  const Labels labels = {{"a", "1"}, {"example.com/b", "x.y_z"}};
  const std::string text = WorkloadText("Job/train", &labels, {"a", "example.com/b"});
  EXPECT_EQ(ReadWorkloadText(text).value(), (Workload{"Job/train", labels}));
  EXPECT_EQ(ReadWorkloadText("").value(), Workload());
  for (
      const char* const wrong :
      {"{}", "x", R"({"controller":"train"})", R"({"controller":7})", R"({"labels":{}})",
       R"({"labels":{"a":""}})", R"({"labels":{"a":"\u001b[2J"}})", R"({"labels":{"=a":"b"}})",
       R"({"labels":{"a":1}})", R"({"owner":"Job/train"})",
       R"({"labels":{"1":"v","2":"v","3":"v","4":"v","5":"v","6":"v","7":"v","8":"v","9":"v"}})"}) {
    EXPECT_FALSE(ReadWorkloadText(wrong).ok()) << wrong;
  }
}

TEST(BillGroups, AreWordsOrAKeyOfALabel) {
  for (const char* const text : {"team", "namespace", "class", "pod", "owner", "node", "model",
                                 "pool", "day", "label:team", "label:example.com/team"}) {
    const std::optional<BillGroup> group = ParseBillBy(text);
    ASSERT_TRUE(group) << text;
    EXPECT_EQ(TextOf(*group), text);
  }
  for (const char* const text : {"", "moon", "label", "label:", "label:=a", "label:a b", "team "}) {
    EXPECT_FALSE(ParseBillBy(text)) << text;
  }
}

// Labels of users could else make a bill that nobody can read, or none at all.
TEST(BillGroups, OfManyValuesOfALabelTheCheapestAreOneRow) {
  constexpr int64_t kMinute = 60'000;
  const auto uses = [](std::size_t values) {
    std::vector<BillUse> all(values + 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      BillUse& use = all[i];
      use.node = "n";
      use.model = "h200";
      if (i < values) use.label = fmt::format("v{:05}", i);
      use.from = static_cast<int64_t>(i) * 10 * kMinute;
      // The later the longer; the one without a label least of all.
      use.until = use.from + (i < values ? 1'000 + static_cast<int64_t>(i) : 1);
      use.charge = {kGpu, kGpu};
    }
    return all;
  };
  const auto billed = [&uses](std::size_t values) {
    const std::vector<FleetEntry> fleet = {
        {1, FleetKind::kNode, 0, NodeText({"n", {{"h200", 1}}, {}})},
        {2, FleetKind::kPrice, 0,
         R"({"metadata":{"name":"all"},"spec":{"perGpuHour":"500000",)"
         R"("currency":"USD"}})"}};
    const Instant to{Millis(static_cast<int64_t>(values + 1) * 10 * kMinute)};
    return SumBill({Instant(Millis(0)), to, {BillBy::kLabel, "l"}}, fleet, uses(values)).value();
  };
  EXPECT_EQ(billed(kMostLabelRows - 1).rows.size(), kMostLabelRows);
  const Bill bill = billed(kMostLabelRows + 4);
  ASSERT_EQ(bill.rows.size(), kMostLabelRows);
  EXPECT_EQ(bill.rows[0].key, "") << "of no label, though it cost least";
  EXPECT_EQ(bill.rows[1].key, kOtherLabels);
  EXPECT_EQ(bill.rows[2].key, "v00006");
  EXPECT_TRUE(bill.rows[1].part.quantity == Int128{kGpu} * (6 * 1'000 + 15)) << "v00000 to v00005";
  int64_t cents = bill.free.cents + bill.refunded.cents;
  for (const BillRow& row : bill.rows) cents += row.part.cents;
  EXPECT_EQ(cents, bill.fleet.cents);
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
