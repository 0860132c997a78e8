#include "scheduler/index/card_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "topology/gpu_model.h"

namespace tranche {
namespace {

// The starts that board and agent agree on.
std::vector<int> CommonStarts(const MigProfile& profile, const AgentMigProfile& offered) {
  std::vector<int> starts;
  for (const int start : profile.starts) {
    if (std::ranges::count(offered.placements, std::pair(start, profile.size)) > 0) {
      starts.push_back(start);
    }
  }
  return starts;
}

// What the board can be cut into, where the agent's register does not say: all of it but instances
// with special engines, which nobody asks HAMi for.
std::vector<AgentMigProfile> OfferOf(const MigBoard& board) {
  std::vector<AgentMigProfile> offer;
  for (const MigProfile& profile : board.profiles) {
    if (profile.name.find_first_of("+-") != std::string_view::npos) continue;
    AgentMigProfile& offered = offer.emplace_back();
    offered.name = profile.name;
    offered.memory = profile.memory.value_or(Mebibytes::Zero());
    for (const int start : profile.starts) offered.placements.emplace_back(start, profile.size);
  }
  return offer;
}

// What the board can make of the agent's offer.
CardCut CutBy(const MigBoard& board, const std::vector<AgentMigProfile>& offer) {
  CardCut cut;
  cut.space = &MigSpaceOf(board);
  for (const AgentMigProfile& offered : offer) {
    const MigProfile* profile = FindMigProfile(board, offered.name);
    if (profile == nullptr) continue;
    CutProfile found;
    found.name = offered.name;
    found.profile = static_cast<int>(profile - board.profiles.data());
    found.milli = MilliGpu::Of(int64_t{1000} * profile->compute_slices / board.compute_slices);
    found.memory = offered.memory > Mebibytes::Zero() ? offered.memory
                                                      : profile->memory.value_or(Mebibytes::Zero());
    found.starts = CommonStarts(*profile, offered);
    if (!found.starts.empty()) cut.profiles.push_back(std::move(found));
  }
  std::ranges::sort(cut.profiles, {}, [](const CutProfile& profile) {
    return std::tuple(profile.memory, profile.milli, profile.profile);
  });
  return cut;
}

// "NVIDIA-NVIDIA A100-SXM4-40GB", as HAMi writes a card's type, is the product label's
// "NVIDIA-A100-SXM4-40GB".
std::string LabelOf(std::string_view type) {
  constexpr std::string_view kVendor = "NVIDIA-";
  std::string label(type);
  std::ranges::replace(label, ' ', '-');
  while (label.starts_with("NVIDIA-NVIDIA-")) label.erase(0, kVendor.size());
  return label;
}

}  // namespace

std::shared_ptr<const CardCut> CutOf(const AgentDevice& device, std::string_view product,
                                     Mebibytes memory, std::string& problem) {
  const MigBoard* board = FindMigBoard(product, memory);
  if (board == nullptr) board = FindMigBoard(LabelOf(device.type), memory);
  const std::vector<AgentMigProfile>& offer = device.mig_profiles;
  CardCut cut;
  if (board != nullptr) cut = CutBy(*board, offer.empty() ? OfferOf(*board) : offer);
  if (cut.profiles.empty()) {
    problem = fmt::format(
        "expected MIG profiles of a board with known placements, found {} of '{}' for {}",
        offer.empty() ? "none" : offer.front().name, device.type, device.uuid.str());
    return nullptr;
  }
  return std::make_shared<const CardCut>(std::move(cut));
}

const CutProfile* SmallestFor(const CardCut& cut, const CutNeed& need) {
  const MigBoard& board = cut.space->board();
  for (const CutProfile& profile : cut.profiles) {
    const int64_t units = board.profiles[static_cast<std::size_t>(profile.profile)].size;
    const auto is_part = [&](int64_t part) { return units * 1000 >= part * board.units; };
    const bool memory = profile.memory >= need.memory || (need.part && is_part(*need.part));
    const bool compute = profile.milli >= need.milli || is_part(need.milli.count());
    if (memory && compute) return &profile;
  }
  return nullptr;
}

std::optional<MigPlace> BestPlaceOn(const CardCut& cut, LayoutId layout,
                                    const CutProfile& profile) {
  // 1g and 3g instances go to the high end first, as in HAMi.
  const bool high_first = profile.name.starts_with("1g.") || profile.name.starts_with("3g.");
  std::optional<MigPlace> best;
  std::tuple<int64_t, int> best_rank;
  for (const int start : profile.starts) {
    const std::optional<LayoutId> after = cut.space->With(layout, profile.profile, start);
    if (!after) continue;
    const std::tuple rank(-std::ssize(cut.space->steps(*after)), high_first ? -start : start);
    if (best && best_rank <= rank) continue;
    best = MigPlace{cut.space, profile.profile, start};
    best_rank = rank;
  }
  return best;
}

}  // namespace tranche
