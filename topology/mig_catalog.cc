// Where the facts come from.
//
// Profile names, counts and engines: NVIDIA MIG user guide, "Supported MIG Profiles" (several
// editions), and the mig-parted configuration of the GPU operator. Starts and MiB: `nvidia-smi mig
// -lgipp` and `-lgip` of real boards where a row says captured; else the family's grid, which every
// captured board of the family follows: "simulator" rows agree with the tables of NVIDIA's NVML
// test double (NVIDIA/k8s-test-infra), "inferred" rows rest on the family alone. 0 MiB: nobody has
// published the number. Boards without published placements (RTX PRO 5000 and 4500) are left out.
#include "topology/mig_catalog.h"

#include <array>
#include <cstddef>
#include <utility>

namespace tranche {
namespace {

constexpr size_t kEightUnitProfiles = 7;

// What one profile of a grid looks like on every board that has the grid.
struct GridProfile {
  int compute_slices;
  int size;
  int max_instances;
  std::vector<int> starts;
  int media_engines;
  int codec_engines;
};

struct NamedProfile {
  std::string_view name;
  int64_t mib = 0;
  std::vector<std::string_view> aliases = {};
};

struct EightUnitBoard {
  std::string_view id;
  int64_t memory_gb;
  std::vector<std::string_view> products;
  std::array<NamedProfile, kEightUnitProfiles> profiles;  // in the order of EightUnitGrid
};

// Seven compute slices over eight memory units: every A100, H100, H200, B200, B300 and kin.
std::vector<GridProfile> EightUnitGrid() {
  return {{1, 1, 7, {0, 1, 2, 3, 4, 5, 6}, 0, 0},
          {1, 1, 1, {0, 1, 2, 3, 4, 5, 6}, 1, 0},  // +me
          {1, 2, 4, {0, 2, 4, 6}, 0, 0},           // one slice with the memory of two
          {2, 2, 3, {0, 2, 4}, 0, 0},
          {3, 4, 2, {0, 4}, 0, 0},
          {4, 4, 1, {0}, 0, 0},
          {7, 8, 1, {0}, 1, 0}};
}

// clang-format off
std::vector<EightUnitBoard> EightUnitBoards() {
  return {
      // captured
      {"a100-40", 40,
       {"NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-PCIE-40GB"},
       {{{"1g.5gb", 4864}, {"1g.5gb+me", 4864}, {"1g.10gb", 9984}, {"2g.10gb", 9984},
         {"3g.20gb", 20096}, {"4g.20gb", 20096}, {"7g.40gb", 40320}}}},
      // captured; the A800 uses the same table
      {"a100-80", 80,
       {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe",
        "NVIDIA-A800-SXM4-80GB", "NVIDIA-A800-80GB-PCIe"},
       {{{"1g.10gb", 9856}, {"1g.10gb+me", 9856}, {"1g.20gb", 19968}, {"2g.20gb", 19968},
         {"3g.40gb", 40192, {"3g.39gb"}}, {"4g.40gb", 40192, {"4g.39gb"}},
         {"7g.80gb", 80384, {"7g.79gb"}}}}},
      // inferred; an SXM5 special edition, whose product label nobody has published
      {"h100-64", 64,
       {},
       {{{"1g.8gb"}, {"1g.8gb+me"}, {"1g.16gb"}, {"2g.16gb"},
         {"3g.32gb"}, {"4g.32gb"}, {"7g.64gb"}}}},
      // captured
      {"h100-80", 80,
       {"NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "NVIDIA-H800", "NVIDIA-H800-PCIe"},
       {{{"1g.10gb", 9984}, {"1g.10gb+me", 9984}, {"1g.20gb", 20096}, {"2g.20gb", 20096},
         {"3g.40gb", 40448}, {"4g.40gb", 40448}, {"7g.80gb", 81152}}}},
      // captured; MiB converted from GiB listings
      {"h100-94", 94,
       {"NVIDIA-H100-NVL", "NVIDIA-H800-NVL"},
       {{{"1g.12gb", 11008}, {"1g.12gb+me", 11008}, {"1g.24gb", 22144}, {"2g.24gb", 22144},
         {"3g.47gb", 47488}, {"4g.47gb", 47488}, {"7g.94gb", 95360}}}},
      // inferred; the 480 in the GH200's name is the memory of its CPU
      {"h100-96", 96,
       {"NVIDIA-GH200-480GB", "NVIDIA-H20"},
       {{{"1g.12gb"}, {"1g.12gb+me"}, {"1g.24gb"}, {"2g.24gb"},
         {"3g.48gb"}, {"4g.48gb"}, {"7g.96gb"}}}},
      // inferred
      {"gh200-144", 144,
       {"NVIDIA-GH200-144G-HBM3e"},
       {{{"1g.18gb", 17920}, {"1g.18gb+me", 17920}, {"1g.36gb", 36096}, {"2g.36gb", 36096},
         {"3g.72gb"}, {"4g.72gb"}, {"7g.144gb"}}}},
      // placements inferred, MiB captured; the H20 with 141 GB has the same names and slice memory
      {"h200-141", 141,
       {"NVIDIA-H200", "NVIDIA-H200-NVL", "NVIDIA-H20", "NVIDIA-H20-3e"},
       {{{"1g.18gb", 16384}, {"1g.18gb+me", 16384}, {"1g.35gb", 33024}, {"2g.35gb", 33024},
         {"3g.71gb", 71168}, {"4g.71gb", 71168}, {"7g.141gb", 143360}}}},
      // captured
      {"b200-180", 180,
       {"NVIDIA-B200"},
       {{{"1g.23gb", 20992}, {"1g.23gb+me", 20992}, {"1g.45gb", 45312}, {"2g.45gb", 45312},
         {"3g.90gb", 91136}, {"4g.90gb", 91136}, {"7g.180gb", 182784}}}},
      // simulator; the aliases are those of other drivers
      {"gb200-186", 186,
       {"NVIDIA-GB200"},
       {{{"1g.23gb", 0, {"1g.24gb"}}, {"1g.23gb+me", 0, {"1g.24gb+me"}}, {"1g.47gb", 46592},
         {"2g.47gb", 46592}, {"3g.93gb", 0, {"3g.95gb"}}, {"4g.93gb", 0, {"4g.95gb"}},
         {"7g.186gb", 0, {"7g.189gb"}}}}},
      // inferred
      {"b300-269", 269,
       {"NVIDIA-B300-SXM6-AC"},
       {{{"1g.34gb"}, {"1g.34gb+me"}, {"1g.67gb"}, {"2g.67gb"},
         {"3g.135gb"}, {"4g.135gb"}, {"7g.269gb"}}}},
      // simulator
      {"gb300-278", 278,
       {"NVIDIA-GB300"},
       {{{"1g.35gb"}, {"1g.35gb+me"}, {"1g.70gb"}, {"2g.70gb"},
         {"3g.139gb"}, {"4g.139gb"}, {"7g.278gb"}}}},
  };
}
// clang-format on

MigProfile MakeProfile(NamedProfile named, GridProfile grid) {
  MigProfile profile;
  profile.name = named.name;
  profile.compute_slices = grid.compute_slices;
  profile.size = grid.size;
  profile.max_instances = grid.max_instances;
  if (named.mib > 0) profile.memory = Mebibytes::Of(named.mib);
  profile.starts = std::move(grid.starts);
  profile.media_engines = grid.media_engines;
  profile.codec_engines = grid.codec_engines;
  profile.aliases = std::move(named.aliases);
  return profile;
}

MigBoard MakeEightUnitBoard(EightUnitBoard row) {
  MigBoard board;
  board.id = row.id;
  board.products = std::move(row.products);
  board.memory_gb = row.memory_gb;
  board.compute_slices = 7;
  board.units = 8;
  std::vector<GridProfile> grid = EightUnitGrid();
  for (size_t i = 0; i < kEightUnitProfiles; ++i) {
    board.profiles.push_back(MakeProfile(std::move(row.profiles[i]), std::move(grid[i])));
  }
  return board;
}

// captured; the placements of 2g.12gb+me are taken from 2g.12gb
MigBoard MakeA30() {
  MigBoard board;
  board.id = "a30-24";
  board.products = {"NVIDIA-A30"};
  board.memory_gb = 24;
  board.compute_slices = 4;
  board.units = 4;
  board.profiles = {MakeProfile({"1g.6gb", 5836}, {1, 1, 4, {0, 1, 2, 3}, 0, 0}),
                    MakeProfile({"1g.6gb+me", 5836}, {1, 1, 1, {0, 1, 2, 3}, 1, 0}),
                    MakeProfile({"2g.12gb", 11672}, {2, 2, 2, {0, 2}, 0, 0}),
                    MakeProfile({"2g.12gb+me", 11672}, {2, 2, 1, {0, 2}, 1, 0}),
                    MakeProfile({"4g.24gb", 23344}, {4, 4, 1, {0}, 1, 0})};
  return board;
}

// captured; MiB converted from GiB listings. The only board whose instances share the codec
// engines out: 4 NVDEC, 4 NVENC and 4 NVJPG, of which every profile takes equally many.
MigBoard MakeRtxPro6000() {
  MigBoard board;
  board.id = "rtx-pro-6000-96";
  board.products = {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
                    "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition",
                    "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"};
  board.memory_gb = 96;
  board.compute_slices = 4;
  board.units = 12;
  board.codec_engines = 4;
  const std::vector<int> quarters = {0, 3, 6, 9};
  const std::vector<int> halves = {0, 6};
  board.profiles = {MakeProfile({"1g.24gb", 24187}, {1, 3, 4, quarters, 0, 1}),
                    MakeProfile({"1g.24gb+me", 24187}, {1, 3, 1, quarters, 1, 1}),
                    MakeProfile({"1g.24gb+gfx", 24187}, {1, 3, 4, quarters, 0, 1}),
                    MakeProfile({"1g.24gb+me.all", 24187}, {1, 3, 1, quarters, 1, 4}),
                    MakeProfile({"1g.24gb-me", 24187}, {1, 3, 4, quarters, 0, 0}),
                    MakeProfile({"2g.48gb", 48517}, {2, 6, 2, halves, 0, 2}),
                    MakeProfile({"2g.48gb+gfx", 48517}, {2, 6, 2, halves, 0, 2}),
                    MakeProfile({"2g.48gb+me.all", 48517}, {2, 6, 1, halves, 1, 4}),
                    MakeProfile({"2g.48gb-me", 48517}, {2, 6, 2, halves, 0, 0}),
                    MakeProfile({"4g.96gb", 97280}, {4, 12, 1, {0}, 1, 4}),
                    MakeProfile({"4g.96gb+gfx", 97280}, {4, 12, 1, {0}, 1, 4})};
  return board;
}

}  // namespace

std::vector<MigBoard> BuildMigCatalog() {
  std::vector<MigBoard> boards;
  boards.push_back(MakeA30());
  for (EightUnitBoard& row : EightUnitBoards()) {
    boards.push_back(MakeEightUnitBoard(std::move(row)));
  }
  boards.push_back(MakeRtxPro6000());
  return boards;
}

}  // namespace tranche
