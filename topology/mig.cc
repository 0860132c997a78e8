#include "topology/mig.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdlib>

#include "topology/base/quantity.h"
#include "topology/gpu_model.h"
#include "topology/mig_catalog.h"

namespace tranche {
namespace {

constexpr std::string_view kResourcePrefix = "nvidia.com/mig-";
constexpr std::string_view kSharedSuffix = ".shared";
constexpr std::array<std::string_view, 5> kAttributes = {"", "+me", "+me.all", "+gfx", "-me"};

bool EqualsIgnoringCase(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

// Labels of old drivers lack the vendor.
std::string_view WithoutVendor(std::string_view label) {
  constexpr std::string_view kVendor = "NVIDIA-";
  if (EqualsIgnoringCase(label.substr(0, kVendor.size()), kVendor)) {
    label.remove_prefix(kVendor.size());
  }
  return label;
}

// The profile in "<model>-MIG-<profile>"; empty when there is none.
std::string_view ProfileInLabel(std::string_view product) {
  constexpr std::string_view kMark = "-MIG-";
  const size_t at = product.find(kMark);
  if (at == std::string_view::npos) return {};
  return BaseProduct(product.substr(at + kMark.size()));
}

bool ListsProduct(const MigBoard& board, std::string_view base) {
  return std::any_of(board.products.begin(), board.products.end(), [&](std::string_view known) {
    return EqualsIgnoringCase(WithoutVendor(known), WithoutVendor(base));
  });
}

// "h100-94" is of the family of the model "h100-nvl".
bool IsOfFamily(const MigBoard& board, std::string_view model) {
  const std::string_view family = board.id.substr(0, board.id.rfind('-'));
  return model.substr(0, family.size()) == family &&
         (model.size() == family.size() || model[family.size()] == '-');
}

int64_t MemoryDistance(const MigBoard& board, Mebibytes memory) {
  return std::abs(board.memory_gb * 1024 - memory.count());
}

const MigBoard* ClosestInMemory(const std::vector<const MigBoard*>& boards, Mebibytes memory) {
  return *std::min_element(boards.begin(), boards.end(), [&](const auto* left, const auto* right) {
    return MemoryDistance(*left, memory) < MemoryDistance(*right, memory);
  });
}

}  // namespace

std::span<const MigBoard> MigBoards() {
  static const std::vector<MigBoard>& boards = *new std::vector<MigBoard>(BuildMigCatalog());
  return boards;
}

const MigBoard* FindMigBoard(std::string_view product, Mebibytes memory) {
  const std::string_view base = BaseProduct(product);
  const std::string_view profile = ProfileInLabel(product);
  const std::string model = GpuModelName(base);
  std::vector<const MigBoard*> named;
  std::vector<const MigBoard*> family;
  for (const MigBoard& board : MigBoards()) {
    if (ListsProduct(board, base)) named.push_back(&board);
    if (IsOfFamily(board, model)) family.push_back(&board);
  }
  const bool by_name = !named.empty();
  std::vector<const MigBoard*>& boards = by_name ? named : family;
  if (IsMigProfileName(profile) && boards.size() > 1) {
    std::erase_if(
        boards, [&](const MigBoard* board) { return FindMigProfile(*board, profile) == nullptr; });
  }
  if (boards.empty()) return nullptr;
  if (boards.size() == 1 && by_name) return boards.front();

  const Mebibytes card =
      profile.empty() && memory > Mebibytes::Zero() ? memory : CatalogueMemory(base);
  if (card <= Mebibytes::Zero()) return nullptr;
  const MigBoard* board = ClosestInMemory(boards, card);
  // A family member we do not know by name is the same board only where the memory agrees; what
  // drivers reserve stays below a twentieth.
  if (!by_name && MemoryDistance(*board, card) * 20 > board->memory_gb * 1024) return nullptr;
  return board;
}

std::vector<const MigBoard*> BoardsOfModel(std::string_view model) {
  std::vector<const MigBoard*> boards;
  for (const MigBoard& board : MigBoards()) {
    if (std::ranges::find(board.products, model, GpuModelName) != board.products.end()) {
      boards.push_back(&board);
    }
  }
  return boards;
}

const MigProfile* FindMigProfile(const MigBoard& board, std::string_view name) {
  for (const MigProfile& profile : board.profiles) {
    if (profile.name == name) return &profile;
    if (std::find(profile.aliases.begin(), profile.aliases.end(), name) != profile.aliases.end()) {
      return &profile;
    }
  }
  return nullptr;
}

bool IsMigProfileName(std::string_view name) {
  constexpr size_t kMaxMemoryDigits = 4;
  if (name.size() < 2 || name[0] < '1' || name[0] > '7' || name.substr(1, 2) != "g.") return false;
  name.remove_prefix(3);
  if (name.starts_with('0') || !TakeDigits(name, kMaxMemoryDigits)) return false;
  if (name.substr(0, 2) != "gb") return false;
  return std::find(kAttributes.begin(), kAttributes.end(), name.substr(2)) != kAttributes.end();
}

std::optional<MigResourceName> ParseMigResourceTail(std::string_view tail) {
  MigResourceName result;
  if (tail.size() > kSharedSuffix.size() &&
      tail.substr(tail.size() - kSharedSuffix.size()) == kSharedSuffix) {
    result.shared = true;
    tail.remove_suffix(kSharedSuffix.size());
  }
  // '+' cannot stand in a resource name; the plugin writes '.' for it.
  if (tail.find('+') != std::string_view::npos) return std::nullopt;
  result.profile = tail;
  const size_t attribute = tail.find("gb.");
  if (attribute != std::string_view::npos) result.profile[attribute + 2] = '+';
  if (!IsMigProfileName(result.profile)) return std::nullopt;
  return result;
}

std::string FormatMigResource(const MigResourceName& name) {
  std::string text(kResourcePrefix);
  text += name.profile;
  std::replace(text.begin(), text.end(), '+', '.');
  if (name.shared) text += kSharedSuffix;
  return text;
}

bool IsLegalMigSet(const MigBoard& board, std::span<const MigInstance> instances) {
  uint64_t taken = 0;
  int media = 0;
  int codecs = 0;
  std::vector<int> counts(board.profiles.size(), 0);
  for (const MigInstance& instance : instances) {
    const auto profile =
        std::find_if(board.profiles.begin(), board.profiles.end(),
                     [&](const MigProfile& known) { return &known == instance.profile; });
    if (profile == board.profiles.end()) return false;
    if (std::find(profile->starts.begin(), profile->starts.end(), instance.start) ==
        profile->starts.end()) {
      return false;
    }
    const uint64_t range = ((uint64_t{1} << profile->size) - 1) << instance.start;
    if ((taken & range) != 0) return false;
    taken |= range;
    media += profile->media_engines;
    codecs += profile->codec_engines;
    int& count = counts[static_cast<size_t>(profile - board.profiles.begin())];
    if (++count > profile->max_instances) return false;
  }
  return media <= board.media_engines && codecs <= board.codec_engines;
}

}  // namespace tranche
