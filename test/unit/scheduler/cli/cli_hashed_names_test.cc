// Files that leave the house: bills, intervals and the recorded past, with names hashed.
#include <gmock/gmock.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/cli/cli_ask.h"
#include "scheduler/cli/cli_ledger.h"
#include "scheduler/cli/ledger/hashed_names.h"
#include "scheduler/ledger/bill/fleet_text.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche {
namespace THIS_FILE {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Whatever people have named has "secret" in it.
class HashedNamesTest : public ledger::LedgerTest {
 protected:
  HashedNamesTest() { options_.bill_labels = {"project"}; }

  std::string Key(const std::string& text = "0123456789abcdef\n") {
    std::string path = folder_ + "/key";
    std::ofstream(path) << text;
    return path;
  }
  void WriteAll() {
    const auto file = MustOpen();
    MeterEvent held = ledger::Open("secret-uid", ledger::Minute(0));
    held.leaf = "secret-team";
    held.pod = {"secret-ns", "secret-pod"};
    held.node = NodeName("node-1");
    held.controller = "Job/secret-job";
    held.labels = std::make_shared<const Labels>(Labels{{"project", "secret-label"}});
    held.devices = R"({"v":1,"leaf":"secret-team","containers":[{"name":"secret-container",)"
                   R"("devices":[{"index":0,"uuid":"GPU-1"}]}]})";
    MeterEvent odd = ledger::Open("secret-odd", ledger::Minute(1));
    odd.devices = R"(["secret-container"])";
    Write(*file, {held, odd});
    file->NoteFleet(
        {ledger::Minute(0),
         {{FleetKind::kNode, "node-1", ledger::NodeText({"node-1", {{"h200", 2}}, {}})}},
         true});
    PastNews first;  // there is nothing yet
    first.at = ledger::Minute(0);
    first.rest.emplace();
    file->NotePast(std::move(first));
    file->NotePast(Past(held.devices));
    EXPECT_TRUE(Committed(*file)) << file->health().problem;
    file->Heartbeat(ledger::Minute(60), {});
  }
  static PastNews Past(const std::string& devices) {
    PastNews news;
    news.at = ledger::Minute(0);
    PastPod pod;
    pod.uid = PodUid("secret-uid");
    pod.name = {"secret-ns", "secret-pod"};
    pod.owner = "secret-owner-uid";
    pod.created = ledger::Minute(0);
    pod.node = NodeName("node-1");
    pod.started = ledger::Minute(1);
    pod.ended = ledger::Minute(9);
    pod.how = PastEnd::kDisrupted;
    pod.devices = devices;
    pod.object =
        R"({"metadata":{"labels":{"secret-key":"secret-label"},"annotations":{)"
        R"("tranche.dev/gang":"secret-gang","tranche.dev/gpu-fraction":"0.5",)"
        R"("kueue.x-k8s.io/queue-name":"secret-queue"}},"spec":{"nodeSelector":{"a":"secret-b"},)"
        R"("containers":[{"name":"secret-container","resources":{"limits":{"nvidia.com/gpu":"1"},)"
        R"("claims":[{"name":"secret-claim"}]}}]}})";
    news.pods = {pod};
    news.changes = {
        {ledger::Minute(0), "Node", "node-1",
         R"({"metadata":{"name":"node-1","labels":{"nvidia.com/gpu.product":"H200",)"
         R"("secret-label":"x"},"annotations":{"tranche.dev/x":"secret"}},)"
         R"("status":{"allocatable":{"nvidia.com/gpu":"2"}}})"},
        {ledger::Minute(0), "GPUQuota", "secret-team", R"({"spec":{"namespaces":["secret-ns"]}})"},
        {ledger::Minute(0), "GPUPrice", "all",
         R"({"metadata":{"labels":{"a":"secret"}},"spec":{"perGpuHour":"2"}})"},
        {ledger::Minute(0), kGangSizeKind, "secret-ns/secret-gang", "4"},
        {ledger::Minute(0), "SecretKind", "secret-name", R"({"spec":{"a":"secret"}})"},
        {ledger::Minute(5), "GPUQuota", "secret-team", ""},
    };
    return news;
  }
  LedgerSpan Span() const { return {options_.path, "2026-03-01T10:00:00Z", {}, {}}; }
  std::string Bill(const std::string& by, const std::string& output,
                   const std::optional<std::string>& key) {
    std::ostringstream out;
    std::ostringstream err;
    ClientOptions client;
    client.output = output;
    EXPECT_EQ(LedgerBill({Span(), by, key}, client, out, err), 0) << err.str();
    return out.str();
  }
  std::string Export(ExportFormat format, bool past, const std::optional<std::string>& key) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(LedgerExport({Span(), format, past, key}, out, err), 0) << err.str();
    return out.str();
  }
};

TEST_F(HashedNamesTest, AHashIsOfTheKeyAndOfWhatTheNameIsOf) {
  const auto names = HashedNames::Read(Key());
  ASSERT_TRUE(names.ok()) << names.status();
  // By another program: the first 80 bits of HMAC-SHA256 of "team", a zero byte and "red".
  EXPECT_EQ(names->Of("team", "red"), "haf9f9f06343d205a0d69");
  EXPECT_EQ(names->Of("namespace", "red"), "hb4ffc3f2b2554f8e2fdc");
  EXPECT_EQ(names->Of("team", ""), "");
  const auto again = HashedNames::Read(Key("0123456789abcdef"));
  EXPECT_EQ(again->Of("team", "red"), names->Of("team", "red")) << "an end of line is no key";
  const auto other = HashedNames::Read(Key("0123456789abcdeF"));
  EXPECT_NE(other->Of("team", "red"), names->Of("team", "red"));
}

TEST_F(HashedNamesTest, AKeyHasSixteenBytesOrMore) {
  const struct {
    std::string text;
    const char* said;
  } rows[] = {
      {"", "expected a key of 16 bytes or more (openssl rand -hex 32), found 0"},
      {"0123456789abcde\n", "expected a key of 16 bytes or more (openssl rand -hex 32), found 15"},
      {std::string(5'000, 'x'), "4096"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(HashedNames::Read(Key(row.text)).status().message(), HasSubstr(row.said));
  }
  std::ostringstream out;
  std::ostringstream err;
  WriteAll();
  const std::string none = folder_ + "/none";
  EXPECT_EQ(LedgerExport({Span(), ExportFormat::kCsv, false, none}, out, err), 2);
  EXPECT_EQ(LedgerBill({Span(), "team", none}, ClientOptions(), out, err), 2);
  EXPECT_EQ(out.str(), "");
}

TEST_F(HashedNamesTest, NothingThatPeopleNamedIsInAnyOfTheFiles) {
  WriteAll();
  const std::string key = Key();
  for (const char* const by : {"team", "namespace", "class", "pod", "owner", "node", "model",
                               "pool", "day", "label:project"}) {
    for (const char* const output : {"table", "csv", "json"}) {
      EXPECT_THAT(Bill(by, output, key), Not(HasSubstr("secret"))) << by << " " << output;
    }
  }
  for (const bool past : {false, true}) {
    for (const ExportFormat format : {ExportFormat::kCsv, ExportFormat::kJson}) {
      EXPECT_THAT(Export(format, past, key), Not(ContainsRegex("[Ss]ecret-"))) << past;
      EXPECT_THAT(Export(format, past, {}), HasSubstr("secret-pod")) << past;
    }
  }
  EXPECT_THAT(Bill("owner", "csv", {}), HasSubstr("secret-ns/Job/secret-job"));
}

TEST_F(HashedNamesTest, FilesOfOneKeyCanBeJoinedAndSayAllElse) {
  WriteAll();
  const std::string key = Key();
  const HashedNames names = HashedNames::Read(key).value();
  const std::string team = names.Of("team", "secret-team");
  const std::string ns = names.Of("namespace", "secret-ns");
  const std::string pod = names.Of("pod", "secret-pod");
  const std::string uid = names.Of("uid", "secret-uid");
  EXPECT_THAT(Bill("team", "csv", key), HasSubstr("," + team + "," + team + ","));
  EXPECT_THAT(Bill("pod", "csv", key), HasSubstr(ns + "/" + pod));
  EXPECT_THAT(Bill("owner", "csv", key), HasSubstr(ns + "/Job/" + names.Of("owner", "secret-job")));
  EXPECT_THAT(Bill("node", "csv", key), HasSubstr("node-1"));
  EXPECT_THAT(Export(ExportFormat::kCsv, false, key),
              HasSubstr("\r\n" + uid + ",0," + ns + "," + pod + "," + team + ",training,node-1,"));
  const std::string past = Export(ExportFormat::kJson, true, key);
  EXPECT_THAT(past, StartsWith(R"({"kind":"span","from":"2026-03-01T10:00:00Z",)"
                               R"("to":"2026-03-01T11:00:00Z","knownFrom":"2026-03-01T10:00:00Z"})"
                               "\n"));
  EXPECT_THAT(past, HasSubstr(R"({"kind":"pod","uid":")" + uid + R"(","namespace":")" + ns +
                              R"(","name":")" + pod + R"(")"));
  EXPECT_THAT(past, HasSubstr(R"("how":"Disrupted")"));
  EXPECT_THAT(past, HasSubstr(R"("resources":{"limits":{"nvidia.com/gpu":"1"}})"));
  EXPECT_THAT(past, HasSubstr(R"("tranche.dev/gpu-fraction":"0.5")"));
  EXPECT_THAT(past, HasSubstr(names.Of("gang", "secret-gang")));
  EXPECT_THAT(past, HasSubstr(R"("of":"Node","name":"node-1","object":{"metadata":{"labels":)"
                              R"({"nvidia.com/gpu.product":"H200"}},"status":{"allocatable":)"
                              R"({"nvidia.com/gpu":"2"},)"));
  EXPECT_THAT(past, HasSubstr(R"("of":"GPUQuota","name":")" + team + R"(","object":{}})"));
  EXPECT_THAT(past, HasSubstr(R"("of":"GPUQuota","name":")" + team + R"(","object":null})"));
  EXPECT_THAT(past, HasSubstr(R"("name":"all","object":{"spec":{"perGpuHour":"2"}}})"));
}

TEST_F(HashedNamesTest, ThePastIsOfAllTeams) {
  WriteAll();
  std::ostringstream out;
  std::ostringstream err;
  LedgerSpan span = Span();
  span.leaf = "team";
  EXPECT_EQ(LedgerExport({span, ExportFormat::kCsv, true, {}}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("expected --past or --leaf, found both"));
}

}  // namespace THIS_FILE
}  // namespace tranche
