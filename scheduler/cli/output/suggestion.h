// What a mistyped word was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tranche {

// The one of `words` that is closest to `word`: at most two letters off (one in words of up to four
// letters), turned round, added, left out or changed, whatever their case; or the only one that
// begins with it. "" where none is. Cost: O(words x letters squared). "expalin" -> "explain".
std::string ClosestWord(std::string_view word, std::span<const std::string> words);

// "; did you mean explain?", or "".
std::string DidYouMean(std::string_view word, std::span<const std::string> words);

}  // namespace tranche
