#include "scheduler/probe/surveyor.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "scheduler/probe/annotations.h"
#include "scheduler/probe/write_rule.h"
#include "test/unit/scheduler/probe/fake_node.h"
#include "test/unit/scheduler/probe/grpc_server.h"

namespace tranche::probe {
namespace THIS_FILE {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const Surveyor::Time kStart = Surveyor::Time() + std::chrono::hours(100);

Sources FakeSources(const TempFolder& folder) {
  Sources sources;
  sources.nvml = kFakeNvml;
  sources.nvidia_smi = kGpuNode + "/nvidia-smi";
  sources.pod_resources = folder / "kubelet.sock";
  sources.pci_devices = folder / "pci";
  return sources;
}

// A program that prints `text`, and counts how often it was run in the file "runs".
std::string Printing(const TempFolder& folder, const std::string& text) {
  folder.Write("text", text);
  const std::string path = folder.Write(
      "smi", "#!/bin/sh\necho run >> " + (folder / "runs") + "\ncat " + (folder / "text") + "\n");
  chmod(path.c_str(), 0700);
  return path;
}

int Runs(const TempFolder& folder) {
  std::ifstream file(folder / "runs");
  return static_cast<int>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

TEST(SurveyorTest, PutsTheDriverTheMatrixAndTheKubeletTogether) {
  const FakeNode node;
  const TempFolder folder;
  GrpcAnswer nothing;
  nothing.body = Framed("");
  const GrpcServer kubelet(folder / "kubelet.sock", nothing);
  const auto survey = Surveyor(FakeSources(folder)).Look(kStart);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_THAT(survey->notes, IsEmpty());
  EXPECT_EQ(survey->reading.driver, "550.54.15");
  EXPECT_EQ(survey->reading.gpus.size(), 8);
  EXPECT_EQ(survey->reading.pods, std::vector<ContainerDevices>());
  std::ifstream file(kTopologies + "/dgx-h100.txt");
  const std::string printed((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(survey->reading.topology, StartsWith("\tGPU0\tGPU1\t")) << "without escapes";
  EXPECT_THAT(printed, HasSubstr(survey->reading.topology));
}

TEST(SurveyorTest, WithoutNvidiaSmiTheMatrixIsNvmls) {
  const FakeNode node;
  const TempFolder folder;
  Sources sources = FakeSources(folder);
  sources.nvidia_smi = folder / "nvidia-smi";
  const auto survey = Surveyor(sources).Look(kStart);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_THAT(survey->reading.topology, StartsWith("\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\t"
                                                   "GPU7\tCPU Affinity\tNUMA Affinity\n"
                                                   "GPU0\t X \tNV18\t"));
  EXPECT_EQ(survey->reading.pods, std::nullopt) << "the kubelet could not be asked";
  EXPECT_THAT(survey->notes, ElementsAre(HasSubstr("NVML's matrix is used, without NICs"),
                                         HasSubstr("kubelet.sock")));
}

TEST(SurveyorTest, AMatrixWithoutGpusIsNotTaken) {
  const FakeNode node;
  const TempFolder folder;
  Sources sources = FakeSources(folder);
  sources.nvidia_smi = Printing(folder, "No devices were found\n");
  const auto survey = Surveyor(sources).Look(kStart);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_THAT(survey->reading.topology, HasSubstr("NV18"));
  EXPECT_THAT(survey->notes[0], HasSubstr("expected a matrix with GPU0, found none"));
}

TEST(SurveyorTest, DropsWhatSteersATerminal) {
  const FakeNode node;
  const TempFolder folder;
  Sources sources = FakeSources(folder);
  sources.nvidia_smi = Printing(folder, "\t\033[1;4mGPU0\033[0m\r\nGPU0\t X \a\n\033[");
  const auto survey = Surveyor(sources).Look(kStart);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_EQ(survey->reading.topology, "\tGPU0\nGPU0\t X \n");
}

TEST(SurveyorTest, TheMatrixIsDrawnAgainForOtherCardsAndEveryTenMinutes) {
  const TempFolder folder;
  Sources sources = FakeSources(folder);
  sources.nvidia_smi = Printing(folder, "\tGPU0\n");
  Surveyor surveyor(sources);
  {
    const FakeNode node;
    EXPECT_TRUE(surveyor.Look(kStart).ok());
    EXPECT_TRUE(surveyor.Look(kStart + minutes(9)).ok());
    EXPECT_EQ(Runs(folder), 1);
    EXPECT_TRUE(surveyor.Look(kStart + minutes(10)).ok());
    EXPECT_EQ(Runs(folder), 2);
  }
  const FakeNode exchanged([](nlohmann::json& json) { json["gpus"][3]["uuid"] = "GPU-new"; });
  EXPECT_TRUE(surveyor.Look(kStart + minutes(11)).ok());
  EXPECT_EQ(Runs(folder), 3);
}

TEST(SurveyorTest, ANodeThatLostItsGpusSaysSo) {
  const FakeNode node([](nlohmann::json& json) { json["gpus"] = nlohmann::json::array(); });
  const TempFolder folder;
  const auto survey = Surveyor(FakeSources(folder)).Look(kStart);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_EQ(survey->reading.topology, "");
  EXPECT_THAT(survey->reading.gpus, IsEmpty());
}

TEST(SurveyorTest, LooksAgainAfterTheDriverWasAway) {
  const TempFolder folder;
  Surveyor surveyor(FakeSources(folder));
  EXPECT_EQ(surveyor.Look(kStart).status().code(), absl::StatusCode::kUnavailable);
  const FakeNode node;
  EXPECT_TRUE(surveyor.Look(kStart + minutes(1)).ok());
}

TEST(WriteRuleTest, WritesWhatIsNewAndEveryTenMinutes) {
  NodeReading reading;
  reading.driver = "550";
  NodeReading other = reading;
  other.pods = std::vector<ContainerDevices>();
  WriteRule rule;
  EXPECT_TRUE(rule.Due(reading, kStart));
  rule.Written(reading, kStart);
  EXPECT_FALSE(rule.Due(reading, kStart + minutes(9)));
  EXPECT_TRUE(rule.Due(other, kStart + minutes(9)));
  EXPECT_TRUE(rule.Due(reading, kStart + minutes(10)));
}

TEST(AnnotationsTest, AreTheAgreedText) {
  NodeReading reading;
  reading.driver = "550.54.15";
  reading.gpus = {{0, "GPU-a", "0000:07:00.0", 1, 81559, {}},
                  {1, "GPU-b", "0000:0f:00.0", {}, 81559, {{{0, 1, "1g.10gb", "MIG-1"}}}},
                  {2, "GPU-c", "0000:17:00.0", 0, 81559, {std::vector<MigInstance>()}}};
  reading.pods = {{{"team", "train", "main", "nvidia.com/gpu", {"GPU-a", "GPU-d"}}}};
  reading.topology = "\tGPU0\n";
  const Instant at = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);
  const auto annotations = RenderAnnotations(reading, at);
  ASSERT_TRUE(annotations.ok()) << annotations.status();
  EXPECT_EQ(annotations->size(), 2);
  EXPECT_EQ(annotations->at("tranche.dev/topology"), "\tGPU0\n");
  EXPECT_EQ(
      annotations->at("tranche.dev/probe"),
      R"({"v":1,"at":"2026-03-01T00:00:00Z","driver":"550.54.15","gpus":[)"
      R"({"index":0,"uuid":"GPU-a","bus":"0000:07:00.0","numa":1,"memoryMiB":81559,"mig":null},)"
      R"({"index":1,"uuid":"GPU-b","bus":"0000:0f:00.0","numa":null,"memoryMiB":81559,"mig":[)"
      R"({"profile":"1g.10gb","start":0,"size":1,"uuid":"MIG-1"}]},)"
      R"({"index":2,"uuid":"GPU-c","bus":"0000:17:00.0","numa":0,"memoryMiB":81559,"mig":[]}],)"
      R"("pods":[{"namespace":"team","name":"train","container":"main",)"
      R"("resource":"nvidia.com/gpu","devices":["GPU-a","GPU-d"]}]})");
  reading.gpus.clear();
  reading.pods.reset();
  EXPECT_EQ(RenderAnnotations(reading, at)->at("tranche.dev/probe"),
            R"({"v":1,"at":"2026-03-01T00:00:00Z","driver":"550.54.15","gpus":[],"pods":null})");
}

TEST(AnnotationsTest, LeaveRoomForOthers) {
  NodeReading reading;
  reading.topology = std::string(200 * 1024, 'x');
  const auto annotations = RenderAnnotations(reading, Instant());
  EXPECT_EQ(annotations.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace THIS_FILE
}  // namespace tranche::probe
