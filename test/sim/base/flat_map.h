// What the members of a JSON object lie in: one piece of memory, in the order of their keys. It is
// copied, searched and given back several times as fast as a tree. Unlike a tree's, references to
// members end with the next insertion or erasure.
#pragma once

#include <boost/container/flat_map.hpp>
#include <functional>

namespace tranche::sim {

// As nlohmann::basic_json asks for it; the other arguments are of a tree.
template <typename Key, typename Value, typename... Others>
using FlatMap = boost::container::flat_map<Key, Value, std::less<>>;

}  // namespace tranche::sim
