#include "scheduler/agent/agent.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "test/agent/agent_node.h"

namespace tranche::agent {
namespace {

using fakes::Ids;
using ::testing::HasSubstr;

TEST_F(AgentTest, GivesEachContainerTheGpusOfItsRecord) {
  StartAgent();
  EXPECT_EQ(kubelet_->resources(), Ids{"nvidia.com/gpu"});
  Bind("one", {"GPU-b"});
  Bind("two", {"GPU-a"});
  for (const auto& [name, gpu] : {std::pair("two", "GPU-a"), std::pair("one", "GPU-b")}) {
    const absl::Status admitted = kubelet_->Admit(Managed(name, 1));
    ASSERT_TRUE(admitted.ok()) << admitted;
    EXPECT_EQ(kubelet_->Given(std::string("uid-") + name, "main"), Ids{gpu});
    const absl::Status started = kubelet_->Start(std::string("uid-") + name, "main");
    EXPECT_TRUE(started.ok()) << started;
  }
  // Another node's pods and those that have ended are not asked for.
  const auto requests = api_.Requests(kPods);
  ASSERT_FALSE(requests.empty());
  EXPECT_EQ(requests[0].query.at("fieldSelector"),
            "spec.nodeName=node-1,status.phase!=Succeeded,status.phase!=Failed");
}

TEST_F(AgentTest, GivesByCdiWhereTheConfigurationSaysSo) {
  config_.give_by = GiveBy::kCdi;
  config_.cdi_kind = "vendor.example/gpu";
  StartAgent();
  Bind("one", {"GPU-b", "GPU-a"});
  ASSERT_TRUE(kubelet_->Admit(Managed("one", 2)).ok());
  EXPECT_EQ(kubelet_->Given("uid-one", "main"),
            (Ids{"vendor.example/gpu=GPU-b", "vendor.example/gpu=GPU-a"}));
}

TEST_F(AgentTest, SaysInThePodsEventWhyItIsRefused) {
  StartAgent();
  nlohmann::json plain = PodJson("plain", {"GPU-a"});
  plain["metadata"].erase("annotations");
  api_.Put(kPods, plain);
  EXPECT_THAT(std::string(kubelet_->Admit(Managed("plain", 1)).message()),
              HasSubstr("tranche-node: pod team/plain: expected a record of its devices"));
  Bind("mig", {"GPU-c"});
  EXPECT_THAT(std::string(kubelet_->Admit(Managed("mig", 1)).message()),
              HasSubstr("GPU GPU-c of its record: its MIG mode is on"));
  nlohmann::json torn = PodJson("torn", {"GPU-a"});
  torn["metadata"]["annotations"]["tranche.dev/allocation"] = "{";
  api_.Put(kPods, torn);
  EXPECT_THAT(std::string(kubelet_->Admit(Managed("torn", 1)).message()),
              HasSubstr("the record of its devices cannot be read"));
  nlohmann::json own = PodJson("own", {"GPU-a"});
  own["spec"]["containers"][0]["env"] = {{{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "all"}}};
  api_.Put(kPods, own);
  EXPECT_THAT(std::string(kubelet_->Admit(Managed("own", 1)).message()),
              HasSubstr("sets NVIDIA_VISIBLE_DEVICES itself"));
}

// The first was refused for another reason, and its status arrives while the agent looks again.
TEST_F(AgentTest, LooksAgainUntilItCanTell) {
  StartAgent(/*looks=*/3);
  Bind("full", {"GPU-a"});
  Bind("next", {"GPU-b"});
  kubelet_->Know(Managed("full", 1));
  int lists = 0;
  const auto serve = [&](const fakes::ApiRequest& request, fakes::Exchange& exchange) {
    if (++lists == 2) Acknowledge(PodJson("full", {"GPU-a"}), "Failed");
    api_.Serve(request, exchange);
  };
  api_.OnNext("GET", kPods, serve);
  api_.OnNext("GET", kPods, serve);
  const absl::Status admitted = kubelet_->Admit(Managed("next", 1));
  ASSERT_TRUE(admitted.ok()) << admitted;
  EXPECT_EQ(kubelet_->Given("uid-next", "main"), Ids{"GPU-b"});
  EXPECT_EQ(lists, 2);
}

TEST_F(AgentTest, WhatCannotBeToldIsRefused) {
  StartAgent(/*looks=*/2);
  Bind("one", {"GPU-a"});
  Bind("two", {"GPU-b"});
  kubelet_->Know(Managed("one", 1));
  EXPECT_THAT(std::string(kubelet_->Admit(Managed("two", 1)).message()),
              HasSubstr("found team/one and team/two"));
  api_.OnNext("GET", kPods, [](const fakes::ApiRequest&, fakes::Exchange& exchange) {
    exchange.Answer(403, fakes::StatusBody(403, "Forbidden").dump());
  });
  StartAgent(/*looks=*/1);
  EXPECT_THAT(std::string(kubelet_->Admit(Managed("two", 1)).message()), HasSubstr("HTTP 403"));
}

TEST_F(AgentTest, RegistersAgainWithANewKubelet) {
  StartAgent();
  Bind("one", {"GPU-b"});
  ASSERT_TRUE(kubelet_->Admit(Managed("one", 1)).ok());
  Acknowledge(PodJson("one", {"GPU-b"}), "Running");
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_EQ(kubelet_->registrations(), 1);
  for (const bool with_checkpoint : {true, false}) {
    kubelet_->Restart(with_checkpoint);
    const absl::Status status = agent_->Step(now_);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(kubelet_->WaitForDevices(all_));
    const absl::Status again = kubelet_->Admit(Managed("one", 1));
    ASSERT_TRUE(again.ok()) << again;
    EXPECT_EQ(kubelet_->Given("uid-one", "main"), Ids{"GPU-b"});
  }
  EXPECT_EQ(kubelet_->registrations(), 3);
  Bind("two", {"GPU-a"});
  ASSERT_TRUE(kubelet_->Admit(Managed("two", 1)).ok());
}

TEST_F(AgentTest, ANewAgentKnowsWhoHoldsWhat) {
  StartAgent();
  Bind("one", {"GPU-b"});
  ASSERT_TRUE(kubelet_->Admit(Managed("one", 1)).ok());
  StartAgent();
  EXPECT_TRUE(kubelet_->Start("uid-one", "main").ok());
  Bind("two", {"GPU-a"});
  ASSERT_TRUE(kubelet_->Admit(Managed("two", 1)).ok());
  EXPECT_EQ(kubelet_->Given("uid-two", "main"), Ids{"GPU-a"});
  // Deleted by force; its container lives on.
  api_.Delete(kPods, "team/one");
  Bind("three", {"GPU-b"});
  EXPECT_FALSE(kubelet_->Admit(Managed("three", 1)).ok());
}

TEST_F(AgentTest, AGpuThatFallsOffIsClosedAndComesBack) {
  StartAgent();
  Bind("one", {"GPU-b"});
  ASSERT_TRUE(kubelet_->Admit(Managed("one", 1)).ok());
  node_.emplace(Cards({"GPU-a", "GPU-c"}));
  now_ += config_.look_period;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_TRUE(kubelet_->WaitForDevices({{"GPU-a", true}, {"GPU-b", false}, {"GPU-c", false}}));
  EXPECT_THAT(std::string(kubelet_->Start("uid-one", "main").message()),
              HasSubstr("the driver no longer answers for it"));
  EXPECT_EQ(Register(), "0:GPU-a true, 1:GPU-b false, 2:GPU-c false, ");
  EXPECT_EQ(Problem(),
            "GPU 1 (GPU-b): the driver no longer answers for it; "
            "GPU 2 (GPU-c): its MIG mode is on");
  node_.reset();  // the driver is gone
  now_ += config_.look_period;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_TRUE(kubelet_->WaitForDevices({{"GPU-a", false}, {"GPU-b", false}, {"GPU-c", false}}));
  node_.emplace(Cards({"GPU-a", "GPU-b", "GPU-c"}));
  now_ += config_.look_period;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_TRUE(kubelet_->WaitForDevices(all_));
  EXPECT_TRUE(kubelet_->Start("uid-one", "main").ok());
}

TEST_F(AgentTest, TellsTheServerWhatGpusThereAre) {
  StartAgent();
  EXPECT_EQ(Register(), "0:GPU-a true, 1:GPU-b true, 2:GPU-c false, ");
  const auto writes = api_.Requests("/api/v1/nodes/node-1").size();
  now_ += config_.look_period;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_EQ(api_.Requests("/api/v1/nodes/node-1").size(), writes) << "nothing has changed";
}

TEST_F(AgentTest, ServesAlsoWhereItMayNotTell) {
  for (int i = 0; i < 2; ++i) {
    api_.OnNext("PATCH", "/api/v1/nodes/node-1",
                [](const fakes::ApiRequest&, fakes::Exchange& exchange) {
                  exchange.Answer(403, fakes::StatusBody(403, "Forbidden").dump());
                });
  }
  agent_ = std::make_unique<Agent>(config_, credentials_, 1);
  EXPECT_THAT(std::string(agent_->Step(now_).message()), HasSubstr("found HTTP 403"));
  EXPECT_TRUE(kubelet_->WaitForDevices(all_));
  EXPECT_EQ(Register(), "none");
  now_ += config_.look_period;
  EXPECT_FALSE(agent_->Step(now_).ok());
  now_ += config_.look_period;
  EXPECT_TRUE(agent_->Step(now_).ok());
  EXPECT_EQ(Register(), "0:GPU-a true, 1:GPU-b true, 2:GPU-c false, ");
}

TEST_F(AgentTest, WaitsForAKubeletThatIsNotThere) {
  kubelet_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(config_.plugin_folder)) {
    std::filesystem::remove(entry.path());
  }
  agent_ = std::make_unique<Agent>(config_, credentials_, 1);
  EXPECT_THAT(std::string(agent_->Step(now_).message()),
              HasSubstr("expected the kubelet's socket"));
  kubelet_.emplace(config_.plugin_folder);
  EXPECT_TRUE(agent_->Step(now_).ok());
  EXPECT_TRUE(kubelet_->WaitForDevices(all_));
}

// The program itself: it serves, stays small, and ends when asked.
TEST_F(AgentTest, TheProgramServesWithinTwentyMebibytes) {
  StartProgram("");
  EXPECT_TRUE(kubelet_->WaitForDevices(all_));
  for (int i = 0; i < 50; ++i) {
    const std::string name = fmt::format("pod-{}", i);
    Bind(name, {"GPU-a"});
    const absl::Status admitted = kubelet_->Admit(Managed(name, 1));
    EXPECT_TRUE(admitted.ok()) << admitted;
    EXPECT_TRUE(kubelet_->Start("uid-" + name, "main").ok());
    kubelet_->End("uid-" + name);
    Acknowledge(PodJson(name, {"GPU-a"}), "Succeeded");
  }
  EndProgram();
}

// Nothing of the server is linked into it: it decides nothing of the cluster's.
TEST(AgentProgram, HasNothingOfTheServer) {
  std::ifstream file(TRANCHE_NODE_BINARY, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_THAT(bytes, HasSubstr("tranche5agent5Turns")) << "names of functions are not stripped";
  for (const char* name : {"tranche6Engine", "tranche6index", "tranche4http", "tranche6ledger",
                           "tranche8embedded7Cluster", "tranche10EngineHost",
                           "tranche4kube7Cluster", "tranche7Placement", "tranche9QuotaTree"}) {
    EXPECT_EQ(bytes.find(name), std::string::npos) << name;
  }
}

TEST(AgentConfig, SaysWhatItExpected) {
  const struct {
    const char* yaml;
    const char* error;
  } table[] = {
      {"node: n\ngiveBy: hope\n", "giveBy: expected environment or cdi, found 'hope'"},
      {"node: n\nlookSeconds: 0\n", "lookSeconds: expected a whole number in 1..3600, found '0'"},
      {"node: n\nlookSeconds: [1]\n", "lookSeconds: expected"},
      {"node: n\nlogLevel: loud\n", "logLevel: expected debug, info, warn, error or off"},
      {"node: n\nwhat: 1\n", "expected a known key, found what"},
      {"- node\n", "expected keys with values"},
      {"node: [", "expected YAML"},
      {"giveBy: cdi\n", "expected the key node or NODE_NAME"},
  };
  unsetenv("NODE_NAME");
  for (const auto& row : table) {
    EXPECT_THAT(std::string(ParseConfig(row.yaml).status().message()), HasSubstr(row.error));
  }
  const auto config = ParseConfig("node: n\nresource: a/b\nlookSeconds: 5\ngiveBy: cdi\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->node, NodeName("n"));
  EXPECT_EQ(config->resource, "a/b");
  EXPECT_EQ(config->look_period, std::chrono::seconds(5));
  EXPECT_EQ(config->give_by, GiveBy::kCdi);
}

// Every key of the help is one of the file's, with the default that it says.
TEST(AgentConfig, HelpSaysWhatHolds) {
  FILE* const program = popen(TRANCHE_NODE_BINARY " --help", "r");
  ASSERT_NE(program, nullptr);
  std::string help;
  for (int c = std::fgetc(program); c != EOF; c = std::fgetc(program)) {
    help.push_back(static_cast<char>(c));
  }
  EXPECT_EQ(pclose(program), 0);
  EXPECT_THAT(help, HasSubstr("Usage: tranche-node [OPTIONS]\n"));
  EXPECT_THAT(help, HasSubstr(ConfigHelp()));

  std::string file;
  std::istringstream lines(ConfigHelp());
  for (std::string line; std::getline(lines, line);) {
    std::string key;
    std::istringstream(line) >> key;
    const std::size_t open = line.rfind('(');
    ASSERT_NE(open, std::string::npos) << line;
    const std::string standard = line.substr(open + 1, line.size() - open - 2);
    if (key == "node") {
      file += "node: n\n";
    } else if (key != "kubeconfig") {
      file += key + ": " + standard + "\n";
    }
  }
  const auto all = ParseConfig(file);
  const auto none = ParseConfig("node: n\n");
  ASSERT_TRUE(all.ok() && none.ok()) << file << all.status() << none.status();
  EXPECT_EQ(all->plugin_folder, none->plugin_folder);
  EXPECT_EQ(all->give_by, none->give_by);
  EXPECT_EQ(all->look_period, none->look_period);
  EXPECT_EQ(all->make_patience, none->make_patience);
  EXPECT_EQ(all->slots, none->slots);
  EXPECT_EQ(all->mps_only, none->mps_only);
  EXPECT_EQ(all->make_mig, none->make_mig);
  EXPECT_EQ(all->watch_health, none->watch_health);
  EXPECT_EQ(all->log_level, none->log_level);
}

}  // namespace
}  // namespace tranche::agent
