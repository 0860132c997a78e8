#include "topology/machine/machine.h"

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

constexpr Link kNode{PathClass::kNode, 0};
constexpr Link kNv2{PathClass::kNode, 2};

std::vector<MachineGpu> Gpus(const std::vector<std::optional<int>>& numa) {
  std::vector<MachineGpu> gpus;
  for (const std::optional<int>& node : numa) {
    gpus.push_back({"GPU" + std::to_string(gpus.size()), {}, node, {}});
  }
  return gpus;
}

Machine AllLinkedBy(Link link, const std::vector<std::optional<int>>& numa,
                    std::vector<MachineNic> nics = {}) {
  return {Gpus(numa), std::vector<Link>(numa.size() * numa.size(), link), std::move(nics)};
}

TEST(MachineTest, WhereDirectionsDifferTheWorseCounts) {
  const Link both{PathClass::kSys, 12};
  const Machine machine(Gpus({0, 0}), {{}, {PathClass::kPix, 0}, both, {}}, {});
  EXPECT_EQ(machine.link(0, 1), (Link{PathClass::kSys, 0}));
  EXPECT_EQ(machine.link(1, 0), machine.link(0, 1));
}

TEST(MachineTest, TheDiagonalIsIgnored) {
  const Machine left(Gpus({0, 0}), {kNv2, kNode, kNode, kNode}, {});
  EXPECT_EQ(left, AllLinkedBy(kNode, {0, 0}));
  EXPECT_EQ(left.digest(), AllLinkedBy(kNode, {0, 0}).digest());
}

TEST(MachineTest, DigestIgnoresNamesAndTheOrderOfNics) {
  const MachineNic near{"mlx5_0", true, {PathClass::kPix, PathClass::kNode}};
  const MachineNic far{"mlx5_1", true, {PathClass::kNode, PathClass::kPix}};
  const MachineNic storage{"mlx5_2", false, {PathClass::kSys, PathClass::kSys}};
  const Machine machine = AllLinkedBy(kNode, {0, 1}, {near, far, storage});
  std::vector<MachineGpu> renamed = Gpus({0, 1});
  renamed[0] = {"GPU7", GpuUuid("GPU-a"), 0, "0-15"};
  EXPECT_EQ(machine.digest(), Machine(renamed, std::vector<Link>(4, kNode), {far, near}).digest());
  EXPECT_NE(machine.digest(), AllLinkedBy(kNode, {0, 1}, {near}).digest());
}

TEST(MachineTest, DigestTellsLinksPathsNumaNodesAndSizesApart) {
  const std::vector<Machine> machines = {AllLinkedBy(kNode, {0, 0}),
                                         AllLinkedBy(kNv2, {0, 0}),
                                         AllLinkedBy({PathClass::kSys, 2}, {0, 0}),
                                         AllLinkedBy(kNode, {0, 1}),
                                         AllLinkedBy(kNode, {1, 0}),
                                         AllLinkedBy(kNode, {0, std::nullopt}),
                                         AllLinkedBy(kNode, {0, 0, 0}),
                                         AllLinkedBy(kNode, {})};
  for (size_t left = 0; left < machines.size(); ++left) {
    for (size_t right = 0; right < left; ++right) {
      EXPECT_NE(machines[left].digest(), machines[right].digest()) << left << " " << right;
    }
  }
}

TEST(MachineTest, UniformWhereItMakesNoDifferenceWhichGpusAreTaken) {
  const MachineNic at_each{"a", true, {PathClass::kPix, PathClass::kPix, PathClass::kPix}};
  const MachineNic at_one{"a", true, {PathClass::kPix, PathClass::kNode, PathClass::kNode}};
  EXPECT_TRUE(AllLinkedBy(kNv2, {0, 0, 0}).uniform());
  EXPECT_TRUE(AllLinkedBy(kNv2, {2, 0, 1}).uniform()) << "every GPU alone on its node";
  EXPECT_TRUE(AllLinkedBy(kNv2, {{}, {}, {}}).uniform());
  EXPECT_TRUE(AllLinkedBy(kNv2, {0, 0, 0}, {at_each}).uniform());
  EXPECT_TRUE(AllLinkedBy(kNv2, {0}).uniform());
  EXPECT_FALSE(AllLinkedBy(kNv2, {0, 0, 1}).uniform());
  EXPECT_FALSE(AllLinkedBy(kNv2, {0, 0, {}}).uniform());
  EXPECT_FALSE(AllLinkedBy(kNv2, {0, 0, 0}, {at_one}).uniform());
  std::vector<Link> links(9, kNv2);
  links[5] = links[7] = kNode;
  EXPECT_FALSE(Machine(Gpus({0, 0, 0}), links, {}).uniform());
}

TEST(MachineTest, ANicBesideNoGpuIsNoFabricNicWhereOthersAreBesideOne) {
  std::vector<MachineNic> nics = {{"a", true, {PathClass::kPxb, PathClass::kSys}},
                                  {"b", true, {PathClass::kNode, PathClass::kSys}}};
  MarkFabric(nics);
  EXPECT_TRUE(nics[0].fabric);
  EXPECT_FALSE(nics[1].fabric);
  nics.erase(nics.begin());
  MarkFabric(nics);
  EXPECT_TRUE(nics[0].fabric) << "nothing tells it apart";
}

TEST(MachineTest, LinkFloorsAreReadInAnyCase) {
  EXPECT_EQ(ParseLinkFloor("nvlink"), (LinkFloor{PathClass::kSys, 1}));
  EXPECT_EQ(ParseLinkFloor("NV12"), (LinkFloor{PathClass::kSys, 12}));
  EXPECT_EQ(ParseLinkFloor("pix"), (LinkFloor{PathClass::kPix, 0}));
  EXPECT_EQ(ParseLinkFloor("NODE"), (LinkFloor{PathClass::kNode, 0}));
  for (const char* wrong : {"", "nv", "nv0", "nv19", "nv1 ", "nv01", "sys", "board", "nvlinks"}) {
    EXPECT_EQ(ParseLinkFloor(wrong), std::nullopt) << wrong;
  }
}

TEST(MachineTest, FloorsAdmitAnyNvlinkOrTheNumberAskedFor) {
  EXPECT_TRUE(ParseLinkFloor("pix")->Admits({PathClass::kSys, 1}));
  EXPECT_FALSE(ParseLinkFloor("pix")->Admits({PathClass::kPxb, 0}));
  EXPECT_TRUE(ParseLinkFloor("nv4")->Admits({PathClass::kSys, 4}));
  EXPECT_FALSE(ParseLinkFloor("nv4")->Admits({PathClass::kPix, 3}));
}

TEST(MachineTest, LinksAreNamedAsTheToolPrintsThem) {
  EXPECT_EQ(LinkName({PathClass::kNode, 12}), "NV12");
  EXPECT_EQ(LinkName({PathClass::kPhb, 0}), "PHB");
  EXPECT_EQ(PathName(PathClass::kBoard), "BOARD");
}

TEST(MachineDeathTest, BrokenPromisesStopTheProcess) {
  EXPECT_DEATH(AllLinkedBy(kNode, std::vector<std::optional<int>>(65)), "check failed");
  EXPECT_DEATH(Machine(Gpus({0, 0}), {kNode}, {}), "check failed");
  EXPECT_DEATH(AllLinkedBy({PathClass::kSys, 19}, {0, 0}), "check failed");
  EXPECT_DEATH(AllLinkedBy(kNode, {0, 0}, {{"a", true, {PathClass::kSys}}}), "check failed");
}

}  // namespace THIS_FILE
}  // namespace tranche
