#include "scheduler/advice/geometry_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "topology/mig_space.h"

namespace tranche {
namespace {

// What the driver makes of one instance more; nullopt: "Insufficient Resources".
std::optional<LayoutId> DriverAdds(const MigSpace& space, LayoutId layout, int profile) {
  std::optional<LayoutId> chosen;
  std::size_t most = 0;
  // Ascending starts: of equals the highest.
  for (const MigSpace::Step& step : space.steps(layout, profile)) {
    const std::size_t open = space.steps(step.after).size();
    if (chosen && open < most) continue;
    chosen = step.after;
    most = open;
  }
  return chosen;
}

bool MadeLargestFirst(const MigSpace& space, const std::vector<int>& counts) {
  const std::vector<MigProfile>& profiles = space.board().profiles;
  std::vector<int> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&profiles](int left, int right) {
    const MigProfile& one = profiles[static_cast<std::size_t>(left)];
    const MigProfile& other = profiles[static_cast<std::size_t>(right)];
    return std::pair(one.size, one.compute_slices) > std::pair(other.size, other.compute_slices);
  });
  LayoutId layout = kEmptyLayout;
  for (const int profile : order) {
    for (int i = 0; i < counts[static_cast<std::size_t>(profile)]; ++i) {
      const auto after = DriverAdds(space, layout, profile);
      if (!after) return false;
      layout = *after;
    }
  }
  return true;
}

using Tried = std::set<std::pair<LayoutId, std::vector<int>>>;

bool MadeInAnyOrder(const MigSpace& space, LayoutId layout, std::vector<int>& left, Tried& tried) {
  if (!tried.emplace(layout, left).second) return true;
  for (std::size_t profile = 0; profile < left.size(); ++profile) {
    if (left[profile] == 0) continue;
    const auto after = DriverAdds(space, layout, static_cast<int>(profile));
    if (!after) return false;
    --left[profile];
    const bool made = MadeInAnyOrder(space, *after, left, tried);
    ++left[profile];
    if (!made) return false;
  }
  return true;
}

// Every set of instances that is legal, as counts.
std::set<std::vector<int>> LegalCounts(const MigSpace& space) {
  const MigProfile* first = space.board().profiles.data();
  std::set<std::vector<int>> all;
  for (std::size_t layout = 0; layout < space.size(); ++layout) {
    std::vector<int> counts(space.board().profiles.size(), 0);
    for (const MigInstance& instance : space.instances(static_cast<LayoutId>(layout))) {
      ++counts[static_cast<std::size_t>(instance.profile - first)];
    }
    all.insert(std::move(counts));
  }
  return all;
}

bool IsContained(const std::vector<int>& inner, const std::vector<int>& outer) {
  return inner != outer && std::ranges::equal(inner, outer, std::ranges::less_equal());
}

}  // namespace

std::string GeometryText(const Geometry& geometry) {
  if (geometry.profiles.empty()) return "whole";
  std::string text;
  for (std::size_t i = geometry.profiles.size(); i-- > 0;) {
    const auto& [profile, count] = geometry.profiles[i];
    if (!text.empty()) text += " + ";
    text += count == 1 ? profile : fmt::format("{}x {}", count, profile);
  }
  return text;
}

Geometry GeometryOf(const MigBoard& board, std::span<const int> counts) {
  Geometry geometry;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) geometry.profiles.emplace_back(board.profiles[i].name, counts[i]);
  }
  std::ranges::sort(geometry.profiles);
  return geometry;
}

std::vector<int> CountsOf(const MigBoard& board, const Geometry& geometry) {
  std::vector<int> counts;
  for (const auto& [name, count] : geometry.profiles) {
    const MigProfile* profile = FindMigProfile(board, name);
    if (profile == nullptr) return {};
    counts.resize(board.profiles.size(), 0);
    counts[static_cast<std::size_t>(profile - board.profiles.data())] += count;
  }
  return counts;
}

std::vector<GeometryChoice> GeometryChoices(const MigBoard& board, std::span<const int> profiles) {
  if (profiles.empty()) return {};
  const MigSpace& driver = MigSpaceOf(board);
  std::set<std::vector<int>> made = LegalCounts(MigSpace(board, profiles));
  std::erase_if(made, [&](const auto& counts) { return !MadeLargestFirst(driver, counts); });
  std::vector<GeometryChoice> choices;
  for (const std::vector<int>& counts : made) {
    const auto contains = [&counts](const auto& other) { return IsContained(counts, other); };
    if (std::ranges::any_of(made, contains)) continue;
    GeometryChoice choice;
    choice.counts = counts;
    choice.geometry = GeometryOf(board, counts);
    std::vector<int> left = counts;
    Tried tried;
    choice.any_order = MadeInAnyOrder(driver, kEmptyLayout, left, tried);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      choice.compute_slices += counts[i] * board.profiles[i].compute_slices;
      choice.instances += counts[i];
    }
    choices.push_back(std::move(choice));
  }
  std::ranges::stable_sort(choices, [](const GeometryChoice& left, const GeometryChoice& right) {
    return std::tuple(!left.any_order, -left.compute_slices, left.instances,
                      left.geometry.profiles) < std::tuple(!right.any_order, -right.compute_slices,
                                                           right.instances,
                                                           right.geometry.profiles);
  });
  return choices;
}

}  // namespace tranche
