#include "topology/machine/machine_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/gpu_model.h"
#include "topology/vgpu.h"

namespace tranche {
namespace {

using NumaNodes = std::array<int, 16>;
constexpr int kMostWithoutNvlink = 16;

// One board. All words must be in the product label and `without` must not; `chassis`, where one is
// given, must be in the machine label.
struct Board {
  std::array<std::string_view, 2> words;
  std::string_view without;
  std::string_view chassis;
  int gpus;
  uint8_t nvlinks;           // between every two GPUs
  const NumaNodes* numa;     // nullptr: depends on the server around the board
  std::string_view pairs{};  // instead of `nvlinks`, where pairs differ
};

// Captured: DGX A100 (2 sockets of 4 NUMA nodes), DGX-2, DGX H200, DGX-1 with V100.
constexpr NumaNodes kDgxA100 = {3, 3, 1, 1, 7, 7, 5, 5};
constexpr NumaNodes kHalvesOf8 = {0, 0, 0, 0, 1, 1, 1, 1};
constexpr NumaNodes kHalvesOf16 = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};

// NVLinks of the pairs 01 to 07, 12 to 17, ... 67.
constexpr std::string_view kCubeV100 =
    "1122000"
    "210200"
    "20010"
    "0001"
    "112"
    "21"
    "2";
constexpr std::string_view kCubeP100 =
    "1111000"
    "110100"
    "10010"
    "0001"
    "111"
    "11"
    "1";

// The first row that matches counts: known chassis stand before their boards. Cards that may or may
// not be bridged (A100 PCIe, H100 PCIe and NVL, A40, A6000 and their like) are in no row.
constexpr std::array kBoards = {
    // Hybrid cube meshes: captured DGX-1V matrix; link fixtures of go-gpuallocator for DGX-1 P100.
    // HGX-1 boards with the same GPUs are numbered otherwise, hence the chassis.
    Board{{"v100", "sxm2"}, "", "dgx1", 8, 0, &kHalvesOf8, kCubeV100},
    Board{{"p100", "sxm2"}, "", "dgx1", 8, 0, nullptr, kCubeP100},
    // NVSwitch. DGX-2: nccl-tests issue 78. A100: nccl issue 1505. Hopper: sglang issue 9696, DGX
    // H200 reports. B200: dranet documentation. GB200: a captured tray.
    Board{{"v100", "sxm3"}, "", "dgx2", 16, 6, &kHalvesOf16},
    Board{{"v100", "sxm3"}, "", "", 16, 6, nullptr},
    Board{{"a100", "sxm4"}, "", "dgxa100", 8, 12, &kDgxA100},
    Board{{"a100", "sxm4"}, "", "", 8, 12, nullptr},
    Board{{"h100", "hbm3"}, "nvl", "", 8, 18, nullptr},
    Board{{"h200", ""}, "nvl", "dgxh200", 8, 18, &kHalvesOf8},
    Board{{"h200", ""}, "nvl", "", 8, 18, nullptr},
    Board{{"h20", ""}, "", "", 8, 18, nullptr},
    Board{{"b200", ""}, "", "", 8, 18, nullptr},
    Board{{"gb200", ""}, "", "", 4, 18, nullptr},
    // Four GPUs linked directly: JUWELS Booster and Leonardo nodes; nccl issue 1617.
    Board{{"a100", "sxm4"}, "", "", 4, 4, nullptr},
    Board{{"h100", "hbm3"}, "nvl", "", 4, 6, nullptr},
};

// Cards without NVLink connectors, by the model names of gpu_model.h. Source: data sheets.
constexpr std::array<std::string_view, 8> kWithoutNvlink = {
    "t4", "l4", "l40", "l40s", "a10", "a10g", "rtx-6000-ada", "rtx-pro-6000"};

// "NVIDIA-DGX-1", "DGX-1-with-V100-16", "DGXA100-920-23687": only letters and digits are compared.
bool NamesChassis(std::string_view label, std::string_view chassis) {
  if (chassis.empty()) return true;
  std::string plain;
  for (const char c : label) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  return plain.find(chassis) != plain.npos;
}

bool IsBoard(const Board& board, std::string_view product, std::string_view machine, int gpus) {
  const auto in_product = [&](std::string_view word) {
    return !word.empty() && MatchesModel(word, product);
  };
  return board.gpus == gpus && NamesChassis(machine, board.chassis) && !in_product(board.without) &&
         std::all_of(board.words.begin(), board.words.end(),
                     [&](std::string_view word) { return word.empty() || in_product(word); });
}

std::vector<MachineGpu> Gpus(int count, const NumaNodes* numa) {
  std::vector<MachineGpu> gpus;
  for (int at = 0; at < count; ++at) {
    gpus.push_back({fmt::format("GPU{}", at), {}, std::nullopt, {}});
    if (numa != nullptr) gpus.back().numa = (*numa)[static_cast<std::size_t>(at)];
  }
  return gpus;
}

std::shared_ptr<const Machine> Build(const Board& board) {
  std::vector<MachineGpu> gpus = Gpus(board.gpus, board.numa);
  std::vector<Link> links(gpus.size() * gpus.size());
  std::string_view pairs = board.pairs;
  for (std::size_t left = 0; left < gpus.size(); ++left) {
    for (std::size_t right = left + 1; right < gpus.size(); ++right) {
      Link link{InferredPath(gpus[left].numa, gpus[right].numa), board.nvlinks};
      if (!pairs.empty()) {
        link.nvlinks = static_cast<uint8_t>(pairs.front() - '0');
        pairs.remove_prefix(1);
      }
      links[left * gpus.size() + right] = links[right * gpus.size() + left] = link;
    }
  }
  return std::make_shared<const Machine>(std::move(gpus), std::move(links),
                                         std::vector<MachineNic>());
}

std::vector<std::shared_ptr<const Machine>> BuildAll() {
  std::vector<std::shared_ptr<const Machine>> machines;
  for (const Board& board : kBoards) machines.push_back(Build(board));
  return machines;
}

// How cards in slots reach each other depends on the server: SYS until someone tells.
std::vector<std::shared_ptr<const Machine>> BuildWithoutNvlink() {
  std::vector<std::shared_ptr<const Machine>> machines;
  for (int count = 0; count <= kMostWithoutNvlink; ++count) {
    machines.push_back(Build(Board{{}, "", "", count, 0, nullptr}));
  }
  return machines;
}

}  // namespace

std::shared_ptr<const Machine> CatalogueMachine(std::string_view product, std::string_view machine,
                                                int gpus) {
  // What a guest sees of the host's links, its hypervisor decides.
  if (VgpuTypeOf(product)) return nullptr;
  static const std::vector<std::shared_ptr<const Machine>> boards = BuildAll();
  static const std::vector<std::shared_ptr<const Machine>> without_nvlink = BuildWithoutNvlink();
  for (std::size_t row = 0; row < kBoards.size(); ++row) {
    if (IsBoard(kBoards[row], product, machine, gpus)) return boards[row];
  }
  if (gpus < 1 || gpus > kMostWithoutNvlink) return nullptr;
  const std::string model = GpuModelName(product);
  const bool plain =
      std::find(kWithoutNvlink.begin(), kWithoutNvlink.end(), model) != kWithoutNvlink.end();
  return plain ? without_nvlink[static_cast<std::size_t>(gpus)] : nullptr;
}

}  // namespace tranche
