#include "scheduler/cli/cli_probe.h"

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include "test/fakes/api_server.h"
#include "test/unit/scheduler/probe/fake_node.h"

namespace tranche {
namespace THIS_FILE {

using fakes::Json;
using probe::FakeNode;
using probe::TempFolder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kNodePath = "/api/v1/nodes/gpu-1";

struct ProbeOutcome {
  int code = 0;
  std::string out;
  std::string err;
};

ProbeOutcome Probe(const ProbeOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunProbe(options, out, err);
  return {code, out.str(), err.str()};
}

// One look at the machine of test/fakes/gpu_node, which has no kubelet.
ProbeOptions OneLook(const TempFolder& folder) {
  ProbeOptions options;
  options.node = "gpu-1";
  options.once = true;
  options.sources.nvml = probe::kFakeNvml;
  options.sources.nvidia_smi = probe::kGpuNode + "/nvidia-smi";
  options.sources.pod_resources = folder / "kubelet.sock";
  options.sources.pci_devices = folder / "pci";
  return options;
}

std::string Kubeconfig(const TempFolder& folder, uint16_t port) {
  return folder.Write("kubeconfig",
                      "current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
                      "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:" +
                          std::to_string(port) + "\"}}]\n");
}

TEST(CliProbeTest, PrintsBothAnnotations) {
  const FakeNode node;
  const TempFolder folder;
  ProbeOptions options = OneLook(folder);
  options.node.clear();  // not needed to print
  options.print = true;
  const ProbeOutcome outcome = Probe(options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("tranche.dev/topology:\n\tGPU0\tGPU1\t"));
  const std::string mark = "tranche.dev/probe:\n";
  const Json probe = Json::parse(outcome.out.substr(outcome.out.find(mark) + mark.size()));
  EXPECT_EQ(probe["v"], 1);
  EXPECT_EQ(probe["driver"], "550.54.15");
  EXPECT_EQ(probe["gpus"].size(), 8);
  EXPECT_EQ(probe["gpus"][6]["mig"][2]["profile"], "3g.40gb");
  EXPECT_TRUE(probe["pods"].is_null());
}

TEST(CliProbeTest, WritesTheAnnotationsOfItsNodeAndNothingElse) {
  const FakeNode node;
  const TempFolder folder;
  fakes::ApiServer server;
  server.Put(kNodes, {{"metadata", {{"name", "gpu-1"}, {"annotations", {{"other", "stays"}}}}}});
  ProbeOptions options = OneLook(folder);
  options.kubeconfig = Kubeconfig(folder, server.port());
  const ProbeOutcome outcome = Probe(options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json annotations = server.Object(kNodes, "gpu-1")["metadata"]["annotations"];
  EXPECT_EQ(annotations.size(), 3);
  EXPECT_EQ(annotations["other"], "stays");
  EXPECT_THAT(annotations["tranche.dev/topology"].get<std::string>(), StartsWith("\tGPU0\t"));
  EXPECT_EQ(Json::parse(annotations["tranche.dev/probe"].get<std::string>())["gpus"].size(), 8);
  ASSERT_EQ(server.Requests(kNodePath).size(), 1);
  const fakes::ApiRequest request = server.Requests(kNodePath)[0];
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(request.headers.at("user-agent"), "tranche-probe");
}

TEST(CliProbeTest, ANodeWithoutGpusLosesItsTopology) {
  const FakeNode node([](Json& json) { json["gpus"] = Json::array(); });
  const TempFolder folder;
  fakes::ApiServer server;
  server.Put(kNodes, {{"metadata",
                       {{"name", "gpu-1"}, {"annotations", {{"tranche.dev/topology", "old"}}}}}});
  ProbeOptions options = OneLook(folder);
  options.kubeconfig = Kubeconfig(folder, server.port());
  EXPECT_EQ(Probe(options).code, 0);
  const Json annotations = server.Object(kNodes, "gpu-1")["metadata"]["annotations"];
  EXPECT_FALSE(annotations.contains("tranche.dev/topology"));
  EXPECT_TRUE(annotations.contains("tranche.dev/probe"));
}

TEST(CliProbeTest, SaysWhatTheApiServerSaid) {
  const FakeNode node;
  const TempFolder folder;
  fakes::ApiServer server;
  server.Put(kNodes, {{"metadata", {{"name", "gpu-1"}}}});
  server.OnNext("PATCH", kNodePath, [](const fakes::ApiRequest&, fakes::Exchange& exchange) {
    exchange.Answer(403, fakes::StatusBody(403, "Forbidden", "another node").dump());
  });
  ProbeOptions options = OneLook(folder);
  options.kubeconfig = Kubeconfig(folder, server.port());
  const ProbeOutcome outcome = Probe(options);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err,
            "tranche: expected the API server to take the annotations of node gpu-1, found 403 "
            "another node\n");
}

TEST(CliProbeTest, MistakesAreOneLine) {
  const FakeNode node;
  const TempFolder folder;
  const struct {
    void (*change)(ProbeOptions& options);
    int code;
    std::string error;
  } table[] = {
      {[](ProbeOptions& o) { o.node.clear(); }, 2, "expected --node or NODE_NAME, found neither"},
      {[](ProbeOptions& o) { o.kubeconfig = "/nowhere"; }, 2, "/nowhere"},
      {[](ProbeOptions&) {}, 2, "KUBERNETES_SERVICE_HOST"},
      {[](ProbeOptions& o) { o.interval = "soon"; }, 2, R"(expected 1s to 1h, found "soon")"},
      {[](ProbeOptions& o) { o.interval = "999ms"; }, 2, R"(found "999ms")"},
      {[](ProbeOptions& o) { o.interval = "61m"; }, 2, R"(found "61m")"},
      {[](ProbeOptions& o) {
         o.print = true;
         o.sources.nvml = "libnot-there.so.1";
       },
       1, "expected the NVML library libnot-there.so.1, found"},
      {[](ProbeOptions& o) {
         o.print = true;
         o.once = false;  // does not wait for a library to appear
         o.sources.nvml = "libnot-there.so.1";
       },
       1, "expected the NVML library libnot-there.so.1, found"},
  };
  for (const auto& row : table) {
    ProbeOptions options = OneLook(folder);
    row.change(options);
    const ProbeOutcome outcome = Probe(options);
    EXPECT_EQ(outcome.code, row.code) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("tranche: "));
    EXPECT_THAT(outcome.err, HasSubstr(row.error));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1);
  }
}

TEST(CliProbeDeathTest, ASignalEndsItAtOnce) {
  const FakeNode node;
  const TempFolder folder;
  const std::string looked = folder / "looked";
  ProbeOptions options = OneLook(folder);
  options.print = true;
  options.once = false;
  options.interval = "1h";
  options.sources.nvidia_smi = folder.Write("smi", "#!/bin/sh\n: > " + looked + "\n");
  std::filesystem::permissions(options.sources.nvidia_smi, std::filesystem::perms::owner_all);
  // A process of its own, told to end once it is at work.
  EXPECT_EXIT(
      {
        std::ostringstream out;
        std::ostringstream err;
        std::thread([&looked, self = pthread_self()] {
          while (!std::filesystem::exists(looked)) std::this_thread::yield();
          pthread_kill(self, SIGTERM);
        }).detach();
        RunProbe(options, out, err);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
