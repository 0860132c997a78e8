#include "topology/machine/machine_sources.h"

#include <fmt/format.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/topology/machine/captured.h"

namespace tranche {
namespace THIS_FILE {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kH100 = "NVIDIA-H100-80GB-HBM3";

GpuUuid Uuid(int gpu) { return GpuUuid(fmt::format("GPU-{}", gpu)); }

// What one node's publishers say; `sources` points into it.
struct Node {
  explicit Node(int gpus, bool uuids = true) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
      sources.gpus.push_back({gpu, uuids ? Uuid(gpu) : GpuUuid(), std::nullopt});
    }
  }
  Node& Matrix(const Machine& machine) {
    matrix = machine;
    sources.matrix = &*matrix;
    return *this;
  }
  Node& Score(int left, int right, int points) {
    scores.push_back({Uuid(left), Uuid(right), points});
    scores.push_back({Uuid(right), Uuid(left), points});
    sources.scores = &scores;
    return *this;
  }
  Node& Slice(int gpu, const char* root, std::optional<int> numa) {
    slices.push_back({Uuid(gpu), fmt::format("gpu-{}", gpu), false, root, "", numa});
    sources.slices = &slices;
    return *this;
  }
  Node& Nic(const char* name, const char* root, std::optional<int> numa) {
    slices.push_back({GpuUuid(), name, true, root, "", numa});
    sources.slices = &slices;
    return *this;
  }
  Node& Zone(int zone, int64_t gpus) {
    zones.push_back({zone, gpus, gpus, MilliCpu::Zero(), MilliCpu::Zero()});
    sources.zones = &zones;
    return *this;
  }
  Node& AgentNuma(const std::vector<int>& numa) {
    for (size_t gpu = 0; gpu < numa.size(); ++gpu) sources.gpus[gpu].numa = numa[gpu];
    return *this;
  }
  Node& Product(std::string_view product, std::string_view machine = "") {
    sources.product = product;
    sources.machine = machine;
    return *this;
  }
  ResolvedMachine Resolve() const { return ResolveMachine(sources); }

  std::optional<Machine> matrix;
  std::vector<PairScore> scores;
  std::vector<SliceDevice> slices;
  std::vector<ZoneCounts> zones;
  MachineSources sources;
};

std::string NumaText(const ResolvedMachine& resolved) {
  std::string text;
  for (const MachineGpu& gpu : resolved.machine->gpus()) {
    text += gpu.numa ? std::to_string(*gpu.numa) : "-";
  }
  return text;
}

// Bit by bit what the tool's text says, with UUIDs.
Machine WithUuids(const Machine& machine, const std::vector<int>& uuids) {
  std::vector<MachineGpu> gpus = machine.gpus();
  std::vector<Link> links;
  for (int left = 0; left < machine.size(); ++left) {
    gpus[static_cast<size_t>(left)].uuid = Uuid(uuids[static_cast<size_t>(left)]);
    for (int right = 0; right < machine.size(); ++right) links.push_back(machine.link(left, right));
  }
  return {gpus, links, machine.nics()};
}

TEST(MachineSourcesTest, NothingToldIsNothingKnown) {
  const ResolvedMachine resolved = Node(8).Product("NVIDIA-H100-PCIe").Resolve();
  EXPECT_EQ(resolved.machine, nullptr);
  EXPECT_EQ(resolved.links, MachineSource::kNone);
  EXPECT_FALSE(resolved.verified);
  EXPECT_THAT(resolved.problems, IsEmpty());
  EXPECT_EQ(Node(0).Resolve().machine, nullptr);
}

TEST(MachineSourcesTest, MoreGpusThanASetHoldsAreAProblem) {
  const ResolvedMachine resolved = Node(65).Resolve();
  EXPECT_EQ(resolved.machine, nullptr);
  EXPECT_THAT(resolved.problems, ElementsAre("expected at most 64 GPUs, found 65"));
}

// Matrix.

TEST(MachineSourcesTest, AMatrixIsTakenAsItIs) {
  const Machine dgx = CapturedMachine("dgx1-v100-numa");
  const ResolvedMachine resolved = Node(8).Matrix(dgx).Resolve();
  EXPECT_EQ(resolved.links, MachineSource::kMatrix);
  EXPECT_TRUE(resolved.verified);
  EXPECT_THAT(resolved.problems, IsEmpty());
  EXPECT_EQ(resolved.machine->digest(), dgx.digest());
  EXPECT_EQ(resolved.machine->gpu(3).uuid, Uuid(3));
  EXPECT_EQ(resolved.machine->gpu(7).cpus, "20-39,60-79");
  EXPECT_EQ(resolved.machine->nics(), dgx.nics());
}

TEST(MachineSourcesTest, RowsAreMatchedByUuidWhereBothHaveThem) {
  const Machine pairs = WithUuids(CapturedMachine("4x-mixed-bridge"), {3, 1, 0, 2});
  const ResolvedMachine resolved = Node(4).Matrix(pairs).Resolve();
  EXPECT_EQ(LinkName(resolved.machine->link(3, 1)), "NV12");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 2)), "PIX");
  EXPECT_EQ(NumaText(resolved), "1010");
}

TEST(MachineSourcesTest, RowsAreMatchedByIndexOtherwise) {
  Node node(2);
  node.sources.gpus[0].index = 3;
  node.sources.gpus[1].index = 2;
  const ResolvedMachine resolved = node.Matrix(CapturedMachine("4x-mixed-bridge")).Resolve();
  EXPECT_EQ(LinkName(resolved.machine->link(0, 1)), "PIX");
  EXPECT_EQ(resolved.machine->gpu(0).name, "GPU3");
}

TEST(MachineSourcesTest, AMatrixThatLacksAGpuOfTheNodeIsRefused) {
  const ResolvedMachine fewer = Node(8).Matrix(CapturedMachine("4x-mixed-bridge")).Resolve();
  EXPECT_EQ(fewer.machine, nullptr);
  EXPECT_THAT(fewer.problems, ElementsAre("matrix: expected a row of its own for GPU4 GPU-4, found "
                                          "none among 4; the matrix is not used"));
  const Machine other = WithUuids(CapturedMachine("4x-mixed-bridge"), {0, 1, 2, 9});
  EXPECT_EQ(Node(4).Matrix(other).Resolve().machine, nullptr);
  Node twice(2, false);
  twice.sources.gpus[1].index = 0;
  EXPECT_EQ(twice.Matrix(CapturedMachine("4x-mixed-bridge")).Resolve().machine, nullptr);
}

TEST(MachineSourcesTest, WhatAMatrixDoesNotTellIsFilledIn) {
  const ResolvedMachine resolved = Node(8)
                                       .Matrix(CapturedMachine("dgx1-p100"))
                                       .AgentNuma({0, 0, 0, 0, 1, 1, 1, 1})
                                       .Nic("mlx5_0", "", 1)
                                       .Resolve();
  EXPECT_EQ(NumaText(resolved), "00001111");
  EXPECT_EQ(resolved.machine->link(0, 1), (Link{PathClass::kNode, 1})) << "path by NUMA nodes";
  EXPECT_EQ(resolved.machine->link(0, 4), (Link{PathClass::kSys, 1}));
  ASSERT_EQ(resolved.machine->nics().size(), 1U);
  EXPECT_EQ(resolved.machine->nics()[0].paths[4], PathClass::kNode);
  EXPECT_EQ(resolved.machine->nics()[0].paths[3], PathClass::kSys);
}

TEST(MachineSourcesTest, ContradictionsAreSaidAndTheBetterSourceCounts) {
  Node node(4);
  node.Matrix(CapturedMachine("4x-mixed-bridge")).AgentNuma({0, 1, 1, 1});
  for (int left = 0; left < 4; ++left) {
    for (int right = left + 1; right < 4; ++right) node.Score(left, right, 10);
  }
  const ResolvedMachine resolved = node.Resolve();
  EXPECT_EQ(NumaText(resolved), "0011");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 1)), "NV12");
  EXPECT_THAT(resolved.problems,
              ElementsAre("GPU0 with GPU1: 12 NVLinks by the matrix, 0 by the scores; the matrix "
                          "counts",
                          "GPU1: NUMA node 0 by the matrix, 1 by the agent; the matrix counts"));
}

TEST(MachineSourcesTest, AFabricThatIsDownIsToldFromTheCatalogue) {
  const ResolvedMachine resolved =
      Node(8).Matrix(CapturedMachine("hgx-h100-nvlink-down")).Product(kH100).Resolve();
  EXPECT_TRUE(resolved.verified);
  EXPECT_EQ(LinkName(resolved.machine->link(0, 1)), "SYS");
  EXPECT_THAT(resolved.problems,
              ElementsAre("GPU0 with GPU1: 0 NVLinks by the matrix, 18 by the catalogue (and 27 "
                          "pairs more); the matrix counts"));
}

TEST(MachineSourcesTest, OtherNumaNodesThanUsualAreNoNewsWhereTheNodeTellsItsLinks) {
  const Machine usual = CapturedMachine("dgx-a100");
  std::vector<MachineGpu> gpus = usual.gpus();
  for (size_t gpu = 0; gpu < 8; ++gpu) gpus[gpu].numa = static_cast<int>(gpu / 4);
  const Machine halves(gpus, std::vector<Link>(64, {PathClass::kSys, 12}), {});
  const ResolvedMachine resolved =
      Node(8).Matrix(halves).Product("NVIDIA-A100-SXM4-80GB", "DGXA100").Resolve();
  EXPECT_EQ(NumaText(resolved), "00001111");
  EXPECT_THAT(resolved.problems, IsEmpty());
}

// HAMi's scores.

TEST(MachineSourcesTest, ScoresTellLinksAndPaths) {
  struct Row {
    int points;
    Link link;
  };
  const Row rows[] = {
      {10, {PathClass::kSys, 0}},  {20, {PathClass::kNode, 0}},   {30, {PathClass::kPhb, 0}},
      {40, {PathClass::kPxb, 0}},  {50, {PathClass::kPix, 0}},    {60, {PathClass::kBoard, 0}},
      {210, {PathClass::kSys, 2}}, {1250, {PathClass::kPix, 12}}, {1800, {PathClass::kNode, 18}}};
  for (const Row& row : rows) {
    const ResolvedMachine resolved = Node(2).Score(0, 1, row.points).AgentNuma({1, 1}).Resolve();
    EXPECT_EQ(resolved.machine->link(0, 1), row.link) << row.points;
    EXPECT_EQ(resolved.links, MachineSource::kScores);
    EXPECT_TRUE(resolved.verified);
    EXPECT_THAT(resolved.problems, IsEmpty());
    EXPECT_EQ(NumaText(resolved), "11");
  }
}

TEST(MachineSourcesTest, ScoresThatAreMissingLopsidedOrOddAreNoLink) {
  Node node(4);
  node.Score(0, 1, 310).Score(2, 3, 715).Score(0, 3, 50);
  node.scores.push_back({Uuid(1), Uuid(2), 110});
  node.scores.push_back({Uuid(2), Uuid(1), 210});
  node.scores.push_back({Uuid(0), Uuid(2), 110});
  const ResolvedMachine resolved = node.Resolve();
  EXPECT_EQ(LinkName(resolved.machine->link(0, 1)), "NV3");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 3)), "PIX");
  for (const auto& [left, right] : {std::pair(0, 2), {1, 2}, {1, 3}, {2, 3}}) {
    EXPECT_EQ(resolved.machine->link(left, right), Link{}) << left << right;
  }
  EXPECT_THAT(resolved.problems,
              ElementsAre("scores: expected GPU0 with GPU2 in both directions, found one; no link",
                          "scores: expected equal points of GPU1 with GPU2, found 110 and 210; no "
                          "link",
                          "scores: expected GPU1 with GPU3 in both directions, found none; no link",
                          "scores: expected 10 to 60 points and 100 per NVLink for GPU2 with GPU3, "
                          "found 715; no link"));
}

TEST(MachineSourcesTest, ScoresOfOtherGpusAreNotUsed) {
  const ResolvedMachine resolved = Node(3).Score(0, 1, 210).Resolve();
  EXPECT_EQ(resolved.machine, nullptr);
  EXPECT_THAT(resolved.problems, ElementsAre(HasSubstr("expected some of GPU2 GPU-2, found none")));
}

TEST(MachineSourcesTest, ExtremePointsAreNoLink) {
  for (const int points : {0, -10, 1910, 70, 2147483647, -2147483647 - 1}) {
    EXPECT_EQ(Node(2).Score(0, 1, points).Resolve().machine->link(0, 1), Link{}) << points;
  }
}

// ResourceSlices.

TEST(MachineSourcesTest, SlicesTellPathsAndNumaNodesButNoNvlinks) {
  const ResolvedMachine resolved = Node(4)
                                       .Slice(0, "pci0000:10", 0)
                                       .Slice(1, "pci0000:10", 0)
                                       .Slice(2, "pci0000:20", 0)
                                       .Slice(3, "pci0000:90", 1)
                                       .Nic("mlx5_0", "pci0000:10", 0)
                                       .Nic("mlx5_1", "pci0000:70", 1)
                                       .Product("NVIDIA-H100-PCIe")
                                       .Resolve();
  EXPECT_EQ(resolved.links, MachineSource::kSlices);
  EXPECT_FALSE(resolved.verified) << "there may be NVLinks nobody tells about";
  EXPECT_EQ(LinkName(resolved.machine->link(0, 1)), "PXB");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 2)), "NODE");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 3)), "SYS");
  ASSERT_EQ(resolved.machine->nics().size(), 2U);
  EXPECT_THAT(resolved.machine->nics()[0].paths,
              ElementsAre(PathClass::kPxb, PathClass::kPxb, PathClass::kNode, PathClass::kSys));
  EXPECT_TRUE(resolved.machine->nics()[0].fabric);
  EXPECT_FALSE(resolved.machine->nics()[1].fabric);
}

TEST(MachineSourcesTest, SlicesOfAllGpusConfirmTheCatalogue) {
  Node node(8);
  node.Product(kH100);
  const char* const roots[] = {"44", "55", "66", "77", "88", "99", "aa", "bb"};
  for (int gpu = 0; gpu < 7; ++gpu) node.Slice(gpu, roots[gpu], gpu / 4);
  EXPECT_FALSE(node.Resolve().verified) << "the eighth is missing";
  node.Slice(7, "bb", 1);
  const ResolvedMachine resolved = node.Resolve();
  EXPECT_TRUE(resolved.verified);
  EXPECT_EQ(resolved.links, MachineSource::kCatalogue);
  EXPECT_EQ(resolved.machine->link(0, 7), (Link{PathClass::kSys, 18}));
  EXPECT_EQ(NumaText(resolved), "00001111");
  EXPECT_THAT(resolved.problems, IsEmpty());
}

TEST(MachineSourcesTest, ZonesThatObjectOutweighSlicesThatFit) {
  Node node(8);
  node.Product(kH100).Zone(0, 4).Zone(1, 3);
  for (int gpu = 0; gpu < 8; ++gpu) node.Slice(gpu, "", gpu / 4);
  EXPECT_FALSE(node.Resolve().verified);
  node.zones[1].gpus_capacity = 4;
  EXPECT_TRUE(node.Resolve().verified);
}

TEST(MachineSourcesTest, SlicesOfOtherGpusAreNotUsed) {
  Node node(2);
  node.Slice(5, "pci0000:10", 0);
  const ResolvedMachine resolved = node.Resolve();
  EXPECT_EQ(resolved.machine, nullptr);
  EXPECT_THAT(resolved.problems, ElementsAre(HasSubstr("slices: expected the node's GPUs")));
}

// Zones and the catalogue.

TEST(MachineSourcesTest, TheCatalogueAloneIsNotVerified) {
  const ResolvedMachine resolved = Node(8, false).Product(kH100).Resolve();
  EXPECT_EQ(resolved.links, MachineSource::kCatalogue);
  EXPECT_FALSE(resolved.verified);
  EXPECT_EQ(LinkName(resolved.machine->link(0, 7)), "NV18");
  EXPECT_EQ(NumaText(resolved), "--------");
}

TEST(MachineSourcesTest, ZonesConfirmOrContradictTheCatalogue) {
  struct Row {
    const char* what;
    std::vector<std::pair<int, int64_t>> zones;
    const char* machine;
    bool verified;
    const char* numa;
    const char* problem;
  };
  const Row rows[] = {
      {"halves", {{0, 4}, {1, 4}}, "", true, "00001111", ""},
      {"one node", {{0, 8}, {1, 0}}, "", true, "00000000", ""},
      {"as on every DGX A100",
       {{0, 0}, {1, 2}, {3, 2}, {5, 2}, {7, 2}},
       "DGXA100",
       true,
       "33117755",
       ""},
      {"another server's nodes",
       {{0, 4}, {1, 4}},
       "DGXA100",
       false,
       "--------",
       "zones: expected GPUs on NUMA nodes as other sources tell (1: 2, 3: 2, 5: 2, 7: 2), found "
       "(0: 4, 1: 4)"},
      {"lopsided", {{0, 6}, {1, 2}}, "", false, "00000011", ""},
      {"another number",
       {{0, 4}, {1, 3}},
       "",
       false,
       "--------",
       "zones: expected 8 GPUs in all of them, found 7"},
      {"absurd numbers",
       {{0, INT64_MAX}, {1, INT64_MAX}},
       "",
       false,
       "--------",
       "zones: expected 8 GPUs in all of them, found 2000000"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Node node(8, false);
    node.Product("NVIDIA-A100-SXM4-80GB", row.machine);
    for (const auto& [zone, gpus] : row.zones) node.Zone(zone, gpus);
    const ResolvedMachine resolved = node.Resolve();
    EXPECT_EQ(resolved.links, MachineSource::kCatalogue);
    EXPECT_EQ(resolved.verified, row.verified);
    EXPECT_EQ(NumaText(resolved), row.numa);
    EXPECT_EQ(LinkName(resolved.machine->link(0, 7)), "NV12");
    if (*row.problem == '\0') {
      EXPECT_THAT(resolved.problems, IsEmpty());
    } else {
      EXPECT_THAT(resolved.problems, ElementsAre(row.problem));
    }
  }
}

TEST(MachineSourcesTest, ZonesAloneNumberGpusThatNobodyCanTellApart) {
  const ResolvedMachine resolved = Node(8, false).Zone(1, 5).Zone(0, 3).Resolve();
  EXPECT_EQ(resolved.links, MachineSource::kZones);
  EXPECT_FALSE(resolved.verified);
  EXPECT_EQ(NumaText(resolved), "00011111");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 1)), "NODE");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 7)), "SYS");
}

TEST(MachineSourcesTest, ZonesDoNotSayWhichKnownGpuIsWhere) {
  EXPECT_EQ(NumaText(Node(4).Zone(0, 2).Zone(1, 2).Resolve()), "----");
  EXPECT_EQ(NumaText(Node(4).Zone(1, 4).Resolve()), "1111") << "but one zone says it of all";
  EXPECT_EQ(NumaText(Node(4).Zone(0, 2).Zone(1, 2).AgentNuma({1, 0, 0, 1}).Resolve()), "1001");
  const ResolvedMachine cube =
      Node(8, false).Product("Tesla-P100-SXM2-16GB", "DGX-1").Zone(0, 4).Zone(1, 4).Resolve();
  EXPECT_EQ(NumaText(cube), "--------") << "its links tell positions apart";
  EXPECT_TRUE(cube.verified);
}

TEST(MachineSourcesTest, OneZoneFillsNothingInWhereTheAgentKnowsAnother) {
  Node node(2);
  node.sources.gpus[0].numa = 1;
  const ResolvedMachine resolved = node.Zone(0, 2).Resolve();
  EXPECT_EQ(NumaText(resolved), "1-");
}

TEST(MachineSourcesTest, ZonesThatContradictTheAgentAreAProblem) {
  const ResolvedMachine resolved = Node(4).Zone(0, 2).Zone(1, 2).AgentNuma({0, 0, 0, 1}).Resolve();
  EXPECT_EQ(NumaText(resolved), "0001");
  EXPECT_THAT(resolved.problems, ElementsAre(HasSubstr("tell (0: 3, 1: 1), found (0: 2, 1: 2)")));
}

TEST(MachineSourcesTest, NumaNodesOfTheAgentAloneMakeAMachineWithoutLinks) {
  const ResolvedMachine resolved = Node(2).AgentNuma({0, 1}).Resolve();
  EXPECT_EQ(resolved.links, MachineSource::kNone);
  EXPECT_FALSE(resolved.verified);
  EXPECT_EQ(NumaText(resolved), "01");
  EXPECT_EQ(LinkName(resolved.machine->link(0, 1)), "SYS");
}

TEST(MachineSourcesTest, NumaNodesThatContradictTheBoardKeepItUnverified) {
  const ResolvedMachine resolved = Node(8)
                                       .Product("NVIDIA-A100-SXM4-80GB", "DGXA100")
                                       .AgentNuma({0, 0, 0, 0, 1, 1, 1, 1})
                                       .Zone(0, 4)
                                       .Zone(1, 4)
                                       .Resolve();
  EXPECT_FALSE(resolved.verified);
  EXPECT_EQ(NumaText(resolved), "00001111");
  EXPECT_THAT(resolved.problems,
              Contains("GPU0: NUMA node 0 by the agent, 3 by the catalogue; the agent counts"));
}

TEST(MachineSourcesTest, SourcesHaveNames) {
  EXPECT_EQ(MachineSourceName(MachineSource::kNone), "none");
  EXPECT_EQ(MachineSourceName(MachineSource::kScores), "scores");
  EXPECT_EQ(MachineSourceName(MachineSource::kMatrix), "matrix");
}

}  // namespace THIS_FILE
}  // namespace tranche
