// What differs between two versions of a spec, in a line for people.
//
// Pure; any thread. Cost: linear in the texts; specs beyond kMostComparedBytes are not compared.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tranche::wire {

inline constexpr std::size_t kMostFieldsSaid = 8;
inline constexpr std::size_t kMostValueBytes = 48;
inline constexpr std::size_t kMostComparedBytes = 256 * 1024;

// "lines.0.nominal.gpus 8 -> 10; cohort (none) -> \"a\"": fields in the order of their names,
// values as JSON and cut, "; and 3 more" where there are more. Lists of different lengths are one
// field. Empty: they are equal. Texts that are no JSON objects are "its spec".
std::string SpecChanges(std::string_view before, std::string_view after);

// The text with the members of its objects by their names; texts that are no JSON are "".
std::string OrderedJson(std::string_view json);
// The spec of an object, likewise; "": it has none.
std::string SpecOf(std::string_view object);

}  // namespace tranche::wire
