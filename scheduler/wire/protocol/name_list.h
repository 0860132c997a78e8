// The candidates' names, straight from the bytes of a question.
//
// kube-scheduler's encoder writes ExtenderArgs in the order of its fields and without spaces, so
// the names come last: `{"Pod":{...},"Nodes":null,"NodeNames":["a","b"]}`. They are nearly all of
// such a body, and a parser would write each down only for it to be read once. Here they are found
// where they stand, 64 bytes a step, and the parser gets the rest.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tranche::wire {

// What stands before the comma of `,"NodeNames":[...]}`, where the body ends that way and no name
// needs an escape or a byte beyond ASCII; `names` are views into the body, as they came. With a
// brace behind it the head is a JSON object exactly if the body is one: the body's other members.
// nullopt: the body is of another form, well-formed or not, and `names` means nothing. Requires:
// the body is readable for 64 bytes behind its end (http::kBodyPadding).
std::optional<std::string_view> ReadTrailingNames(std::string_view body,
                                                  std::vector<std::string_view>& names);

}  // namespace tranche::wire
