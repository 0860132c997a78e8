// Values packed into one text: plain integers, durations and comma lists, as annotations and labels
// have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/base/units.h"

namespace tranche::wire {

// Decimal digits with an optional minus sign and nothing else; nullopt when the text is something
// else or lies outside int64.
std::optional<int64_t> ParsePlainInteger(std::string_view text);

// A duration as Go writes them: "90s", "1h30m", "1.5h", "250ms"; parts below a millisecond are cut
// off. nullopt when the text is something else or means more than `limit`, which is at most a few
// centuries.
std::optional<Millis> ParseDuration(std::string_view text, Millis limit);

// Without the blanks and tabs at both ends.
std::string_view Trimmed(std::string_view text);

// The trimmed entries between the commas, empty ones included; one empty entry for an empty text.
std::vector<std::string_view> SplitList(std::string_view text);

// Takes what stands before the next `separator` off the front; nullopt when there is none.
std::optional<std::string_view> TakeUntil(std::string_view& text, char separator);

// ASCII letters in lower case.
std::string LowerCase(std::string_view text);

}  // namespace tranche::wire
