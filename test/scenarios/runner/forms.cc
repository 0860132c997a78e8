#include "test/scenarios/runner/forms.h"

#include <cctype>

namespace tranche::scenario {
namespace {

bool IsCapture(const std::string& word) {
  return word != "GPU" && std::isupper(static_cast<unsigned char>(word.front())) != 0;
}

bool TakesMany(const std::string& word) { return word.ends_with("..."); }

// Forms that begin with the same word, else all of them.
std::string Closest(std::span<const Form> forms, const std::string& first) {
  std::vector<std::string> near, all;
  for (const Form& form : forms) {
    all.push_back("`" + std::string(form.pattern) + "`");
    if (Split(std::string(form.pattern), ' ').front() == first) near.push_back(all.back());
  }
  return Join(near.empty() ? all : near, " or ");
}

}  // namespace

std::optional<std::vector<std::string>> Match(std::string_view pattern,
                                              const std::vector<std::string>& words) {
  std::vector<std::string> captured;
  std::size_t at = 0;
  for (const std::string& part : Split(std::string(pattern), ' ')) {
    if (at == words.size()) return std::nullopt;
    if (!IsCapture(part)) {
      if (words[at] != part) return std::nullopt;
      ++at;
      continue;
    }
    const std::size_t end = TakesMany(part) ? words.size() : at + 1;
    for (; at < end; ++at) captured.push_back(words[at]);
  }
  return at == words.size() ? std::optional(captured) : std::nullopt;
}

Result RunForm(std::span<const Form> forms, const std::vector<std::string>& words,
               const Statement& statement, Story& story) {
  for (const Form& form : forms) {
    const std::optional<std::vector<std::string>> captured = Match(form.pattern, words);
    if (!captured) continue;
    Options options(statement);
    if (Result problem = form.run(story, *captured, options)) return problem;
    return options.Done();
  }
  return Problem{Closest(forms, words.empty() ? "" : words.front()), Join(words)};
}

}  // namespace tranche::scenario
