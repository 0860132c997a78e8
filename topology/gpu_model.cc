#include "topology/gpu_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/vgpu.h"

namespace tranche {
namespace {

struct CatalogueRow {
  std::string_view model;
  std::array<std::string_view, 3> words;  // all of them, each a word of the product label
  int64_t mib;                            // 0: not established
};

// The first row whose words all occur wins: special editions stand before their family.
//
// MiB stands in for what NVML (`nvidia-smi --query-gpu=memory.total`), and so GFD, would report,
// where a node publishes no memory label. The cards of the OpenB trace have that trace's figures;
// for the others the smallest figure met in listings stands here, unverified on hardware. Drivers
// disagree by up to two percent, so a label always wins over this table.
constexpr std::array kCatalogue = {
    CatalogueRow{"p100-12gb", {"p100", "12gb"}, 0},
    CatalogueRow{"p100", {"p100"}, 16280},
    CatalogueRow{"v100-16gb", {"v100", "16gb"}, 16160},
    CatalogueRow{"v100-32gb", {"v100", "32gb"}, 32510},
    CatalogueRow{"v100s-32gb", {"v100s", "32gb"}, 32510},
    CatalogueRow{"t4", {"t4"}, 15109},
    CatalogueRow{"rtx-6000-ada", {"rtx", "6000", "ada"}, 46068},
    CatalogueRow{"rtx-pro-6000", {"rtx", "pro", "6000"}, 97887},
    CatalogueRow{"rtx-a6000", {"rtx", "a6000"}, 46068},
    CatalogueRow{"a10", {"a10"}, 22731},
    CatalogueRow{"a10g", {"a10g"}, 22731},
    CatalogueRow{"a30", {"a30"}, 24258},
    CatalogueRow{"a40", {"a40"}, 45634},
    CatalogueRow{"a100-40gb", {"a100", "40gb"}, 40536},
    CatalogueRow{"a100-80gb", {"a100", "80gb"}, 81251},
    CatalogueRow{"a800-40gb", {"a800", "40gb"}, 40536},
    CatalogueRow{"a800-80gb", {"a800", "80gb"}, 81251},
    CatalogueRow{"l4", {"l4"}, 23034},
    CatalogueRow{"l40", {"l40"}, 46068},
    CatalogueRow{"l40s", {"l40s"}, 46068},
    CatalogueRow{"h100-64gb", {"h100", "64gb"}, 0},
    CatalogueRow{"h100-96gb", {"h100", "96gb"}, 97871},
    CatalogueRow{"h100-nvl", {"h100", "nvl"}, 95830},
    CatalogueRow{"h100", {"h100"}, 81559},
    CatalogueRow{"h800-nvl", {"h800", "nvl"}, 95830},
    CatalogueRow{"h800", {"h800"}, 81559},
    CatalogueRow{"h20-141gb", {"h20", "3e"}, 143771},
    CatalogueRow{"h20", {"h20"}, 97871},
    CatalogueRow{"h200", {"h200"}, 143771},
    CatalogueRow{"gh200-96gb", {"gh200", "480gb"}, 97871},  // 480 GB are the CPU's
    CatalogueRow{"gh200-144gb", {"gh200", "144g"}, 0},
    CatalogueRow{"b200", {"b200"}, 183359},
    CatalogueRow{"gb200", {"gb200"}, 189471},
    CatalogueRow{"b300", {"b300"}, 275040},
    CatalogueRow{"gb300", {"gb300"}, 284208},
};

// Lower case with '-' for blanks, as GFD writes labels: agents publish "NVIDIA-Tesla V100-PCIE".
std::string Normalised(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

std::vector<std::string_view> WordsOf(std::string_view label) {
  std::vector<std::string_view> words;
  while (!label.empty()) {
    const size_t end = std::min(label.find('-'), label.size());
    words.push_back(label.substr(0, end));
    label.remove_prefix(std::min(end + 1, label.size()));
  }
  return words;
}

const CatalogueRow* FindRow(std::string_view normalised) {
  const std::vector<std::string_view> words = WordsOf(normalised);
  for (const CatalogueRow& row : kCatalogue) {
    const bool all = std::all_of(row.words.begin(), row.words.end(), [&](std::string_view word) {
      return word.empty() || std::find(words.begin(), words.end(), word) != words.end();
    });
    if (all) return &row;
  }
  return nullptr;
}

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// `wanted` occurs at the start of a word, and a number it ends with is the whole number and model
// suffix: "l4" is no L40S, "h200" no GH200, but "a100-sxm" is an A100-SXM4.
bool HasWord(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return false;
  const bool ends_with_digit = std::isdigit(static_cast<unsigned char>(wanted.back())) != 0;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    const bool starts_word = at == 0 || !IsAlnum(text[at - 1]) || !IsAlnum(wanted.front());
    const bool ends_word = !ends_with_digit || end == text.size() || !IsAlnum(text[end]);
    if (starts_word && ends_word) return true;
  }
  return false;
}

}  // namespace

std::string GpuModelName(std::string_view product) {
  const std::string label = Normalised(BaseProduct(product));
  if (const CatalogueRow* row = FindRow(label)) return std::string(row->model);
  if (const std::optional<VgpuType> vgpu = VgpuTypeOf(label)) return GpuModelName(vgpu->card);
  std::string_view name = label;
  for (const std::string_view vendor : {"nvidia-", "tesla-"}) {
    if (name.substr(0, vendor.size()) == vendor) name.remove_prefix(vendor.size());
  }
  return name.empty() ? "unknown" : std::string(name);
}

std::string_view BaseProduct(std::string_view product) {
  constexpr std::string_view kShared = "-SHARED";
  product = product.substr(0, product.find("-MIG-"));
  if (product.size() >= kShared.size() &&
      product.substr(product.size() - kShared.size()) == kShared) {
    product.remove_suffix(kShared.size());
  }
  return product;
}

Mebibytes CatalogueMemory(std::string_view product) {
  const CatalogueRow* row = FindRow(Normalised(BaseProduct(product)));
  return row == nullptr ? Mebibytes::Zero() : Mebibytes::Of(row->mib);
}

bool MatchesModel(std::string_view pattern, std::string_view product) {
  if (pattern.size() > 2 && pattern.front() == '*' && pattern.back() == '*') {
    const std::string part = Normalised(pattern.substr(1, pattern.size() - 2));
    return Normalised(product).find(part) != std::string::npos;
  }
  const std::string wanted = Normalised(pattern);
  return HasWord(Normalised(product), wanted) || HasWord(GpuModelName(product), wanted);
}

bool IsCatalogueModel(std::string_view pattern) {
  return FindRow(Normalised(BaseProduct(pattern))) != nullptr || VgpuTypeOf(pattern) ||
         std::ranges::any_of(kCatalogue, [pattern](const CatalogueRow& row) {
           return MatchesModel(pattern, row.model);
         });
}

}  // namespace tranche
