#include "scheduler/cli/cli.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome Tranche(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCommandLine(arguments, out, err);
  return {code, out.str(), err.str()};
}

class TempFile {
 public:
  TempFile(const std::string& name, const std::string& text)
      : path_(testing::TempDir() + "tranche-" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + "-" + name) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CliTest, MistakesAreOneLineAndExitTwo) {
  const TempFile bad("bad.yaml", "threds: 1\n");
  const TempFile cron("cron.yaml", "kind: CronJob\n");
  const TempFile empty("empty.yaml", "---\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{}, "subcommand"},
      {{"fly"}, "fly"},
      {{"expalin", "a/b"}, "found \"expalin\"; did you mean explain?"},
      {{"ledger", "reprot"}, "did you mean report?"},
      {{"nodes", "--colour"}, "--colour"},
      {{"nodes", "--ouput", "json"}, "did you mean --output?"},
      {{"nodes", "-o", "xml"}, "expected one of table wide json yaml name jsonpath= "},
      {{"nodes", "-o", "jsonpath={.a"}, "expected } behind"},
      {{"nodes", "--sort-by", "fre"}, "did you mean FREE?"},
      {{"nodes", "-n", "a"}, "-n"},
      {{"explain", "a/b", "-o", "wide"}, "expected one of table json yaml jsonpath="},
      {{"nodes", "--server", "gopher://a"}, "gopher://a"},
      {{"nodes", "--server", "http://127.0.0.1:1"}, "127.0.0.1:1"},
      {{"explain"}, "pod"},
      {{"explain", "no-slash"}, "NAMESPACE/POD"},
      {{"explain", "a/../b"}, "NAMESPACE/POD"},
      {{"whatif"}, "file"},
      {{"plan"}, "file"},
      {{"plan", "-f", "/nonexistent.yaml"}, "/nonexistent.yaml"},
      {{"whatif", "-f", "/nonexistent.yaml"}, "/nonexistent.yaml"},
      {{"whatif", "-f", cron.path()}, "CronJob"},
      {{"whatif", "-f", empty.path()}, "expected a Pod"},
      {{"serve", "--config", bad.path()}, "threds"},
      {{"serve", "--config", "/nonexistent.yaml"}, "/nonexistent.yaml"},
      {{"serve", "--listen", "nowhere"}, "nowhere"},
      {{"serve", "--cluster", "mesos"}, "mesos"},
      {{"serve", "--cluster", "kubernetes", "--objects", "a.yaml"}, "objects"},
      {{"serve", "--cluster", "kubernetes", "--clock", "manual"}, "clock"},
      {{"serve", "--kubeconfig", "a.conf"}, "kubeconfig"},
      {{"serve", "--listen", "127.0.0.1:0", "--objects", "/nonexistent.yaml"}, "/nonexistent.yaml"},
      {{"scheduler-config", "--server", "https://a:1"}, "ca-file"},
      {{"scheduler-config", "--server", "a b"}, "a b"},
  };
  for (const auto& [arguments, named] : table) {
    std::string shown;
    for (const std::string& argument : arguments) shown += argument + " ";
    SCOPED_TRACE(shown);
    const Outcome outcome = Tranche(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(named), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(CliTest, HelpIsGroupedAndHasExamples) {
  const Outcome whole = Tranche({"help"});
  EXPECT_EQ(whole.out, Tranche({"--help"}).out);
  EXPECT_LT(whole.out.find("See what is there:"), whole.out.find("Find out why:"));
  const Outcome nodes = Tranche({"help", "nodes"});
  EXPECT_EQ(nodes.out, Tranche({"nodes", "--help"}).out);
  for (const std::string& help : {nodes.out, Tranche({"help", "ledger", "bill"}).out})
    EXPECT_NE(help.find("How to reach the server: see tranche options\n"), std::string::npos);
  EXPECT_NE(nodes.out.find("Examples:\n  # the fullest first\n  tranche nodes --sort-by free"),
            std::string::npos);
  EXPECT_EQ(nodes.out.find("--key-file"), std::string::npos);
  EXPECT_EQ(nodes.out.find("\n\n\n"), std::string::npos) << nodes.out;
  const Outcome options = Tranche({"options"});
  for (const char* flag : {"--server", "--cert-file", "--key-file", "--service"}) {
    EXPECT_NE(options.out.find(flag), std::string::npos) << flag;
  }
}

TEST(CliTest, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(Tranche({"--version"}).out, "tranche " TRANCHE_VERSION "\n");
  const Outcome help = Tranche({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"serve", "explain", "nodes", "top", "reclaims", "audit", "whatif",
                              "plan", "scheduler-config"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
  }
}

// ---- commands against a server ------------------------------------------------------------------

class CliOnServer : public LiveServer {
 protected:
  Outcome Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--server", url()});
    return Tranche(arguments);
  }
};

TEST_F(CliOnServer, NodesAreAlignedAndSummed) {
  Apply(MakeNode("gpu-1", 2));
  Apply(MakeNode("gpu-long-name", 8));
  EXPECT_EQ(Ask({"nodes"}).out,
            "NODE           MODEL  GPUS  FREE  FREE GIB  PODS  KNOWLEDGE  PARTS BY  STATE\n"
            "gpu-1          h100      2     2     159.2     0  counts            -  ready\n"
            "gpu-long-name  h100      8     8     637.1     0  counts            -  ready\n");
}

TEST_F(CliOnServer, JsonIsTheServersAnswer) {
  Apply(MakeNode("gpu-1", 2));
  EXPECT_EQ(Json::parse(Ask({"nodes", "-o", "json"}).out), Get("/api/v1/nodes"));
}

TEST_F(CliOnServer, ListsAreWrittenAsAsked) {
  Apply(MakeNode("gpu-1", 2));
  Apply(MakeNode("gpu-2", 8));
  const std::pair<std::vector<std::string>, std::string> table[] = {
      {{"nodes", "-o", "name", "--sort-by=-gpus"}, "gpu-2\ngpu-1\n"},
      {{"nodes", "gpu-2", "-o", "jsonpath={.nodes[*].model}"}, "h100"},
      {{"nodes", "-o", "custom-columns=NODE:.name,GPUS:.gpus[0:2].freeMilli"},
       "NODE   GPUS\ngpu-1  1000,1000\ngpu-2  1000,1000\n"},
      {{"quota", "-o", "yaml"}, "quotas: []\nabandoned: []\nbudgets: []\n"},
      {{"reclaims", "-o", "name"}, ""},
  };
  for (const auto& [arguments, wanted] : table) {
    const Outcome outcome = Ask(arguments);
    EXPECT_EQ(outcome.out, wanted) << outcome.err;
    EXPECT_EQ(outcome.code, 0);
  }
  const Outcome unknown = Ask({"nodes", "gpu-3"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(unknown.err, "tranche: no node \"gpu-3\" is known; did you mean gpu-1?\n");
}

TEST_F(CliOnServer, PodsAndTheQueueAreOfNamespaces) {
  Apply(MakeNode("gpu-1", 2));
  const Json placed = MakePod("placed", {{"nvidia.com/gpu", "1"}});
  Apply(placed);
  ASSERT_EQ(Schedule(placed, {"gpu-1"}), "gpu-1");
  const Json waiting = MakePod("waiting", {{"nvidia.com/gpu", "2"}});
  Apply(waiting);
  Schedule(waiting, {"gpu-1"});
  const std::pair<std::vector<std::string>, std::string> table[] = {
      {{"pods"},
       "NAMESPACE  NAME     STATE    QUOTA  HELD AS  NODE   GPUS\n"
       "team-a     placed   bound        -        -  gpu-1     1\n"
       "team-a     waiting  pending      -        -  -         -\n"},
      {{"pods", "-o", "name", "-n", "team-a", "--sort-by=-name"},
       "team-a/waiting\nteam-a/placed\n"},
      {{"pods", "placed", "-o", "jsonpath={.pods[*].node}"}, "gpu-1"},
      {{"pods", "-n", "team-b"}, "no pods are known\n"},
      {{"queue", "-o", "custom-columns=WHO:.name,ASKS:.asks.devices[*].count"},
       "WHO      ASKS\nwaiting     2\n"},
      {{"queue", "-A", "-o", "name"}, "team-a/waiting\n"},
      {{"queue", "-n", "team-b"}, "no pod waits for GPUs\n"},
  };
  for (const auto& [arguments, wanted] : table) {
    const Outcome outcome = Ask(arguments);
    EXPECT_EQ(outcome.out, wanted) << outcome.err;
    EXPECT_EQ(outcome.code, 0);
  }
  EXPECT_NE(Ask({"queue"}).out.find("no node has enough free GPU capacity"), std::string::npos);
  EXPECT_EQ(Ask({"queue", "placed"}).err, "tranche: no waiting pod \"placed\" is known\n");
}

TEST_F(CliOnServer, GangsTellHowFarTheyAre) {
  Apply(MakeNode("gpu-1", 2));
  const auto member = [this](const std::string& gang, const std::string& name, const char* size) {
    const Json pod = MakePod(name, {{"nvidia.com/gpu", "1"}},
                             {{"tranche.dev/gang", gang}, {"tranche.dev/gang-size", size}});
    Apply(pod);
    return pod;
  };
  EXPECT_EQ(Ask({"gangs"}).out, "no gang is known\n");
  const Json first = member("run", "run-0", "2"), second = member("run", "run-1", "2");
  ASSERT_EQ(Schedule(first, {"gpu-1"}), "gpu-1");
  ASSERT_EQ(Schedule(second, {"gpu-1"}), "gpu-1");
  member("half", "half-0", "2");
  const std::pair<std::vector<std::string>, std::string> table[] = {
      {{"gangs", "-o",
        "jsonpath={range .gangs[*]}{.name} {.state} {.bound}/{.size} {.nodes[*]};{end}"},
       "half gathering 0/2 ;run running 2/2 gpu-1;"},
      {{"gangs", "-o", "name"}, "team-a/half\nteam-a/run\n"},
      {{"gangs", "-n", "team-b"}, "no gang is known\n"},
  };
  for (const auto& [arguments, wanted] : table) {
    const Outcome outcome = Ask(arguments);
    EXPECT_EQ(outcome.out, wanted) << outcome.err;
    EXPECT_EQ(outcome.code, 0);
  }
  EXPECT_NE(Ask({"gangs", "half"}).out.find("expected 2 pods of gang half, found 1"),
            std::string::npos)
      << Ask({"gangs", "half"}).out;
  EXPECT_EQ(Ask({"gangs", "hall"}).code, 1);
}

TEST_F(CliOnServer, ExplainGroupsNodesByTheirAnswer) {
  for (const char* name : {"a-1", "a-2", "a-3", "a-4"}) Apply(MakeNode(name, 1));
  Apply(MakeNode("b-1", 8));
  const Json pod = MakePod("train", {{"nvidia.com/gpu", "2"}});
  Apply(pod);
  Schedule(pod, {"a-1", "a-2", "a-3", "a-4"});
  const std::string groups = Ask({"explain", "train", "-n", "team-a"}).out;
  const std::size_t table = groups.find("\nNODES  FITS  BECAUSE");
  ASSERT_NE(table, std::string::npos) << groups;
  EXPECT_NE(groups.find("    1  yes", table), std::string::npos) << groups;
  EXPECT_NE(groups.find("    4  no    the node has fewer GPUs than the pod asks for", table),
            std::string::npos)
      << groups;
  EXPECT_NE(groups.find("a-1, a-2, a-3 and 1 more", table), std::string::npos) << groups;
  const std::string each = Ask({"explain", "team-a/train", "--each-node"}).out;
  for (const char* name : {"\na-1 ", "\na-4 ", "\nb-1 "}) {
    EXPECT_NE(each.find(name), std::string::npos) << each;
  }
}

TEST_F(CliOnServer, VersionIsOfBothSides) {
  EXPECT_EQ(Ask({"version"}).out,
            "client   " TRANCHE_VERSION "\nserver   " TRANCHE_VERSION " at " + url() + "\n");
  EXPECT_EQ(Ask({"version", "-o", "jsonpath={.server.version}"}).out, TRANCHE_VERSION);
  const Outcome alone = Tranche({"version", "--client"});
  EXPECT_EQ(alone.code, 0);
  EXPECT_EQ(alone.out, "client   " TRANCHE_VERSION "\n");
  const Outcome none = Tranche({"version", "--server", "http://127.0.0.1:1"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.out, "client   " TRANCHE_VERSION "\n");
  EXPECT_NE(none.err.find("127.0.0.1:1"), std::string::npos) << none.err;
}

TEST_F(CliOnServer, AServerWithoutLedgerSaysSo) {
  const Outcome outcome = Ask({"ledger", "report", "--from", "2026-11-01", "--leaf", "a&b"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("expected a server with --ledger, found one without"),
            std::string::npos)
      << outcome.err;
  const Outcome time = Ask({"ledger", "report", "--from", "soon"});
  EXPECT_NE(time.err.find("expected --from as YYYY-MM-DD"), std::string::npos) << time.err;
}

TEST_F(CliOnServer, AddressesNeedNoScheme) {
  Apply(MakeNode("gpu-1", 2));
  const std::string address = url().substr(std::string("http://").size());
  EXPECT_EQ(Tranche({"nodes", "-o", "name", "--server", address}).out, "gpu-1\n");
  const Outcome far = Tranche({"nodes", "--server", "tranche.invalid:1"});
  EXPECT_NE(far.err.find("https://tranche.invalid:1"), std::string::npos) << far.err;
}

TEST_F(CliOnServer, ExplainTellsEveryNodesAnswer) {
  Apply(MakeNode("gpu-1", 2));
  Json pod = MakePod("train", {{"nvidia.com/gpu", "4"}});
  pod["status"]["conditions"] = Json::parse(R"([{"type":"PodScheduled","status":"False",)"
                                            R"("reason":"Unschedulable","message":"0/3 fit"}])");
  Apply(pod);
  Schedule(pod, {"gpu-1"});
  const std::string told = Ask({"explain", "team-a/train"}).out;
  for (const char* part : {"state    pending\n", "the node has fewer GPUs than the pod asks for",
                           "others   kube-scheduler: 0/3 fit\n"})
    EXPECT_NE(told.find(part), std::string::npos) << told;
}

TEST_F(CliOnServer, ExplainOfAnUnknownPodIsADomainNo) {
  const Outcome found = Ask({"explain", "team-a/nobody"});
  EXPECT_EQ(found.code, 1);
  EXPECT_NE(found.err.find("team-a/nobody"), std::string::npos) << found.err;
}

TEST_F(CliOnServer, WhatIfReadsYamlAndSaysNoWithExitOne) {
  Apply(MakeNode("gpu-1", 1));
  const std::string pod = R"(
kind: Pod
metadata: {name: train, namespace: team-a}
spec:
  containers:
  - name: main
    resources: {limits: {nvidia.com/gpu: 1}}
)";
  const TempFile one("one.yaml", pod);
  const TempFile two("two.yaml", pod + "---" + pod);
  const Outcome fits = Ask({"whatif", "-f", one.path()});
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_NE(fits.out.find("gpu-1"), std::string::npos);
  const Outcome no = Ask({"whatif", "-f", two.path()});
  EXPECT_EQ(no.code, 1) << no.err;
  EXPECT_NE(no.out.find("no node has enough free GPU capacity"), std::string::npos) << no.out;
}

TEST_F(CliOnServer, PlanTellsWhoStartsAndWhoIsEvicted) {
  Apply(MakeNode("gpu-1", 1));
  const Json pod = MakePod("placed", {{"nvidia.com/gpu", "1"}});
  Apply(pod);
  ASSERT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  Apply(MakePod("waits", {{"nvidia.com/gpu", "1"}}));
  const TempFile gone("gone.yaml", "delete:\n- {kind: Node, name: gpu-1}\n");
  const Outcome table = Ask({"plan", "-f", gone.path()});
  EXPECT_EQ(table.out, "POD            THEN\nteam-a/placed  is evicted\nteam-a/waits   waits on\n");
  const TempFile more("more.json", MakeNode("gpu-2", 1).dump());
  EXPECT_EQ(Json::parse(Ask({"plan", "-f", more.path(), "-o", "json"}).out),
            Json::parse(R"({"starts":["team-a/waits"],"evicted":[],"borrowed":[],"waits":[]})"));
  const TempFile none("none.yaml", "{}\n");
  EXPECT_EQ(Ask({"plan", "-f", none.path()}).out, "POD           THEN\nteam-a/waits  waits on\n");
}

TEST_F(CliOnServer, ReclaimsOfAQuietClusterAreNone) {
  EXPECT_EQ(Ask({"reclaims"}).out, "no reclaim runs or ended within the last day\n");
  EXPECT_EQ(Json::parse(Ask({"reclaims", "-o", "json"}).out).at("reclaims"), Json::array());
}

TEST_F(CliOnServer, AuditSaysThatNothingWasFoundOrWhatWas) {
  Apply(MakeNode("gpu-1", 2));
  const Json pod = MakePod("placed", {{"nvidia.com/gpu", "1"}});
  Apply(pod);
  ASSERT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  const Outcome clean = Ask({"audit"});
  EXPECT_EQ(clean.code, 0) << clean.err;
  EXPECT_EQ(clean.out, "nothing found\n");
  Apply({{"apiVersion", "tranche.dev/v1alpha1"},
         {"kind", "GPUQuota"},
         {"metadata", {{"name", "lost"}}},
         {"spec", {{"parent", "nobody"}}}});
  const Outcome found = Ask({"audit"});
  EXPECT_EQ(found.code, 1) << found.err;
  EXPECT_EQ(found.out.substr(0, found.out.find("spec")),
            "Set aside\n"
            "KIND           WHERE          WHAT\n"
            "invalidObject  GPUQuota lost  ");
  const Outcome json = Ask({"audit", "-o", "json"});
  EXPECT_EQ(json.code, 1);
  const Json answer = Json::parse(json.out);
  EXPECT_EQ(answer["faults"], Json::array());
  ASSERT_EQ(answer["setAside"].size(), 1U);
  EXPECT_EQ(answer["setAside"][0]["kind"], "invalidObject");
  EXPECT_GT(answer["walks"], 2);
}

TEST_F(CliOnServer, QuotaTellsOfWorkWhoseQuotaIsGone) {
  Apply(MakeNode("gpu-1", 2));
  Apply({{"apiVersion", "v1"},
         {"kind", "Namespace"},
         {"metadata", {{"name", "team-a"}, {"labels", {{"team", "a"}}}}}});
  const auto quota = [](const char* name, const Json& spec) {
    return Json{{"apiVersion", "tranche.dev/v1alpha1"},
                {"kind", "GPUQuota"},
                {"metadata", {{"name", name}}},
                {"spec", spec}};
  };
  const Json lines = Json::array({{{"model", "h100"}, {"nominal", {{"gpus", "2"}}}}});
  Apply(quota("org", {{"lines", lines}}));
  const Json team = quota("team-a", {{"parent", "org"},
                                     {"namespaceSelector", {{"matchLabels", {{"team", "a"}}}}},
                                     {"lines", lines}});
  Apply(team);
  const Json pod = MakePod("placed", {{"nvidia.com/gpu", "1"}});
  Apply(pod);
  ASSERT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  EXPECT_EQ(Get("/api/v1/quotas")["abandoned"], Json::array());
  Post("/embedded/v1/delete", {{"kind", "GPUQuota"}, {"name", "team-a"}});
  EXPECT_EQ(
      Get("/api/v1/quotas")["abandoned"],
      Json::array({{{"quota", "team-a"}, {"pods", 1}, {"gpus", 1}, {"namespaces", {"team-a"}}}}));
  EXPECT_NE(Ask({"quota"}).out.find("1 GPUs are held by pods that quota team-a admitted"),
            std::string::npos);
  EXPECT_NE(Ask({"explain", "team-a/placed"}).out.find("quota team-a, which admitted it, is gone"),
            std::string::npos);
  const Outcome audit = Ask({"audit"});
  EXPECT_EQ(audit.code, 1);
  EXPECT_NE(audit.out.find("unownedWork"), std::string::npos) << audit.out;
  Apply(team);
  EXPECT_EQ(Ask({"audit"}).out, "nothing found\n");
}

TEST_F(CliOnServer, TopSumsModelsAndReasons) {
  Apply(MakeNode("gpu-1", 2));
  const Json placed = MakePod("placed", {{"nvidia.com/gpu", "1"}});
  Apply(placed);
  ASSERT_EQ(Schedule(placed, {"gpu-1"}), "gpu-1");
  const Json waiting = MakePod("waiting", {{"nvidia.com/gpu", "2"}});
  Apply(waiting);
  Schedule(waiting, {"gpu-1"});
  EXPECT_EQ(Ask({"top"}).out,
            "MODEL  NODES  GPUS  IDLE  COMPUTE USED  MEMORY USED  FREE GIB\n"
            "h100       1     2     1           50%          50%      79.6\n"
            "\n"
            "pods: 1 bound, 0 reserved, 0 claimed, 1 pending\n"
            "\n"
            "PODS  WAIT BECAUSE\n"
            "   1  no node has enough free GPU capacity\n");
}

TEST_F(CliOnServer, AdviceFollowsWhatTopTells) {
  Apply(MakeNode("gpu-1", 2));
  const std::string top = Ask({"top"}).out;
  const Outcome outcome = Ask({"top", "--advise"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, top.size()), top);
  for (const char* heading : {"\nSplit of the fleet", "\nMIG layouts to change\nnot looked for",
                              "\nPods whose restart would free room: 2 whole GPUs are free"}) {
    EXPECT_NE(outcome.out.find(heading), std::string::npos) << outcome.out;
  }
  const Json advice = Json::parse(Ask({"top", "--advise", "-o", "json"}).out);
  EXPECT_EQ(advice, Get("/api/v1/advice"));
  EXPECT_TRUE(advice.at("repartition").is_null()) << "no GPUPolicy says otherwise";
}

}  // namespace THIS_FILE
}  // namespace tranche
