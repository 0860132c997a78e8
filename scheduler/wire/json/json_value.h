// JSON that we write, as a tree whose members keep their order.
//
// Every text that is not on the path of a decision is made this way; the extender's answers append
// to one text (protocol/extender_v1.cc), since they are made for thousands of nodes a second.
// This header only declares the tree's type: sources that build one include <nlohmann/json.hpp>,
// which is slow to parse. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "topology/base/units.h"

namespace tranche::wire {

using Json = nlohmann::ordered_json;

// The tree as text, without white space or with an indent of two a level; invalid UTF-8 is
// replaced.
inline constexpr int kCompact = -1;
inline constexpr int kIndented = 2;
std::string Dump(const Json& value, int indent = kCompact);

// null where there is nothing: an empty text, no time, no value.
Json TextOrNull(std::string_view text);
Json TimeOrNull(std::optional<Instant> time);
template <typename Value, typename Tree = Json>
Tree ValueOrNull(const std::optional<Value>& value) {
  return value ? Tree(*value) : Tree();
}

// The items, each as `to_json` makes it. (The tree is a parameter so that it may be incomplete
// here.)
template <typename Items, typename ToJson, typename Tree = Json>
Tree ListOf(const Items& items, ToJson to_json) {
  Tree list = Tree::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace tranche::wire
