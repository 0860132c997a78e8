#include "topology/vgpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>

#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche {
namespace {

struct CardRow {
  std::string_view name;  // in types of vGPUs, lower case
  int gb;                 // of the type that has the whole card
  std::string_view product;
};

// Source: NVIDIA's tables of vGPU types (vGPU user guide, "Virtual GPU Types", and NVIDIA AI
// Enterprise, "vGPU for Compute"): D is the larger memory, X and XM an SXM board, L the NVL board.
// Seen as labels of real nodes: GRID-A100-10C, GRID-A100-8C, GRID-V100D-16C, NVIDIA-H100XM-80C.
constexpr std::array kCards = {
    CardRow{"a2", 16, "NVIDIA-A2"},
    CardRow{"a10", 24, "NVIDIA-A10"},
    CardRow{"a16", 16, "NVIDIA-A16"},
    CardRow{"a30", 24, "NVIDIA-A30"},
    CardRow{"a40", 48, "NVIDIA-A40"},
    CardRow{"a100", 40, "NVIDIA-A100-PCIE-40GB"},
    CardRow{"a100d", 80, "NVIDIA-A100-80GB-PCIe"},
    CardRow{"a100x", 40, "NVIDIA-A100-SXM4-40GB"},
    CardRow{"a100dx", 80, "NVIDIA-A100-SXM4-80GB"},
    CardRow{"a800d", 80, "NVIDIA-A800-80GB-PCIe"},
    CardRow{"a800dx", 80, "NVIDIA-A800-SXM4-80GB"},
    CardRow{"h20", 96, "NVIDIA-H20"},
    CardRow{"h20x", 141, "NVIDIA-H20-3e"},
    CardRow{"h100", 80, "NVIDIA-H100-PCIe"},
    CardRow{"h100l", 94, "NVIDIA-H100-NVL"},
    CardRow{"h100xm", 80, "NVIDIA-H100-80GB-HBM3"},
    CardRow{"h200", 141, "NVIDIA-H200-NVL"},
    CardRow{"h200x", 141, "NVIDIA-H200"},
    CardRow{"h800", 80, "NVIDIA-H800-PCIe"},
    CardRow{"h800l", 94, "NVIDIA-H800-NVL"},
    CardRow{"h800xm", 80, "NVIDIA-H800"},
    CardRow{"l4", 24, "NVIDIA-L4"},
    CardRow{"l20", 48, "NVIDIA-L20"},
    CardRow{"l40", 48, "NVIDIA-L40"},
    CardRow{"l40s", 48, "NVIDIA-L40S"},
    CardRow{"p100", 16, "Tesla-P100-PCIE-16GB"},
    CardRow{"p100x", 16, "Tesla-P100-SXM2-16GB"},
    CardRow{"p40", 24, "Tesla-P40"},
    CardRow{"rtx6000-ada", 48, "NVIDIA-RTX-6000-Ada-Generation"},
    CardRow{"rtxa6000", 48, "NVIDIA-RTX-A6000"},
    CardRow{"t4", 16, "Tesla-T4"},
    CardRow{"v100", 16, "Tesla-V100-PCIE-16GB"},
    CardRow{"v100d", 32, "Tesla-V100-PCIE-32GB"},
    CardRow{"v100dx", 32, "Tesla-V100-SXM2-32GB"},
    CardRow{"v100l", 16, "Tesla-V100-FHHL-16GB"},
    CardRow{"v100s", 32, "Tesla-V100S-PCIE-32GB"},
    CardRow{"v100x", 16, "Tesla-V100-SXM2-16GB"},
};

// Words of a label are short; what is longer is no vGPU type.
constexpr std::size_t kMostLabel = 63;
constexpr int kGigabyte = 1024;  // MiB, as vGPU types count them

// Takes a number of at most three digits and without leading zeros off the front; 0: none.
int TakeNumber(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || digits > 3 || number <= 0 || text.front() == '0') return 0;
  text.remove_prefix(digits);
  return number;
}

// Takes the last word of "a-b-c" off.
std::string_view TakeLast(std::string_view& words) {
  const std::size_t at = words.rfind('-');
  if (at == std::string_view::npos) return {};
  const std::string_view last = words.substr(at + 1);
  words = words.substr(0, at);
  return last;
}

std::optional<GpuPart> PartOfInstance(const CardRow& card, int slices, int gb, bool media) {
  const MigBoard* board = FindMigBoard(card.product, Mebibytes::Of(card.gb * kGigabyte));
  if (board == nullptr) return std::nullopt;
  const MigProfile* profile =
      FindMigProfile(*board, fmt::format("{}g.{}gb{}", slices, gb, media ? "+me" : ""));
  if (profile == nullptr) return std::nullopt;
  return GpuPart{profile->compute_slices, board->compute_slices, profile->size, board->units};
}

}  // namespace

std::optional<VgpuType> VgpuTypeOf(std::string_view product) {
  product = BaseProduct(product);
  if (product.empty() || product.size() > kMostLabel) return std::nullopt;
  std::string label(product);
  std::ranges::transform(label, label.begin(), [](unsigned char c) {
    return c == ' ' ? '-' : static_cast<char>(std::tolower(c));
  });
  std::string_view name = label;
  for (const std::string_view vendor : {"nvidia-", "grid-"}) {
    if (name.starts_with(vendor)) name.remove_prefix(vendor.size());
  }
  std::string_view size = TakeLast(name);
  const int gb = size.empty() ? 0 : TakeNumber(size);
  // Q, C, B and A: for workstations, compute, desktops and applications.
  const bool media = size == "cme";
  const bool series = size == "q" || size == "c" || size == "b" || size == "a";
  if (gb == 0 || !(media || series)) return std::nullopt;
  std::string_view rest = name;
  std::string_view slice_text = TakeLast(rest);
  const bool instance = slice_text.size() == 1 && slice_text >= "1" && slice_text <= "7";
  if (instance) name = rest;
  const auto* const card = std::ranges::find(kCards, name, &CardRow::name);
  if (card == kCards.end() || gb > card->gb || (media && !instance)) return std::nullopt;
  if (!instance) return VgpuType{card->product, {gb, card->gb, gb, card->gb}};
  const int slices = TakeNumber(slice_text);
  const std::optional<GpuPart> part = PartOfInstance(*card, slices, gb, media);
  if (!part) return std::nullopt;
  return VgpuType{card->product, *part};
}

}  // namespace tranche
