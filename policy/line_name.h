// The name of what a quota line, a budget's rate or a charge is of: a GPU model ("h100"), all of
// them ("any"), or those of a pool alone ("h100@spot-eu", "any@spot-eu").
//
// Neither models nor pools have an @ in their names.
// Pure functions; any thread; constant cost.
#pragma once

#include <string>
#include <string_view>

namespace tranche {

struct LineParts {
  std::string_view model;
  std::string_view pool;  // empty: wherever no line of a pool takes its place
};

// The parts view into `name`.
constexpr LineParts PartsOf(std::string_view name) {
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return {name, {}};
  return {name.substr(0, at), name.substr(at + 1)};
}

inline std::string LineName(std::string_view model, std::string_view pool) {
  std::string name(model);
  if (!pool.empty()) name.append("@").append(pool);
  return name;
}

}  // namespace tranche
