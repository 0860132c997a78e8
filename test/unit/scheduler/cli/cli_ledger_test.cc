// tranche ledger verify, report and export: what they print, and how they end.
#include "scheduler/cli/cli_ledger.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "scheduler/cli/cli_ask.h"
#include "scheduler/ledger/bill/fleet_text.h"
#include "scheduler/wire/json/json.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche {
namespace THIS_FILE {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliLedgerTest : public ledger::LedgerTest {
 protected:
  // Team a: one h200 for two hours from 10:00, half an hour given back. Team b: half an l4, open.
  void WriteTwoTeams() {
    MeterEvent half = ledger::Open("uid-b", ledger::Minute(30) + Millis(250));
    half.leaf = "team-b";
    half.pod = {"ns-b", "=cmd()"};
    half.parts = {{"l4", {ledger::kGpu / 2, ledger::kGpu / 4}}};
    half.devices = "";
    const auto file = MustOpen();
    Write(*file,
          {ledger::Open("uid-a", ledger::Minute(0)), ledger::Running("uid-a", ledger::Minute(1))});
    Write(*file, {half});
    Write(*file, {ledger::Close("uid-a", ledger::Minute(120)),
                  ledger::Refund("uid-a", ledger::Minute(90), ledger::Minute(120))});
    file->Heartbeat(ledger::Minute(150) + Millis(250), {});
  }
  // One node of two h200 at 2 USD an hour, from 10:00.
  void WriteFleet() {
    const auto file = MustOpen();
    NodeTraits traits;
    GpuPrice price;
    price.name = "all";
    price.micros_per_gpu_hour = 2'000'000;
    price.currency = "USD";
    file->NoteFleet({ledger::Minute(0),
                     {{FleetKind::kNode, "node-1",
                       ledger::NodeText({"node-1", {{"h200", 2}}, std::move(traits)})},
                      {FleetKind::kPrice, "all", ledger::PriceText(price)}},
                     true});
    ASSERT_TRUE(Committed(*file));
  }
  LedgerSpan Span() const { return {options_.path, {}, {}, {}}; }

  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CliLedgerTest, ReportPrintsATableWithATotal) {
  WriteTwoTeams();
  EXPECT_EQ(LedgerReport({Span(), false}, out_, err_), 0) << err_.str();
  EXPECT_EQ(out_.str(),
            "TEAM    MODEL  GPU-HOURS\n"
            "team-a  h200       1.500\n"
            "team-b  l4         1.000\n"
            "total              2.500\n");
}

TEST_F(CliLedgerTest, ReportAsJsonOfASpanAndALeaf) {
  WriteTwoTeams();
  LedgerSpan span = Span();
  span.from = "2026-03-01T11:00:00+00:00";
  span.to = "2026-03-02";
  span.leaf = "team-a";
  EXPECT_EQ(LedgerReport({span, true}, out_, err_), 0) << err_.str();
  EXPECT_EQ(out_.str(),
            R"({"rows":[{"leaf":"team-a","model":"h200","gpuHours":"0.500"}],"total":"0.500"})"
            "\n");
}

TEST_F(CliLedgerTest, HeldSaysWhoHadWhichGpusAtAMoment) {
  WriteTwoTeams();
  const struct {
    const char* what;
    std::optional<std::string> at, leaf;
    const char* out;
  } rows[] = {
      {"before the second came",
       "2026-03-01T10:15:00Z",
       {},
       "NODE    MODEL  GPUS  TEAM    POD             CLASS     SINCE                 UNTIL\n"
       "node-1  h200      1  team-a  ns-a/pod-uid-a  training  2026-03-01T10:00:00Z  "
       "2026-03-01T12:00:00Z\n"
       "1 pod held 1 GPU at 2026-03-01T10:15:00Z\n"},
      {"of the other", "2026-03-01T11:00:00Z", "team-b", "1 pod held 0.5 GPUs at"},
      {"the newest moment", {}, {}, "still\n1 pod held 0.5 GPUs at 2026-03-01T12:30:00.250Z"},
      {"both", "2026-03-01T11:00:00Z", {}, "2 pods held 1.5 GPUs at 2026-03-01T11:00:00Z\n"},
      {"earlier than all", "2026-02-01", {}, "nobody held a GPU at 2026-02-01T00:00:00Z\n"},
  };
  for (const auto& row : rows) {
    out_.str("");
    EXPECT_EQ(LedgerHeld({options_.path, row.at, row.leaf}, ClientOptions(), out_, err_), 0)
        << err_.str();
    EXPECT_THAT(out_.str(), HasSubstr(row.out)) << row.what;
  }
  ClientOptions json;
  json.output = "json";
  out_.str("");
  EXPECT_EQ(LedgerHeld({options_.path, "2026-03-01T10:15:00Z", {}}, json, out_, err_), 0);
  EXPECT_THAT(out_.str(), StartsWith(R"({"at":"2026-03-01T10:15:00Z","rows":[{)"));
  EXPECT_EQ(LedgerHeld({options_.path, "then", {}}, json, out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("expected --at as YYYY-MM-DD or RFC 3339, found \"then\""));
}

TEST_F(CliLedgerTest, BillIsATableJsonOrTheColumnsOfFocus) {
  WriteFleet();
  WriteTwoTeams();
  LedgerBillOptions options{Span(), "team"};
  options.span.from = "2026-03-01T10:00:00Z";
  options.span.to = "2026-03-01T12:00:00Z";
  ClientOptions client;
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_EQ(out_.str(),
            "TEAM      GPU-HOURS  UNPRICED   USD\n"
            "team-a        1.500     0.000  3.00\n"
            "team-b        0.749     0.749  0.00\n"
            "used          1.500     0.000  3.00\n"
            "free          2.000     0.000  4.00\n"
            "refunded      0.500     0.000  1.00\n"
            "fleet         4.000     0.000  8.00\n"
            "the fleet is known from 2026-03-01T10:00:00Z\n"
            "prices are known from 2026-03-01T10:00:00Z\n"
            "0.749 GPU-hours were used on nodes that the ledger did not tell of then\n");
  out_.str("");
  client.output = "csv";
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("BilledCost,BillingCurrency,BillingPeriodStart,"));
  EXPECT_THAT(out_.str(),
              HasSubstr("\r\n3.00,USD,2026-03-01T10:00:00Z,2026-03-01T12:00:00Z,Usage,,used,"
                        "Usage-Based,2026-03-01T10:00:00Z,2026-03-01T12:00:00Z,1.500,GPU-Hours,"
                        "3.00,3.00,Tranche,3.00,Standard,1.500,GPU-Hours,Tranche,Tranche,,,,"
                        "Compute,GPU,team-a,team-a,,0.000,0.000\r\n"));
  out_.str("");
  client.output = "json";
  options.by = "day";
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(R"("rows":[{"key":"2026-03-01","gpuHours":"2.249")"));
  client.output = "name";
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("-o: expected one of table csv json yaml jsonpath="));
}

TEST_F(CliLedgerTest, ABillHasAColumnOfWhatDidNothingWhereThatIsKnown) {
  WriteTwoTeams();
  {
    const auto file = MustOpen();
    PastNews news;
    news.at = ledger::Minute(151);
    news.idle = {{PodUid("uid-a"), ledger::Minute(0), ledger::Minute(60)}};
    file->NoteFleet(
        {ledger::Minute(0),
         {{FleetKind::kNode, "node-1", ledger::NodeText({"node-1", {{"h200", 2}}, {}})}},
         true});
    file->NotePast(std::move(news));
    ASSERT_TRUE(Committed(*file));
  }
  LedgerBillOptions options{Span(), "team"};
  options.span.from = "2026-03-01T10:00:00Z";
  options.span.to = "2026-03-01T12:00:00Z";
  EXPECT_EQ(LedgerBill(options, ClientOptions(), out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("TEAM      GPU-HOURS   IDLE  UNPRICED  COST\n"
                                     "team-a        1.500  1.000     1.500  0.00\n"
                                     "team-b        0.749  0.000     0.749  0.00\n"
                                     "used          1.500  1.000     1.500  0.00\n"
                                     "free          2.000            2.000  0.00\n"
                                     "refunded      0.500            0.500  0.00\n"
                                     "fleet         4.000            4.000  0.00\n"
                                     "1.000 of the GPU-hours used did nothing, for 0.00\n"));
}

TEST_F(CliLedgerTest, ABillHasALineOfWhatIsStrandedWhereThatIsKnown) {
  WriteFleet();
  WriteTwoTeams();
  {
    const auto file = MustOpen();
    file->NoteFleet({ledger::Minute(60),
                     {{FleetKind::kStranded, ledger::KindText("h200", {}),
                       ledger::StrandedText({"h200", {}, 250})}},
                     false});
    ASSERT_TRUE(Committed(*file));
  }
  LedgerBillOptions options{Span(), "team"};
  options.span.from = "2026-03-01T10:00:00Z";
  options.span.to = "2026-03-01T12:00:00Z";
  ClientOptions client;
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("free          1.750     0.000  3.50\n"
                                    "stranded      0.250     0.000  0.50\n"
                                    "refunded      0.500     0.000  1.00\n"
                                    "fleet         4.000     0.000  8.00\n"
                                    "the fleet is known from 2026-03-01T10:00:00Z\n"
                                    "what is stranded is known from 2026-03-01T11:00:00Z\n"));
  out_.str("");
  client.output = "csv";
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\r\n0.50,USD,2026-03-01T10:00:00Z,2026-03-01T12:00:00Z,Usage,"
                                    ",stranded,"));
}

TEST_F(CliLedgerTest, ABillByOwnerOrLabelNamesWhatTheLedgerKept) {
  options_.bill_labels = {"project"};
  WriteFleet();
  {
    const auto file = MustOpen();
    MeterEvent job = ledger::Open("uid-j", ledger::Minute(0));
    job.controller = "Job/train";
    job.labels = std::make_shared<const Labels>(Labels{{"project", "x"}});
    Write(*file, {job, ledger::Open("uid-k", ledger::Minute(0))});
    file->Heartbeat(ledger::Minute(60), {});
  }
  LedgerBillOptions options{Span(), "owner"};
  options.span.from = "2026-03-01T10:00:00Z";
  ClientOptions client;
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("OWNER           GPU-HOURS  UNPRICED   USD\n"
                                     "-                   1.000     0.000  2.00\n"
                                     "ns-a/Job/train      1.000     0.000  2.00\n"
                                     "used                2.000     0.000  4.00\n"));
  client.output = "csv";
  options.by = "label:project";
  out_.str("");
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(),
              HasSubstr("Compute,GPU,,,\"{\"\"project\"\":\"\"x\"\"}\",0.000,0.000\r\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Compute,GPU,,,,0.000,0.000\r\n")) << "of no project";
  client.output = "table";
  options.by = "label:gone";
  out_.str("");
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("no pod of the span has the label gone, or it was not kept "
                                    "(ledger.billLabels)\n"));
  options.by = "label:a b";
  EXPECT_EQ(LedgerBill(options, client, out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("day or label:KEY, found \"label:a b\""));
}

// ---- statements

class CliStatementTest : public CliLedgerTest {
 protected:
  // Of two hours, as a file.
  void State() {
    WriteFleet();
    WriteTwoTeams();
    LedgerStatementOptions options{{Span(), "team"}, {}};
    options.bill.span.from = "2026-03-01T10:00:00Z";
    options.bill.span.to = "2026-03-01T12:00:00Z";
    ASSERT_EQ(LedgerStatement(options, ClientOptions(), out_, err_), 0) << err_.str();
    text_ = out_.str();
    out_.str("");
  }
  int Prove(const std::string& text, bool json = false) {
    std::ofstream(path_) << text;
    out_.str("");
    err_.str("");
    return LedgerProve(options_.path, path_, json, out_, err_);
  }
  std::string With(const std::string& old, const std::string& other) const {
    std::string text = text_;
    text.replace(text.find(old), old.size(), other);
    return text;
  }

  const std::string path_ = folder_ + "/statement.json";
  std::string text_;
};

TEST_F(CliStatementTest, IsProvenByTheLedgerThatMadeIt) {
  State();
  EXPECT_THAT(text_, StartsWith(R"({"statement":1,"ledger":{"entry":)"));
  EXPECT_THAT(text_, testing::Not(HasSubstr("idle")));
  EXPECT_EQ(Prove(text_), 0) << out_.str() << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("by team from 2026-03-01T10:00:00Z to 2026-03-01T12:00:00Z the "
                                    "fleet cost 8.00 USD\n"));
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("since then")));
  EXPECT_EQ(Prove(text_, true), 0);
  EXPECT_EQ(out_.str(), R"({"proven":true,"faults":[],"since":[]})"
                        "\n");
}

TEST_F(CliStatementTest, WhatWasEnteredLaterIsTold) {
  State();
  {
    const auto file = MustOpen();
    Write(*file, {ledger::Refund("uid-a", ledger::Minute(0), ledger::Minute(30), "LostWork")});
  }
  EXPECT_EQ(Prove(text_), 0) << out_.str() << err_.str();
  EXPECT_THAT(out_.str(),
              HasSubstr("since then /bill/refunded/cost: the ledger said \"1.00\", says "
                        "now \"2.00\"\n"));
}

TEST_F(CliStatementTest, AnotherFigureIsFound) {
  State();
  EXPECT_EQ(Prove(With(R"("cost":"8.00")", R"("cost":"9.00")")), 1);
  EXPECT_THAT(out_.str(),
              HasSubstr("/bill/fleet/cost: the statement says \"9.00\", the ledger said "
                        "\"8.00\"\n"));
  EXPECT_THAT(err_.str(), HasSubstr("to be what"));
}

TEST_F(CliStatementTest, AnotherLedgersStatementIsNotThisOnes) {
  State();
  const std::size_t hash = text_.find("\"hash\":\"") + 8;
  std::string other = text_;
  other[hash] = other[hash] == '0' ? '1' : '0';
  EXPECT_EQ(Prove(other), 1);
  EXPECT_THAT(out_.str(), HasSubstr("it is of another ledger, or this one was put back"));
  EXPECT_EQ(Prove(With("\"entry\":", "\"entry\":9")), 1);
  EXPECT_THAT(out_.str(), HasSubstr("found no such entry"));
}

TEST_F(CliStatementTest, WhatIsNoStatementIsSaid) {
  State();
  const struct {
    std::string text;
    const char* said;
  } rows[] = {
      {"nonsense", "expected a statement of `ledger statement`, found no JSON"},
      {With("\"statement\":1", "\"statement\":2"), "/statement: expected 1, the only version"},
      {With("\"entry\":", "\"entri\":"),
       "/ledger/entry: expected the number of an entry, found null"},
      {With("\"by\":\"team\"", "\"by\":\"moon\""), "/bill/by: expected team, namespace"},
      {With("\"from\":\"2026", "\"from\":\"year"), "/bill/from: expected a time as RFC 3339"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Prove(row.text), 2) << row.said;
    EXPECT_THAT(err_.str(), HasSubstr(row.said));
  }
}

TEST_F(CliStatementTest, IsOfOneMonthOrASpan) {
  WriteTwoTeams();
  LedgerStatementOptions options{{Span(), "model"}, "2026-02"};
  EXPECT_EQ(LedgerStatement(options, ClientOptions(), out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(),
              HasSubstr(R"("from":"2026-02-01T00:00:00Z","to":"2026-03-01T00:00:00Z")"));
  for (const char* const month : {"2026-13", "2026-2", "february"}) {
    options.month = month;
    EXPECT_EQ(LedgerStatement(options, ClientOptions(), out_, err_), 2) << month;
    EXPECT_THAT(err_.str(), HasSubstr("--month: expected YYYY-MM"));
  }
  options.month = "2026-03";
  EXPECT_EQ(LedgerStatement(options, ClientOptions(), out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("expected the end of a span that is over"));
  options.bill.span.from = "2026-02-01";
  EXPECT_EQ(LedgerStatement(options, ClientOptions(), out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("expected --month or --from and --to, found both"));
}

TEST_F(CliLedgerTest, AnEmptySpanIsAnEmptyReport) {
  WriteTwoTeams();
  LedgerSpan span = Span();
  span.to = "2026-03-01";
  EXPECT_EQ(LedgerReport({span, true}, out_, err_), 0);
  EXPECT_EQ(out_.str(), "{\"rows\":[],\"total\":\"0.000\"}\n");
}

TEST_F(CliLedgerTest, ExportAsCsvSaysWhoUsedWhatWhenAndHowMuch) {
  WriteTwoTeams();
  EXPECT_EQ(LedgerExport({Span(), ExportFormat::kCsv}, out_, err_), 0) << err_.str();
  EXPECT_EQ(out_.str(),
            "podUid,interval,namespace,pod,leaf,class,node,model,gpus,start,running,end,gpuHours,"
            "refundedGpuHours,estimated,late,devices\r\n"
            "uid-a,0,ns-a,pod-uid-a,team-a,training,node-1,h200,1.000,2026-03-01T10:00:00Z,"
            "2026-03-01T10:01:00Z,2026-03-01T12:00:00Z,1.500,0.500,false,false,"
            "\"[{\"\"name\"\":\"\"main\"\"}]\"\r\n"
            "uid-b,0,ns-b,'=cmd(),team-b,training,node-1,l4,0.500,2026-03-01T10:30:00.250Z,,,"
            "1.000,0.000,false,false,\r\n");
}

TEST_F(CliLedgerTest, ExportAsJsonIsOneDocumentWithTheDevicesInIt) {
  WriteTwoTeams();
  EXPECT_EQ(LedgerExport({Span(), ExportFormat::kJson}, out_, err_), 0) << err_.str();
  wire::Parser parser;
  const auto document = parser.Parse(out_.str());
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_THAT(out_.str(), HasSubstr(R"({"podUid":"uid-a","interval":0,)"));
  EXPECT_THAT(out_.str(), HasSubstr(R"("devices":[{"name":"main"}]})"));
  EXPECT_THAT(out_.str(), HasSubstr(R"("running":null,"end":null,"gpuHours":"1.000")"));
}

TEST_F(CliLedgerTest, VerifyPassesASoundLedgerAndFailsABadOne) {
  WriteTwoTeams();
  EXPECT_EQ(LedgerVerify(options_.path, false, out_, err_), 0);
  EXPECT_THAT(out_.str(), StartsWith("sound: 6 entries, 10 postings, 1 open intervals, head "));
  out_.str("");
  EXPECT_EQ(LedgerVerify(options_.path, true, out_, err_), 0);
  EXPECT_THAT(out_.str(),
              StartsWith(R"({"sound":true,"entries":6,"postings":10,"openIntervals":1)"));
  Sql("UPDATE balance SET compute = 1 WHERE account = 1");
  EXPECT_EQ(LedgerVerify(options_.path, false, out_, err_), 1);
  EXPECT_THAT(out_.str(), HasSubstr("rule 2: account 1"));
  EXPECT_THAT(err_.str(), HasSubstr("found 1 faults"));
  out_.str("");
  EXPECT_EQ(LedgerVerify(options_.path, true, out_, err_), 1);
  EXPECT_THAT(out_.str(), StartsWith(R"({"sound":false,)"));
  EXPECT_THAT(out_.str(), HasSubstr(R"("faults":["rule 2: account 1)"));
}

TEST_F(CliLedgerTest, WrongUseEndsWithTwoAndOneLine) {
  WriteTwoTeams();
  const auto report = [this](LedgerSpan span) {
    err_.str("");
    const int code = LedgerReport({std::move(span), false}, out_, err_);
    return fmt::format("{} {}", code, err_.str());
  };
  LedgerSpan span = Span();
  span.from = "yesterday";
  EXPECT_EQ(report(span),
            "2 tranche: expected --from as YYYY-MM-DD or RFC 3339, found \"yesterday\"\n");
  span.from = "2026-13-01";
  EXPECT_THAT(report(span), StartsWith("2 tranche: expected --from"));
  span.from = "2026-03-02";
  span.to = "2026-03-01";
  EXPECT_THAT(report(span), StartsWith("2 tranche: expected --to not before --from"));
  span = Span();
  span.path = folder_ + "/none.db";
  EXPECT_THAT(report(span), StartsWith("2 tranche: expected a ledger, found no file"));
  EXPECT_FALSE(std::filesystem::exists(span.path));
  EXPECT_EQ(LedgerVerify(span.path, false, out_, err_), 2);
}

}  // namespace THIS_FILE
}  // namespace tranche
