#include "scheduler/probe/gpus.h"

#include <gmock/gmock.h>

#include <sstream>

#include "test/unit/scheduler/probe/fake_node.h"

namespace tranche::probe {
namespace THIS_FILE {

using Json = nlohmann::json;
using ::testing::HasSubstr;

// What is read on a node, or why not.
struct Reading {
  absl::StatusOr<std::vector<Gpu>> gpus = absl::UnknownError("");
  absl::StatusOr<std::string> matrix = absl::UnknownError("");
};

Reading Read(const PciTree& pci) {
  Reading reading;
  auto nvml = Nvml::Open(kFakeNvml);
  if (!nvml.ok()) {
    reading.gpus = nvml.status();
    return reading;
  }
  reading.gpus = ReadGpus(**nvml, pci);
  if (reading.gpus.ok()) reading.matrix = DrawMatrix(**nvml, pci, *reading.gpus);
  return reading;
}

std::vector<std::string> Cells(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Row by row, the cells of the GPU columns.
std::vector<std::vector<std::string>> GpuBlock(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells = Cells(line);
    // The head also starts with a GPU; only rows have themselves in them.
    if (cells.size() < rows.size() + 2 || cells[0].rfind("GPU", 0) != 0) continue;
    if (cells[rows.size() + 1] != "X") continue;
    cells.erase(cells.begin());
    rows.push_back(std::move(cells));
  }
  for (auto& row : rows) {
    row.resize(rows.size());
    for (std::string& cell : row) {
      if (cell == "SOC") cell = "SYS";  // the old word for it
    }
  }
  return rows;
}

TEST(GpusTest, SaysWhatNvmlAndTheKernelSay) {
  const FakeNode node;
  const TempFolder pci;
  pci.Write("0000:19:00.0/numa_node", "0\n");
  pci.Write("0000:3b:00.0/numa_node", "1\n");
  pci.Write("0000:4c:00.0/numa_node", "-1\n");
  pci.Write("0000:5d:00.0/numa_node", "many\n");
  const auto gpus = Read(PciTree(pci / "")).gpus;
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 8);
  const Gpu first = {0, "GPU-6a1f0c2e-0000-4000-8000-000000000000", "0000:19:00.0", 0, 81559, {}};
  EXPECT_EQ((*gpus)[0], first);
  EXPECT_EQ((*gpus)[1].numa, 1);
  EXPECT_EQ((*gpus)[2].numa, std::nullopt);
  EXPECT_EQ((*gpus)[3].numa, std::nullopt);
  EXPECT_EQ((*gpus)[4].numa, std::nullopt) << "the kernel has no such device";
}

TEST(GpusTest, TellsMigInstancesByStartWithTheirPlaces) {
  const FakeNode node;
  const auto gpus = Read(PciTree("")).gpus;
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  EXPECT_EQ((*gpus)[0].mig, std::nullopt);
  const std::vector<MigInstance> sixth = {
      {0, 1, "1g.10gb", "MIG-9d3b1a70-0000-4000-8000-000000000601"},
      {1, 1, "1g.10gb+me", "MIG-9d3b1a70-0000-4000-8000-000000000602"},
      {4, 4, "3g.40gb", "MIG-9d3b1a70-0000-4000-8000-000000000600"}};
  EXPECT_EQ((*gpus)[6].mig, sixth);
  const std::vector<MigInstance> shared = {
      {0, 4, "1c.3g.40gb", "MIG-9d3b1a70-0000-4000-8000-000000000701"},
      {0, 4, "2c.3g.40gb", "MIG-9d3b1a70-0000-4000-8000-000000000700"}};
  EXPECT_EQ((*gpus)[7].mig, shared);
}

TEST(GpusTest, MigModeWithoutInstancesIsAnEmptyLayout) {
  const FakeNode node([](Json& json) { json["gpus"][6]["mig"] = Json::array(); });
  const auto gpus = Read(PciTree("")).gpus;
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  EXPECT_EQ((*gpus)[6].mig, std::vector<MigInstance>());
}

TEST(GpusTest, OneGpuThatCannotBeReadFailsAll) {
  const FakeNode node([](Json& json) { json["gpus"][6]["mayMonitorMig"] = false; });
  const auto gpus = Read(PciTree("")).gpus;
  EXPECT_EQ(gpus.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(gpus.status().message()),
              HasSubstr("GPU 6: nvmlDeviceGetMemoryInfo: expected success, found Insufficient "
                        "Permissions (4); a GPU in MIG mode"));
}

TEST(GpusTest, SaysWhichLibraryIsMissing) {
  const auto missing = Nvml::Open("libnot-there.so.1");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("expected the NVML library libnot-there.so.1, found"));
}

TEST(GpusTest, SaysWhatIsMissingInALibraryThatIsNoNvml) {
  const auto other = Nvml::Open("libm.so.6");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("nvmlInit_v2"));
}

TEST(GpusTest, ADriverThatDoesNotRunIsNoMissingLibrary) {
  const auto asleep = Nvml::Open(kFakeNvml);  // without a machine to play
  EXPECT_EQ(asleep.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(asleep.status().message()), HasSubstr("Driver Not Loaded"));
}

// A machine of `text`, with as many GPUs as its matrix has.
Json MachineOf(const std::string& path, const std::string& text) {
  const auto rows = GpuBlock(text);
  Json node = {{"driver", "470.1"}, {"matrix", path}, {"gpus", Json::array()}};
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::string index = std::to_string(10 + at);
    node["gpus"].push_back(
        {{"uuid", "GPU-" + index}, {"bus", "0000:" + index + ":00.0"}, {"memoryMiB", 1024}});
  }
  // More links than a GPU has, if they went to each of the others: there are switches between.
  constexpr int kMostLinks = 18;
  int links = 0;
  for (const std::string& cell : rows[0]) {
    if (cell.rfind("NV", 0) == 0) links += std::stoi(cell.substr(2));
  }
  node["switched"] = links > kMostLinks;
  return node;
}

TEST(GpusTest, DrawsWhatNvidiaSmiPrintsForEveryKnownMachine) {
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTopologies)) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const FakeNode node(MachineOf(entry.path(), text));
    const Reading reading = Read(PciTree(""));
    ASSERT_TRUE(reading.matrix.ok()) << entry.path() << ": " << reading.matrix.status();
    EXPECT_EQ(GpuBlock(*reading.matrix), GpuBlock(text)) << entry.path();
    ++machines;
  }
  EXPECT_GE(machines, 20);
}

TEST(GpusTest, DrawsAffinityBehindTheMatrix) {
  const FakeNode node(
      [](Json& json) { json["gpus"].erase(json["gpus"].begin() + 2, json["gpus"].end()); });
  const TempFolder pci;
  pci.Write("0000:19:00.0/numa_node", "3");
  pci.Write("0000:19:00.0/local_cpulist", "48-63,176-191\n");
  const Reading reading = Read(PciTree(pci / ""));
  ASSERT_TRUE(reading.matrix.ok()) << reading.matrix.status();
  EXPECT_EQ(*reading.matrix,
            "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
            "GPU0\t X \tNV18\t48-63,176-191\t3\n"
            "GPU1\tNV18\t X \tN/A\tN/A\n");
}

}  // namespace THIS_FILE
}  // namespace tranche::probe
