#include "scheduler/cli/output/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tranche {
namespace {

// Longer words are names of the cluster's making that nobody types.
constexpr std::size_t kLongestWord = 100;
constexpr std::size_t kShortWord = 4;

std::string Lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// Letters to add, leave out, change or turn round with their neighbour (optimal string alignment).
std::size_t Distance(const std::string& from, const std::string& to) {
  std::vector<std::vector<std::size_t>> steps(from.size() + 1,
                                              std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) steps[i][0] = i;
  for (std::size_t j = 0; j <= to.size(); ++j) steps[0][j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = from[i - 1] == to[j - 1] ? 0 : 1;
      std::size_t fewest =
          std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1, steps[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        fewest = std::min(fewest, steps[i - 2][j - 2] + 1);
      }
      steps[i][j] = fewest;
    }
  }
  return steps[from.size()][to.size()];
}

}  // namespace

std::string ClosestWord(std::string_view word, std::span<const std::string> words) {
  if (word.empty() || word.size() > kLongestWord) return "";
  const std::string typed = Lowered(word);
  std::size_t fewest = typed.size() <= kShortWord ? 1 : 2;
  std::string closest;
  std::string begun;
  std::size_t begun_count = 0;
  for (const std::string& candidate : words) {
    if (candidate.size() > kLongestWord) continue;
    const std::string lowered = Lowered(candidate);
    if (lowered.starts_with(typed)) {
      begun = candidate;
      ++begun_count;
    }
    const std::size_t distance = Distance(typed, lowered);
    if (distance < fewest || (distance == fewest && closest.empty())) {
      fewest = distance;
      closest = candidate;
    }
  }
  if (!closest.empty()) return closest;
  return begun_count == 1 ? begun : "";
}

std::string DidYouMean(std::string_view word, std::span<const std::string> words) {
  const std::string closest = ClosestWord(word, words);
  return closest.empty() ? "" : fmt::format("; did you mean {}?", closest);
}

}  // namespace tranche
